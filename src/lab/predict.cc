#include "lab/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/version.h"
#include "measure/environment.h"

namespace boltbeam::lab {
namespace {

constexpr double kLargeMiss = 1e-3;  // the lab's experience is a miss below it
// Sizes this near to the ladder's ends are still on it.
constexpr double kEdge = 0.01;
constexpr std::string_view kQuantity = "token_ns";

/// In what a forecast goes beyond what the ladder has seen.
std::vector<std::string> Extrapolations(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast) {
  std::vector<std::string> beyond;
  const double least = fit.points.front().bytes, most = fit.points.back().bytes;
  if (forecast.bytes > most * (1 + kEdge)) {
    beyond.push_back(fmt::format("{:.2f} times the bytes of the largest model", forecast.bytes / most));
  }
  if (forecast.bytes < least * (1 - kEdge)) {
    beyond.push_back(fmt::format("{:.2f} times the bytes of the smallest model", forecast.bytes / least));
  }
  if (forecast.depth != fit.depth) beyond.push_back(fmt::format("the ladder ran at depth {}", fit.depth));
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
  return fit.memory_factor * bytes / 1e9 * (1 / gb_s - 1 / *fit.reference_gb_s);
}

/// The chip, its memory at the rate of the ladder: what a forecast holds for.
ledger::Subject SubjectOf(const MachineFit& fit, const ModelFacts& model) {
  ledger::Subject subject;
  subject.candidate = fit.engine.empty() ? "a runtime" : fit.engine;
  subject.chip = fit.device;
  subject.model = model.name;
  subject.model_hash = model.header_sha256;
  return subject;
}

}  // namespace

Result<std::vector<Forecast>> Predict(const MachineFit& fit, const ModelFacts& model, const ForecastOptions& options) {
  if (model.experts > 0) {
    return Fail(Code::kLabLine, model.name, fmt::format("a mixture of {} experts", model.experts),
                "a dense model: a mixture's bytes are few but its kernels are not, so that it lies above the line");
  }
  if (options.at_gb_s && !fit.reference_gb_s) {
    return Fail(Code::kUsage, "--at", fmt::format("{} GB/s", *options.at_gb_s),
                "a ladder with bandwidths read beside its windows: this one has none to scale by");
  }
  std::vector<Forecast> forecasts;
  for (const std::uint64_t depth : options.depths) {
    const std::optional<double> kv = model.kv_bytes(depth);
    if (!kv) continue;
    Forecast forecast;
    forecast.depth = depth;
    forecast.bytes = model.weight_bytes + *kv;
    forecast.seconds = fit.line.Predict(forecast.bytes, options.confidence);
    if (options.at_gb_s) {
      const double shift = MemoryShift(fit, forecast.bytes, *options.at_gb_s);
      forecast.seconds.estimate += shift;
      forecast.seconds.low += shift;
      forecast.seconds.high += shift;
    }
    forecast.extrapolations = Extrapolations(fit, model, forecast);
    forecasts.push_back(std::move(forecast));
  }
  return forecasts;
}

ledger::Prediction ToRecord(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast,
                            double confidence) {
  ledger::Prediction record;
  record.subject = SubjectOf(fit, model);
  record.depth = forecast.depth;
  record.quantity = kQuantity;
  record.value = forecast.seconds.estimate * 1e9;
  record.low = forecast.seconds.low * 1e9;
  record.high = forecast.seconds.high * 1e9;
  record.confidence = confidence;
  record.method = "the lab's line";
  return record;
}

Miss Compare(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast, const Visit& visit) {
  Miss miss;
  miss.raw_s = measure::Median(visit.token_s);
  std::vector<double> seconds = visit.token_s;
  if (fit.reference_gb_s && !visit.streamed_gb_s.empty()) {
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const double beside = visit.streamed_gb_s.size() == 1 ? visit.streamed_gb_s[0] : visit.streamed_gb_s[i];
      seconds[i] -= MemoryShift(fit, forecast.bytes, beside);
    }
  }
  miss.measured_s = measure::Median(seconds);
  miss.miss_s = miss.measured_s - forecast.seconds.estimate;
  miss.miss_share = miss.miss_s / forecast.seconds.estimate;
  miss.is_inside = forecast.seconds.low <= miss.measured_s && miss.measured_s <= forecast.seconds.high;
  miss.is_large = std::abs(miss.miss_s) > kLargeMiss;
  if (miss.is_large) miss.notes.push_back(fmt::format("a miss of {:+.2f} ms, above a millisecond", 1e3 * miss.miss_s));
  if (!fit.architecture.empty() && model.architecture != fit.architecture) {
    miss.notes.push_back(
        fmt::format("its architecture is {}, the ladder's {}: another fixed cost is a finding about "
                    "the model",
                    model.architecture, fit.architecture));
  }
  std::optional<double> streamed = fit.gap.streamed_gb_s;
  if (!visit.streamed_gb_s.empty()) streamed = measure::Median(visit.streamed_gb_s);
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
                        {"miss_ns", miss.miss_s * 1e9}};
  if (fit.reference_gb_s) record.environment["reference_gb_s"] = *fit.reference_gb_s;
  if (!visit.streamed_gb_s.empty()) record.environment["streamed_gb_s"] = measure::Median(visit.streamed_gb_s);
  return record;
}

}  // namespace boltbeam::lab
