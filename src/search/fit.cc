#include "search/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "formats/format.h"
#include "kernel/knobs.h"
#include "ledger/reopen.h"
#include "measure/statistics.h"

namespace boltbeam::search {
namespace {

constexpr std::size_t kLeastSamples = 40;
constexpr std::size_t kFolds = 4;
constexpr std::size_t kLeastRanked = 8;
constexpr double kKnee = 0.05;       // residuals beyond count as they are, not squared
constexpr double kStiffness = 5e-5;  // loss of a coefficient that moves by e: it stays where timings say little of it
constexpr double kMostStep = 0.7, kMostDamping = 1e6, kEnoughBetter = 0.9999;
constexpr int kMostRounds = 60;
constexpr std::string_view kFamily = "gemv:";

/// A sample with its features counted once.
struct Case {
  std::size_t table = 0;
  std::size_t moment = 0;  // of timings of one table beside one reading of the memory's rate
  Work work;
  double ns = 0;
};

struct Cases {
  std::vector<Case> all;
  std::size_t tables = 0, moments = 0;
};

/// ln(predicted / measured) of every case, less the median of its moment: how the memory drifted in between is no fault
/// of the model's.
std::vector<double> Residuals(const std::vector<Case>& cases, const Coefficients& coefficients, std::size_t moments) {
  std::vector<double> residuals;
  std::vector<std::vector<double>> by_moment(moments);
  for (const Case& one : cases) {
    residuals.push_back(std::log(TimeOf(one.work, coefficients).ns / one.ns));
    by_moment[one.moment].push_back(residuals.back());
  }
  std::vector<double> middle(moments);
  for (std::size_t m = 0; m < moments; ++m) {
    if (!by_moment[m].empty()) middle[m] = measure::Median(by_moment[m]);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) residuals[i] -= middle[cases[i].moment];
  return residuals;
}

/// ln of each coefficient over the one that stands without timings.
std::vector<double> Moved(const Coefficients& coefficients) {
  static const Coefficients kGuess;
  std::vector<double> moved;
  for (const CoefficientName& name : CoefficientNames()) {
    moved.push_back(std::log(coefficients.*name.member / kGuess.*name.member));
  }
  return moved;
}

/// Mean of what outliers can't rule: |r|, squared near 0; and what moving coefficients costs.
double Loss(const Cases& cases, const Coefficients& coefficients) {
  double sum = 0, moved = 0;
  for (const double residual : Residuals(cases.all, coefficients, cases.moments)) {
    const double size = std::abs(residual);
    sum += size < kKnee ? size * size / 2 : kKnee * (size - kKnee / 2);
  }
  for (const double one : Moved(coefficients)) moved += one * one / 2;
  return sum / static_cast<double>(std::max<std::size_t>(1, cases.all.size())) + kStiffness * moved;
}

using Vector = std::vector<double>;

/// x of A x = b for a symmetric positive definite A, by Cholesky's decomposition.
Vector Solve(std::vector<Vector> a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      a[i][j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / a[j][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

Coefficients Scaled(Coefficients coefficients, const Vector& logs) {
  for (std::size_t k = 0; k < logs.size(); ++k) {
    coefficients.*CoefficientNames()[k].member *= std::exp(std::clamp(logs[k], -kMostStep, kMostStep));
  }
  return coefficients;
}

/// Normal equations of the residuals in the coefficients' logarithms, outliers weighed down. Within a moment only
/// differences count.
void Linearize(const Cases& cases, const Coefficients& at, std::vector<Vector>& matrix, Vector& gradient) {
  constexpr double kNudge = 1e-3;
  const std::size_t n = CoefficientNames().size();
  const Vector residuals = Residuals(cases.all, at, cases.moments);
  std::vector<Vector> slopes(cases.all.size(), Vector(n));
  std::vector<Vector> means(cases.moments, Vector(n));
  Vector counts(cases.moments);
  for (const Case& one : cases.all) ++counts[one.moment];
  for (std::size_t k = 0; k < n; ++k) {
    Vector logs(n);
    logs[k] = kNudge;
    const Coefficients nudged = Scaled(at, logs);
    for (std::size_t i = 0; i < cases.all.size(); ++i) {
      const Work& work = cases.all[i].work;
      slopes[i][k] = std::log(TimeOf(work, nudged).ns / TimeOf(work, at).ns) / kNudge;
      means[cases.all[i].moment][k] += slopes[i][k] / counts[cases.all[i].moment];
    }
  }
  const double stiffness = kStiffness * static_cast<double>(cases.all.size());
  matrix.assign(n, Vector(n));
  gradient = Moved(at);
  for (std::size_t k = 0; k < n; ++k) {
    gradient[k] *= -stiffness;
    matrix[k][k] = stiffness;
  }
  for (std::size_t i = 0; i < cases.all.size(); ++i) {
    const double weight = std::min(1.0, kKnee / std::max(std::abs(residuals[i]), 1e-9));
    const Vector& mean = means[cases.all[i].moment];
    for (std::size_t k = 0; k < n; ++k) {
      const double slope = slopes[i][k] - mean[k];
      gradient[k] -= weight * slope * residuals[i];
      for (std::size_t l = 0; l <= k; ++l) matrix[k][l] += weight * slope * (slopes[i][l] - mean[l]);
    }
  }
}

/// Levenberg (1944) and Marquardt (1963), in logarithms, so that no coefficient changes its sign. What the timings say
/// little of stays near where it was.
Coefficients Descend(const Cases& cases, Coefficients best) {
  double loss = Loss(cases, best), damping = 0.1;
  std::vector<Vector> matrix;
  Vector gradient;
  for (int round = 0; round < kMostRounds && damping < kMostDamping; ++round) {
    Linearize(cases, best, matrix, gradient);
    bool is_better = false;
    while (!is_better && damping < kMostDamping) {
      std::vector<Vector> damped = matrix;
      for (std::size_t k = 0; k < gradient.size(); ++k) damped[k][k] *= 1 + damping;
      const Coefficients next = Scaled(best, Solve(std::move(damped), gradient));
      const double there = Loss(cases, next);
      is_better = there < loss;
      damping *= is_better ? 0.3 : 4;
      if (!is_better) continue;
      if (there > loss * kEnoughBetter) damping = kMostDamping;  // done
      best = next;
      loss = there;
    }
  }
  return best;
}

Cases CasesOf(const std::vector<Sample>& samples, const chip::Chip& chip, std::uint32_t threads) {
  Cases cases;
  std::map<std::string, std::pair<std::size_t, Counter>> tables;
  std::map<std::pair<std::size_t, double>, std::size_t> moments;
  for (const Sample& sample : samples) {
    if (sample.threads != threads) continue;
    auto table = tables.find(sample.part.table);
    if (table == tables.end()) {
      const std::pair entry(tables.size(), Counter(sample.part, chip, threads));
      table = tables.emplace(sample.part.table, entry).first;
    }
    auto& [index, counter] = table->second;
    auto work = counter.Count(sample.geometry, sample.stream);
    if (!work) continue;
    if (sample.read_gb_s > 0) work->bandwidth_gb_s = sample.read_gb_s;
    const std::size_t moment = moments.try_emplace({index, sample.read_gb_s}, moments.size()).first->second;
    cases.all.push_back({index, moment, *work, sample.ns});
  }
  cases.tables = tables.size();
  cases.moments = moments.size();
  return cases;
}

double MedianSize(const std::vector<double>& residuals) {
  std::vector<double> sizes;
  for (const double residual : residuals) sizes.push_back(std::abs(std::expm1(residual)));
  return sizes.empty() ? 0 : measure::Median(sizes);
}

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t i = first; i < last; ++i) ranks[order[i]] = static_cast<double>(first + last - 1) / 2;
    first = last;
  }
  return ranks;
}

/// A quarter of the tables at a time is left out of the fit and foretold.
void HoldOut(const Cases& cases, Fit& fit) {
  const std::size_t folds = std::min(kFolds, cases.tables);
  std::vector<double> ranks, errors;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    Cases rest{{}, cases.tables, cases.moments};
    std::map<std::size_t, std::vector<Case>> out;
    for (const Case& one : cases.all) (one.table % folds == fold ? out[one.moment] : rest.all).push_back(one);
    const Coefficients without = Descend(rest, {});
    for (const auto& [moment, held] : out) {
      if (held.size() < kLeastRanked) continue;
      std::vector<double> foretold, measured;
      for (const Case& one : held) {
        foretold.push_back(TimeOf(one.work, without).ns);
        measured.push_back(one.ns);
      }
      ranks.push_back(RankCorrelation(foretold, measured));
      errors.push_back(MedianSize(Residuals(held, without, cases.moments)));
    }
  }
  if (ranks.empty()) return;
  fit.held_out_rank = measure::Median(ranks);
  fit.worst_rank = *std::ranges::min_element(ranks);
  fit.held_out_error = measure::Median(errors);
}

bool ParseNumber(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<Part> PartOfTable(std::string_view table) {
  const std::size_t dot = table.rfind('.');
  const std::size_t cross = table.rfind('x');
  Part part;
  if (dot != std::string_view::npos && cross != std::string_view::npos && cross > dot) {
    part.format = formats::FindFormat(std::string(table.substr(0, dot)));
    const bool has_rows = ParseNumber(table.substr(dot + 1, cross - dot - 1), part.rows);
    const bool has_cols = ParseNumber(table.substr(cross + 1), part.cols);
    if (part.format != nullptr && has_rows && has_cols && part.rows > 0 && part.cols > 0) {
      part.table = table;
      part.calls = 1;
      part.bytes = part.weights() / part.format->elements * part.format->bytes;
      return part;
    }
  }
  return Fail(Code::kLedgerRecord, "shape", std::string(table), "FORMAT.ROWSxCOLUMNS");
}

Result<kernel::GemvGeometry> GeometryOfCandidate(std::string_view candidate) {
  if (!candidate.starts_with(kFamily)) {
    return Fail(Code::kLedgerRecord, "candidate", std::string(candidate), "gemv:KNOB=VALUE,...");
  }
  return kernel::ParseGeometry(candidate.substr(kFamily.size()), {});
}

Result<std::vector<Sample>> SamplesOf(ledger::Index& index, const std::string& chip) {
  ledger::Filter filter;
  filter.kind = ledger::Kind::kMeasurement;
  filter.chip = chip;
  BOLTBEAM_ASSIGN(const std::vector<ledger::Row> rows, index.List(filter));
  struct Timed {
    std::vector<double> ns;
    std::optional<codegen::StreamFacts> stream;
  };
  std::map<std::tuple<std::string, std::string, std::uint32_t, double>, Timed> times;
  for (const ledger::Row& row : rows) {
    const auto record = ledger::MeasurementFrom(row.payload);
    if (!record || record->quantity != kKernelQuantity || record->value <= 0) continue;
    const auto threads = record->environment.value(std::string(kThreadsField), 0U);
    const double rate = record->environment.value(std::string(kBandwidthField), 0.0);
    Timed& timed = times[{record->subject.shape, record->subject.candidate, threads, rate}];
    timed.ns.push_back(record->value);
    if (const auto stream = StreamFrom(record->environment)) timed.stream = stream;
  }
  std::vector<Sample> samples;
  for (const auto& [key, timed] : times) {
    const auto part = PartOfTable(std::get<0>(key));
    const auto geometry = GeometryOfCandidate(std::get<1>(key));
    if (!part || !geometry) continue;
    samples.push_back({*part, *geometry, std::get<2>(key), measure::Median(timed.ns), std::get<3>(key), timed.stream});
  }
  return samples;
}

Result<Fit> FitCoefficients(const std::vector<Sample>& samples, const chip::Chip& chip, std::uint32_t threads) {
  const Cases cases = CasesOf(samples, chip, threads);
  if (cases.all.size() < kLeastSamples || cases.tables < 2) {
    return Fail(Code::kMeasurementUnstable, "fit",
                fmt::format("{} timings of {} tables with {} threads", cases.all.size(), cases.tables, threads),
                fmt::format("at least {} of two tables", kLeastSamples));
  }
  Fit fit;
  fit.samples = cases.all.size();
  fit.tables = cases.tables;
  fit.coefficients = Descend(cases, {});
  const std::vector<double> residuals = Residuals(cases.all, fit.coefficients, cases.moments);
  fit.error = MedianSize(residuals);
  HoldOut(cases, fit);
  std::vector<double> sizes;
  for (const double residual : residuals) sizes.push_back(std::expm1(std::abs(residual)));
  fit.coefficients.spread = std::max(0.05, measure::Quantile(sizes, 0.9));
  fit.coefficients.source = fmt::format("{} timings of {} tables", fit.samples, fit.tables);
  return fit;
}

Result<std::optional<Fit>> FitFromLedger(ledger::Index& index, const chip::Chip& chip, std::uint32_t threads,
                                         const std::vector<std::string>& without) {
  BOLTBEAM_ASSIGN(std::vector<Sample> samples, SamplesOf(index, chip.id));
  std::erase_if(samples,
                [&](const Sample& sample) { return std::ranges::find(without, sample.part.table) != without.end(); });
  const Result<Fit> fit = FitCoefficients(samples, chip, threads);
  return fit ? std::optional(*fit) : std::nullopt;
}

std::string Describe(const Fit& fit) {
  return fmt::format(
      "predictor: fitted on {} timings of {} tables, error {:.1f} %; on tables held out: error {:.1f} %, rank "
      "correlation {:.2f} in the median, {:.2f} at worst",
      fit.samples, fit.tables, 100 * fit.error, 100 * fit.held_out_error, fit.held_out_rank, fit.worst_rank);
}

double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.size() < 3) return 0;
  const std::vector<double> left = Ranks(a), right = Ranks(b);
  const double middle = static_cast<double>(a.size() - 1) / 2;
  double both = 0, of_left = 0, of_right = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (left[i] - middle) * (right[i] - middle);
    of_left += (left[i] - middle) * (left[i] - middle);
    of_right += (right[i] - middle) * (right[i] - middle);
  }
  return of_left > 0 && of_right > 0 ? both / std::sqrt(of_left * of_right) : 0;
}

Result<RefutedSet> RefutedOn(ledger::Index& index, const std::string& chip) {
  BOLTBEAM_ASSIGN(const std::vector<ledger::Row> rows, index.StandingRefutations());
  RefutedSet refuted;
  for (const ledger::Row& row : rows) {
    const auto verdict = ledger::VerdictFrom(row.payload);
    if (verdict && verdict->subject.chip == chip) refuted.Add(verdict->subject.candidate, verdict->subject.shape);
  }
  return refuted;
}

}  // namespace boltbeam::search
