#include "lab/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace boltbeam::lab {
namespace {

constexpr std::size_t kModelsAskedFor = 4;
constexpr double kCarries = 0.8;         // leverage above which a point makes the line by itself
constexpr double kMovesBandwidth = 0.1;  // so does one without which the bandwidth is another by this part
constexpr double kOffChance = 0.05;
constexpr double kSteadyMemory = 0.02;  // relative spread of readings within which nothing can be learnt of the factor
constexpr double kMostMemoryFactor = 2, kMostFactorError = 0.2;
// A reading of the memory beside a window is itself noisy: a rate within this of it is not called out.
constexpr double kReadingNoise = 1.05;

/// The rows of one line.
struct Group {
  std::vector<const Row*> rows;
};

using Key = std::tuple<std::string, std::string, std::string, std::string, std::uint64_t, std::uint64_t>;
/// Another release of a program has another line.
Key KeyOf(const Row& row) { return {row.alias, row.device, row.engine, row.engine_version, row.depth, row.threads}; }

/// Windows of all visits to one model.
struct Windows {
  ModelPoint point;
  std::vector<double> seconds, gb_s;  // gb_s is empty when a visit has none
  bool has_readings = true;
  std::optional<double> spec_gb_s;
};

void AddVisit(Windows& windows, const Row& row) {
  ++windows.point.visits;
  std::vector<double> seconds = row.token_s.empty() ? std::vector<double>{row.Seconds()} : row.token_s;
  windows.has_readings = windows.has_readings && !row.streamed_gb_s.empty();
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    windows.seconds.push_back(seconds[i]);
    if (!row.streamed_gb_s.empty()) {
      windows.gb_s.push_back(row.streamed_gb_s.size() == 1 ? row.streamed_gb_s[0] : row.streamed_gb_s[i]);
    }
  }
}

std::vector<Windows> ByModel(const Group& group) {
  std::vector<Windows> models;
  for (const Row* row : group.rows) {
    const auto found = std::ranges::find_if(models, [&](const Windows& windows) {
      return windows.point.model == row->ShortModel() && windows.point.bytes == row->Bytes();
    });
    Windows& windows = found != models.end() ? *found : models.emplace_back();
    if (windows.point.visits == 0) {
      windows.point.model = row->ShortModel();
      windows.point.architecture = row->architecture;
      windows.point.quantization = row->quantization;
      windows.point.experts = row->experts;
      windows.point.bytes = row->Bytes();
    }
    if (row->spec_gb_s) windows.spec_gb_s = row->spec_gb_s;
    AddVisit(windows, *row);
  }
  for (Windows& windows : models) {
    if (!windows.has_readings) windows.gb_s.clear();
    windows.point.windows = windows.seconds.size();
    windows.point.seconds = measure::Median(windows.seconds);
    windows.point.measured_tok_s = 1 / windows.point.seconds;
    if (windows.has_readings) windows.point.streamed_gb_s = measure::Median(windows.gb_s);
  }
  std::ranges::sort(models, {}, [](const Windows& windows) { return windows.point.bytes; });
  return models;
}

/// The median of what each window would have taken at the reference bandwidth.
double SecondsAt(const Windows& windows, double reference_gb_s, double memory_factor) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < windows.seconds.size(); ++i) {
    const double shift = windows.point.bytes / 1e9 * (1 / windows.gb_s[i] - 1 / reference_gb_s);
    seconds.push_back(windows.seconds[i] - memory_factor * shift);
  }
  return measure::Median(seconds);
}

std::vector<Point> PointsOf(const std::vector<ModelPoint>& models) {
  std::vector<Point> points;
  for (const ModelPoint& model : models) points.push_back({model.bytes, model.seconds});
  return points;
}

/// How much of a stream's time per byte a token's bytes follow when the memory changes its speed: the slope of seconds
/// per byte against the stream's, within each model. 1 where the memory kept its speed, so that nothing is to be
/// corrected.
double MemoryFactor(const std::vector<Windows>& models) {
  double products = 0, squares = 0, level = 0, token_squares = 0;
  std::size_t count = 0;
  for (const Windows& windows : models) {
    std::vector<double> stream, token;  // seconds per GB
    for (std::size_t i = 0; i < windows.seconds.size(); ++i) {
      stream.push_back(1 / windows.gb_s[i]);
      token.push_back(windows.seconds[i] / windows.point.bytes * 1e9);
    }
    const double stream_mean = measure::Mean(stream), token_mean = measure::Mean(token);
    for (std::size_t i = 0; i < stream.size(); ++i) {
      products += (stream[i] - stream_mean) * (token[i] - token_mean);
      squares += (stream[i] - stream_mean) * (stream[i] - stream_mean);
      token_squares += (token[i] - token_mean) * (token[i] - token_mean);
      level += stream[i];
      ++count;
    }
  }
  const auto windows = static_cast<double>(count);
  const bool is_steady = std::sqrt(squares / windows) < kSteadyMemory * level / windows;
  if (is_steady) return 1;
  // Of little that moved, noise of the readings makes any factor: then the stream's own.
  const double slope = products / squares;
  const double freedom = std::max(1.0, windows - static_cast<double>(models.size()) - 1);
  const double error = std::sqrt(std::max(0.0, token_squares - slope * products) / freedom / squares);
  return error > kMostFactorError ? 1 : std::clamp(slope, 0.0, kMostMemoryFactor);
}

/// Why a model can't be on the line; empty when it can.
std::string WhyNot(const Windows& windows, std::optional<double> published) {
  if (windows.point.experts > 0) {
    return fmt::format("a mixture of {} experts: few bytes a token, but a dense model's number of kernels",
                       windows.point.experts);
  }
  const RateCheck check = CheckRate(windows.point.bytes, windows.point.measured_tok_s, {}, published);
  return check.text;
}

void Split(std::vector<Windows>& models, std::optional<double> published, std::vector<Windows>& dense,
           std::vector<Windows>& others, std::vector<std::string>& reasons) {
  for (Windows& windows : models) {
    std::string reason = WhyNot(windows, published ? published : windows.spec_gb_s);
    if (reason.empty()) {
      dense.push_back(std::move(windows));
    } else {
      others.push_back(std::move(windows));
      reasons.push_back(std::move(reason));
    }
  }
}

std::string MostCommon(const std::vector<ModelPoint>& points, std::string ModelPoint::* field) {
  std::map<std::string, std::size_t> counts;
  for (const ModelPoint& point : points) ++counts[point.*field];
  return counts.empty() ? ""
                        : std::ranges::max_element(counts, {}, [](const auto& pair) { return pair.second; })->first;
}

void WarnOfLine(MachineFit& fit) {
  const std::size_t n = fit.points.size();
  if (n < kModelsAskedFor) {
    fit.warnings.push_back(fmt::format("{} models; the lab asks for at least {} of one family and one quantization{}",
                                       n, kModelsAskedFor, n < 3 ? ": through two points there is always a line" : ""));
  }
  if (fit.line.fixed_s() < 0) {
    fit.warnings.push_back(
        "the fixed cost is below zero: small models gain from a cache, or bytes were counted that are not read");
  }
  for (const ModelPoint& point : fit.points) {
    const double moved = point.left_out ? point.left_out->bandwidth_bytes_s / fit.line.bandwidth_bytes_s() - 1 : 0;
    if (n < 3 || (point.leverage <= kCarries && std::abs(moved) <= kMovesBandwidth)) continue;
    fit.warnings.push_back(fmt::format("{} carries the line: leverage {:.2f} of 1{}", point.model, point.leverage,
                                       point.left_out
                                           ? fmt::format("; without it the bandwidth is {:.1f} GB/s ({:+.0f} %)",
                                                         point.left_out->bandwidth_bytes_s / 1e9, 100 * moved)
                                           : std::string()));
  }
  const std::string usual = MostCommon(fit.points, &ModelPoint::quantization);
  const auto differs = [&](const ModelPoint& point) { return point.quantization != usual; };
  if (std::ranges::any_of(fit.points, differs)) {
    fit.warnings.push_back("models of several quantizations: their kernels differ, and so may their bandwidth");
  }
}

/// A family whose models lie off the line of the ladder's main one.
void FindFamilies(MachineFit& fit) {
  fit.architecture = MostCommon(fit.points, &ModelPoint::architecture);
  std::vector<Point> family;
  for (const ModelPoint& point : fit.points) {
    if (point.architecture == fit.architecture) family.push_back({point.bytes, point.seconds});
  }
  const Result<Line> line = Line::Fit(family, fit.noise);
  for (const ModelPoint& point : fit.points) {
    if (point.architecture == fit.architecture || !line || !line->HasIntervals()) continue;
    const measure::Interval expected = line->Predict(point.bytes, fit.confidence);
    const bool is_off = point.seconds < expected.low || point.seconds > expected.high;
    fit.findings.push_back(fmt::format(
        "{} is of architecture {}, the line's others are {}: {:+.2f} ms a token against their line{}", point.model,
        point.architecture, fit.architecture, 1e3 * (point.seconds - expected.estimate),
        is_off ? ", outside its interval: another fixed cost, a finding about the model" : ", inside its interval"));
  }
}

void FindModels(MachineFit& fit) {
  for (const ModelPoint& point : fit.points) {
    if (point.chance_off < kOffChance) {
      fit.findings.push_back(
          fmt::format("{} is off the line of all others by {:+.2f} ms (chance {:.2g}): another "
                      "architecture, a disturbed run, or more than one token per pass",
                      point.model, 1e3 * point.left_out->miss_s, point.chance_off));
    }
    const std::optional<double> streamed =
        fit.is_scaled ? std::optional(*fit.reference_gb_s * kReadingNoise) : fit.gap.streamed_gb_s;
    const RateCheck check = CheckRate(point.bytes, 1 / point.seconds, streamed, {});
    if (check.is_above_streamed) fit.findings.push_back(point.model + ": " + check.text);
  }
}

Result<MachineFit> FitGroup(const Group& group, const FitOptions& options) {
  MachineFit fit;
  const Row &first = *group.rows.front(), &last = *group.rows.back();
  fit.alias = first.alias;
  fit.device = first.device;
  fit.engine = first.engine;
  fit.engine_version = last.engine_version;
  fit.depth = first.depth;
  fit.threads = first.threads;
  fit.date = last.date;
  fit.confidence = options.confidence;

  std::vector<Windows> models = ByModel(group), dense, others;
  std::vector<std::string> reasons;
  std::optional<double> published = options.published_gb_s;
  for (const Windows& windows : models) published = published ? published : windows.spec_gb_s;
  Split(models, published, dense, others, reasons);

  std::vector<double> readings;
  bool has_readings = !dense.empty();
  for (const Windows& windows : dense) {
    has_readings = has_readings && windows.has_readings;
    if (windows.has_readings) readings.push_back(*windows.point.streamed_gb_s);
  }
  std::optional<double> streamed = options.streamed_gb_s;
  if (!streamed && !readings.empty()) streamed = measure::Median(readings);
  if (options.scale == Scale::kStreamed && !has_readings) {
    return Fail(Code::kLabLine, fit.alias, "rows without a bandwidth read beside them",
                "rows of `boltbeam ladder`, or no --scale streamed");
  }
  fit.is_scaled = has_readings && options.scale != Scale::kNone;
  if (fit.is_scaled) {
    fit.reference_gb_s = measure::Median(readings);
    fit.memory_factor = MemoryFactor(dense);
    for (Windows& windows : dense) {
      windows.point.seconds = SecondsAt(windows, *fit.reference_gb_s, fit.memory_factor);
    }
    for (Windows& windows : others) {
      if (windows.has_readings) windows.point.seconds = SecondsAt(windows, *fit.reference_gb_s, fit.memory_factor);
    }
  }
  for (Windows& windows : dense) fit.points.push_back(std::move(windows.point));

  const std::vector<Point> points = PointsOf(fit.points);
  fit.noise = options.noise.value_or(fit.is_scaled ? Noise::kRelative : Noise::kConstant);
  BOLTBEAM_ASSIGN(fit.line, Line::Fit(points, fit.noise));
  BOLTBEAM_ASSIGN(fit.ordinary, Line::Fit(points, Noise::kConstant));
  if (const Result<RobustLine> robust = FitRobust(points)) fit.robust = *robust;
  fit.fixed_s = fit.line.Fixed(options.confidence);
  const measure::Interval bandwidth = fit.line.Bandwidth(options.confidence);
  fit.bandwidth_gb_s = {bandwidth.estimate / 1e9, bandwidth.low / 1e9, bandwidth.high / 1e9};
  const auto left_out = LeaveOneOut(points, options.confidence, fit.noise);
  const std::vector<double> chances = OffTheLine(points, fit.noise);
  for (std::size_t i = 0; i < points.size(); ++i) {
    ModelPoint& point = fit.points[i];
    point.fitted_s = fit.line.SecondsAt(point.bytes);
    point.left_out = left_out[i];
    point.chance_off = chances[i];
    point.leverage = fit.line.leverage()[i];
    fit.worst_residual_s = std::max(fit.worst_residual_s, std::abs(point.seconds - point.fitted_s));
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    const double above = others[i].point.seconds - fit.line.SecondsAt(others[i].point.bytes);
    fit.excluded.push_back({std::move(others[i].point), std::move(reasons[i]), above});
  }
  fit.gap = ExplainGap(fit.bandwidth_gb_s.estimate, streamed, published, options.reached_gb_s);
  WarnOfLine(fit);
  FindFamilies(fit);
  FindModels(fit);
  return fit;
}

}  // namespace

Result<std::vector<MachineFit>> FitMachines(std::span<const Row> rows, const FitOptions& options) {
  if (rows.empty()) {
    return Fail(Code::kLabRow, "the ladder", "no rows of experiment \"ladder\"", "rows that `boltbeam ladder` writes");
  }
  std::vector<Key> order;
  std::map<Key, Group> groups;
  for (const Row& row : rows) {
    if (!groups.contains(KeyOf(row))) order.push_back(KeyOf(row));
    groups[KeyOf(row)].rows.push_back(&row);
  }
  std::vector<MachineFit> fits;
  std::vector<Error> without;
  for (const Key& key : order) {
    Result<MachineFit> fit = FitGroup(groups[key], options);
    if (!fit) {
      Error error = std::move(fit).error();
      const Row& row = *groups[key].rows.front();
      error.where = row.alias + (row.engine.empty() ? "" : ", " + row.engine) + ": " + error.where;
      without.push_back(std::move(error));
      continue;
    }
    fits.push_back(std::move(*fit));
  }
  if (fits.empty()) return std::unexpected(std::move(without.front()));
  for (const Error& error : without) fits.front().warnings.push_back("no line of other rows: " + error.Message());
  return fits;
}

}  // namespace boltbeam::lab
