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
constexpr std::string_view kFamily = "gemv:";

/// A sample with its features counted once.
struct Case {
  std::size_t table = 0;
  Work work;
  double ns = 0;
};

/// ln(predicted / measured) of every case, less its table's median: how the memory drifted between tables is no fault
/// of the model's.
std::vector<double> Residuals(const std::vector<Case>& cases, const Coefficients& coefficients, std::size_t tables) {
  std::vector<double> residuals;
  std::vector<std::vector<double>> by_table(tables);
  for (const Case& one : cases) {
    residuals.push_back(std::log(TimeOf(one.work, coefficients).ns / one.ns));
    by_table[one.table].push_back(residuals.back());
  }
  std::vector<double> middle(tables);
  for (std::size_t t = 0; t < tables; ++t) {
    if (!by_table[t].empty()) middle[t] = measure::Median(by_table[t]);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) residuals[i] -= middle[cases[i].table];
  return residuals;
}

/// Mean of what outliers can't rule: |r|, squared near 0.
double Loss(const std::vector<Case>& cases, const Coefficients& coefficients, std::size_t tables) {
  constexpr double kKnee = 0.05;
  double sum = 0;
  for (const double residual : Residuals(cases, coefficients, tables)) {
    const double size = std::abs(residual);
    sum += size < kKnee ? size * size / (2 * kKnee) : size - kKnee / 2;
  }
  return sum / static_cast<double>(std::max<std::size_t>(1, cases.size()));
}

/// One coefficient after another, by steps that shrink: few coefficients, and no derivatives to go wrong.
Coefficients Descend(const std::vector<Case>& cases, std::size_t tables, Coefficients best) {
  double loss = Loss(cases, best, tables);
  for (double step = 0.5; step > 0.01; step *= 0.6) {
    for (bool is_better = true; is_better;) {
      is_better = false;
      for (const CoefficientName& name : CoefficientNames()) {
        for (const double factor : {1 + step, 1 / (1 + step)}) {
          Coefficients next = best;
          next.*name.member *= factor;
          const double there = Loss(cases, next, tables);
          if (there < loss * 0.9995) {
            best = next;
            loss = there;
            is_better = true;
          }
        }
      }
    }
  }
  return best;
}

std::vector<Case> CasesOf(const std::vector<Sample>& samples, const chip::Chip& chip, std::uint32_t threads,
                          std::vector<std::string>& tables) {
  std::vector<Case> cases;
  std::map<std::string, Counter> counters;
  for (const Sample& sample : samples) {
    if (sample.threads != threads) continue;
    auto counter = counters.find(sample.part.table);
    if (counter == counters.end()) {
      counter = counters.emplace(sample.part.table, Counter(sample.part, chip, threads)).first;
    }
    const auto work = counter->second.Count(sample.geometry);
    if (!work) continue;
    const auto table = std::ranges::find(tables, sample.part.table);
    const auto index = static_cast<std::size_t>(table - tables.begin());
    if (table == tables.end()) tables.push_back(sample.part.table);
    cases.push_back({index, *work, sample.ns});
  }
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
void HoldOut(const std::vector<Case>& cases, std::size_t tables, Fit& fit) {
  const std::size_t folds = std::min(kFolds, tables);
  std::vector<double> ranks, errors;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    std::vector<Case> rest;
    std::map<std::size_t, std::vector<Case>> out;
    for (const Case& one : cases) (one.table % folds == fold ? out[one.table] : rest).push_back(one);
    const Coefficients without = Descend(rest, tables, {});
    for (const auto& [table, held] : out) {
      if (held.size() < 3) continue;
      std::vector<double> foretold, measured;
      for (const Case& one : held) {
        foretold.push_back(TimeOf(one.work, without).ns);
        measured.push_back(one.ns);
      }
      ranks.push_back(RankCorrelation(foretold, measured));
      errors.push_back(MedianSize(Residuals(held, without, tables)));
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
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::vector<double>> times;
  for (const ledger::Row& row : rows) {
    const auto record = ledger::MeasurementFrom(row.payload);
    if (!record || record->quantity != kKernelQuantity || record->value <= 0) continue;
    const auto threads = record->environment.value(std::string(kThreadsField), 0U);
    times[{record->subject.shape, record->subject.candidate, threads}].push_back(record->value);
  }
  std::vector<Sample> samples;
  for (auto& [key, values] : times) {
    const auto part = PartOfTable(std::get<0>(key));
    const auto geometry = GeometryOfCandidate(std::get<1>(key));
    if (part && geometry) samples.push_back({*part, *geometry, std::get<2>(key), measure::Median(values)});
  }
  return samples;
}

Result<Fit> FitCoefficients(const std::vector<Sample>& samples, const chip::Chip& chip, std::uint32_t threads) {
  std::vector<std::string> tables;
  const std::vector<Case> cases = CasesOf(samples, chip, threads, tables);
  if (cases.size() < kLeastSamples || tables.size() < 2) {
    return Fail(Code::kMeasurementUnstable, "fit",
                fmt::format("{} timings of {} tables with {} threads", cases.size(), tables.size(), threads),
                fmt::format("at least {} of two tables", kLeastSamples));
  }
  Fit fit;
  fit.samples = cases.size();
  fit.tables = tables.size();
  fit.coefficients = Descend(cases, tables.size(), {});
  const std::vector<double> residuals = Residuals(cases, fit.coefficients, tables.size());
  fit.error = MedianSize(residuals);
  HoldOut(cases, tables.size(), fit);
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
