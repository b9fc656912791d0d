#include "lab/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>

#include "base/version.h"
#include "measure/environment.h"
#include "roofline/formulas.h"

namespace boltbeam::lab {
namespace {

constexpr double kLargeMiss = 1e-3;  // the lab's experience is a miss below it
// Sizes this near to the ladder's ends are still on it.
constexpr double kEdge = 0.01;
constexpr std::string_view kQuantity = "token_ns";

/// In what a forecast goes beyond what the ladder has seen.
std::vector<std::string> Extrapolations(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast,
                                        const CacheCost& cost, double added_bytes) {
  std::vector<std::string> beyond;
  const double least = fit.points.front().bytes, most = fit.points.back().bytes;
  if (model.unseen_bytes > 0) beyond.push_back(model.unseen);
  if (forecast.bytes > most * (1 + kEdge)) {
    beyond.push_back(fmt::format("{:.2f} times the bytes of the largest model", forecast.bytes / most));
  }
  if (forecast.bytes < least * (1 - kEdge)) {
    beyond.push_back(fmt::format("{:.2f} times the bytes of the smallest model", forecast.bytes / least));
  }
  if (added_bytes != 0 && cost.pairs == 0) {
    beyond.push_back(fmt::format(
        "the ladder ran at depth {} alone; the {:.3f} GB of cache that it did not read are taken to cost as much as "
        "weights, give or take all of it",
        fit.depth, std::abs(added_bytes) / 1e9));
  } else if (forecast.depth > std::max(fit.depth, cost.deepest)) {
    beyond.push_back(fmt::format("the ladder's deepest rows are at {}", cost.deepest));
  }
  const auto has = [&](std::string ModelPoint::* field, const std::string& value) {
    return std::ranges::any_of(fit.points, [&](const ModelPoint& point) { return point.*field == value; });
  };
  const bool knows_kinds = !fit.architecture.empty() && !model.architecture.empty();
  if (knows_kinds && !has(&ModelPoint::architecture, model.architecture)) {
    beyond.push_back(fmt::format("architecture {}, the ladder's is {}", model.architecture, fit.architecture));
  }
  const std::string& quantization = fit.points.front().quantization;
  if (!quantization.empty() && !model.quantization.empty() && !has(&ModelPoint::quantization, model.quantization)) {
    beyond.push_back(fmt::format("most of it is {}, the ladder's is {}", model.quantization, quantization));
  }
  return beyond;
}

/// What a token takes more at that memory speed than at the ladder's.
double MemoryShift(const MachineFit& fit, double bytes, double gb_s) {
  return roofline::MemoryShiftS(fit.memory_factor, bytes, *fit.reference_gb_s, gb_s);
}

/// The variance whose interval has that half-width.
Variance OfHalfWidth(double half, double confidence) {
  const std::array unit = {Variance{1, std::numeric_limits<double>::infinity()}};
  const double sigma = half / HalfWidth(unit, confidence);
  return {sigma * sigma, unit[0].freedom};
}

/// What is not known of the cache's bytes: from rows, or as half-width all of what they are taken to cost.
Variance OfDepth(const MachineFit& fit, const CacheCost& cost, double added_bytes, double confidence) {
  const double added_s = added_bytes / fit.line.bandwidth_bytes_s();
  if (cost.pairs > 0) return {cost.spread.value * added_s * added_s, cost.spread.freedom};
  return OfHalfWidth(added_s, confidence);
}

/// Both intervals about the estimate.
void Widen(const MachineFit& fit, const ModelFacts& model, const Variance& of_depth, double confidence,
           Forecast& forecast) {
  const double expected = forecast.seconds.estimate, square = expected * expected;
  forecast.in_session = forecast.seconds = {expected, 0, std::numeric_limits<double>::infinity()};
  if (!fit.line.HasIntervals()) return;
  const std::array own = {fit.line.PredictVariance(forecast.bytes),
                          OfHalfWidth(model.unseen_half_bytes / fit.line.bandwidth_bytes_s(), confidence), of_depth};
  const Variance &spread = fit.sessions.spread, &of_model = fit.sessions.of_model;
  const std::array all = {own[0], own[1], own[2], Variance{square * spread.value, spread.freedom},
                          Variance{square * of_model.value, of_model.freedom}};
  const double inner = HalfWidth(own, confidence), outer = HalfWidth(all, confidence);
  forecast.in_session = {expected, expected - inner, expected + inner};
  forecast.seconds = {expected, expected - outer, expected + outer};
  forecast.depth_half_s = HalfWidth(std::span(own).last(1), confidence);
}

/// The chip, its memory at the rate of the ladder: what a forecast holds for.
ledger::Subject SubjectOf(const MachineFit& fit, const ModelFacts& model) {
  ledger::Subject subject;
  subject.candidate = fit.engine.empty() ? "a runtime" : fit.engine;
  subject.chip = fit.device.empty() ? fit.alias : fit.device;  // rows of old need not name their chip
  subject.model = model.name;
  subject.model_hash = model.header_sha256;
  return subject;
}

}  // namespace

std::vector<Row> RowsOfOthers(std::span<const Row> rows, const ModelFacts& model) {
  std::vector<Row> others;
  std::ranges::copy_if(rows, std::back_inserter(others), [&](const Row& row) {
    const bool is_same_file = !row.header_sha256.empty() && row.header_sha256 == model.header_sha256;
    return !is_same_file && row.ShortModel() != model.name;
  });
  return others;
}

CacheCost CostOfCache(const MachineFit& fit) {
  constexpr std::size_t kPairsAskedFor = 3;
  CacheCost cost;
  std::vector<double> factors;
  for (const DepthCost& pair : fit.depths) {
    if (pair.added_bytes == 0) continue;
    factors.push_back(pair.added_s / (pair.added_bytes / fit.line.bandwidth_bytes_s()));
    cost.deepest = std::max(cost.deepest, pair.depth);
  }
  if (factors.size() < kPairsAskedFor) return {};
  const double deviation = measure::StandardDeviation(factors), count = static_cast<double>(factors.size());
  cost.factor = measure::Mean(factors);
  cost.spread = {deviation * deviation * (1 + 1 / count), count - 1};
  cost.pairs = factors.size();
  return cost;
}

Result<std::vector<Forecast>> Predict(const MachineFit& fit, const ModelFacts& model, const ForecastOptions& options) {
  if (model.experts > 0) {
    return Fail(Code::kLabLine, model.name, MixtureName(model.experts),
                "a dense model: a mixture's bytes are few but its kernels are not, so that it lies above the line");
  }
  if (options.at_gb_s && !fit.reference_gb_s) {
    return Fail(Code::kUsage, "--at", fmt::format("{} GB/s", *options.at_gb_s),
                "a ladder with bandwidths read beside its windows: this one has none to scale by");
  }
  const CacheCost cost = CostOfCache(fit);
  std::vector<Forecast> forecasts;
  for (const std::uint64_t depth : options.depths) {
    const std::optional<double> kv = model.kv_bytes(depth, options.cache);
    const std::optional<double> at_ladder = model.kv_bytes(fit.depth, options.cache);
    if (!kv || !at_ladder) continue;
    const double added_bytes = *kv - *at_ladder;
    Forecast forecast;
    forecast.depth = depth;
    forecast.kv_bytes = *kv;
    forecast.bytes = model.weight_bytes + *kv;
    forecast.seconds.estimate =
        fit.line.SecondsAt(forecast.bytes) + (cost.factor - 1) * added_bytes / fit.line.bandwidth_bytes_s();
    if (options.at_gb_s) forecast.seconds.estimate += MemoryShift(fit, forecast.bytes, *options.at_gb_s);
    Widen(fit, model, OfDepth(fit, cost, added_bytes, options.confidence), options.confidence, forecast);
    forecast.extrapolations = Extrapolations(fit, model, forecast, cost, added_bytes);
    if (added_bytes != 0 && cost.pairs > 0) {
      forecast.notes.push_back(fmt::format("a byte of the cache costs {:.2f} times one of weights, by {} pairs of rows",
                                           cost.factor, cost.pairs));
    }
    forecasts.push_back(std::move(forecast));
  }
  return forecasts;
}

ledger::Prediction ToRecord(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast, double confidence,
                            bool is_unseen) {
  ledger::Prediction record;
  record.subject = SubjectOf(fit, model);
  record.depth = forecast.depth;
  record.quantity = kQuantity;
  record.value = forecast.seconds.estimate * 1e9;
  record.low = forecast.seconds.low * 1e9;
  record.high = forecast.seconds.high * 1e9;
  record.confidence = confidence;
  record.method = is_unseen ? "the lab's line of other models" : "the lab's line";
  return record;
}

Miss Compare(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast, const Visit& visit,
             std::optional<double> at_gb_s) {
  Miss miss;
  miss.raw_s = measure::Median(visit.token_s);
  std::vector<double> seconds = visit.token_s;
  if (!visit.streamed_gb_s.empty()) miss.beside_gb_s = measure::Median(visit.streamed_gb_s);
  if (fit.reference_gb_s && miss.beside_gb_s) {
    miss.at_gb_s = at_gb_s.value_or(*fit.reference_gb_s);
    const double to_forecast = MemoryShift(fit, forecast.bytes, *miss.at_gb_s);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const double beside = visit.streamed_gb_s.size() == 1 ? visit.streamed_gb_s[0] : visit.streamed_gb_s[i];
      seconds[i] += to_forecast - MemoryShift(fit, forecast.bytes, beside);
    }
  }
  const double foretold = forecast.seconds.estimate;
  const auto holds = [](const measure::Interval& interval, double value) {
    return interval.low <= value && value <= interval.high;
  };
  miss.measured_s = measure::Median(seconds);
  miss.miss_s = miss.measured_s - foretold;
  miss.miss_share = miss.miss_s / foretold;
  miss.raw_miss_s = miss.raw_s - foretold;
  miss.raw_miss_share = miss.raw_miss_s / foretold;
  miss.is_inside = holds(forecast.seconds, miss.measured_s);
  miss.is_inside_session = holds(forecast.in_session, miss.measured_s);
  miss.is_large = std::abs(miss.miss_s) > kLargeMiss;
  if (miss.is_large) miss.notes.push_back(fmt::format("a miss of {:+.2f} ms, above a millisecond", 1e3 * miss.miss_s));
  if (!fit.architecture.empty() && !model.architecture.empty() && model.architecture != fit.architecture) {
    miss.notes.push_back(
        fmt::format("its architecture is {}, the ladder's {}: another fixed cost is a finding about "
                    "the model",
                    model.architecture, fit.architecture));
  }
  const std::optional<double> streamed = miss.beside_gb_s ? miss.beside_gb_s : fit.gap.streamed_gb_s;
  const RateCheck check = CheckRate(forecast.bytes, 1 / miss.raw_s, streamed, fit.gap.published_gb_s);
  if (!check.text.empty()) miss.notes.push_back(check.text);
  return miss;
}

ledger::Measurement ToRecord(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast, const Miss& miss,
                             const Visit& visit, const std::string& prediction) {
  const double shift = (miss.measured_s - miss.raw_s) * 1e9;
  ledger::Measurement record;
  record.subject = SubjectOf(fit, model);
  record.depth = forecast.depth;
  record.quantity = kQuantity;
  record.value = miss.measured_s * 1e9;
  constexpr double kLow = 0.25, kHigh = 0.75;
  record.low = std::min(record.value, measure::Quantile(visit.token_s, kLow) * 1e9 + shift);
  record.high = std::max(record.value, measure::Quantile(visit.token_s, kHigh) * 1e9 + shift);
  record.repetitions = visit.token_s.size();
  record.prediction = prediction;
  record.environment = {{"date", measure::UtcNow()},
                        {"boltbeam", base::kVersion},
                        {"raw_token_ns", miss.raw_s * 1e9},
                        {"miss_ns", miss.miss_s * 1e9},
                        {"raw_miss_ns", miss.raw_miss_s * 1e9}};
  if (fit.reference_gb_s) record.environment["reference_gb_s"] = *fit.reference_gb_s;
  if (!visit.streamed_gb_s.empty()) record.environment["streamed_gb_s"] = measure::Median(visit.streamed_gb_s);
  return record;
}

}  // namespace boltbeam::lab
