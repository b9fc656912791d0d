#include "search/trial_samples.h"

#include <nlohmann/json.hpp>

namespace boltbeam::search {
namespace {

using nlohmann::json;

constexpr int kResamples = 1000;

}  // namespace

measure::Interval PairedWindows::Ratio() const {
  const measure::Interval ratio = measure::PairedRatio(best, own, seed, kResamples);
  return is_inverse ? measure::Interval{1 / ratio.estimate, 1 / ratio.high, 1 / ratio.low} : ratio;
}

measure::Interval Product(const measure::Interval& a, const measure::Interval& b) {
  return {a.estimate * b.estimate, a.low * b.low, a.high * b.high};
}

measure::Interval RatioOf(std::span<const PairedWindows> stages) {
  measure::Interval product{1, 1, 1};
  for (const PairedWindows& stage : stages) product = Product(product, stage.Ratio());
  return product;
}

std::string TrialSamples(std::span<const PairedWindows> stages) {
  json list = json::array();
  for (const PairedWindows& stage : stages) {
    list.push_back(
        {{"best_ns", stage.best}, {"own_ns", stage.own}, {"seed", stage.seed}, {"inverse", stage.is_inverse}});
  }
  return json{{"schema", kTrialSamplesFormat}, {"stages", std::move(list)}}.dump();
}

Result<json> RederiveTrial(std::string_view samples) {
  try {
    const json object = json::parse(samples);
    std::vector<PairedWindows> stages;
    for (const json& one : object.at("stages")) {
      PairedWindows stage;
      one.at("best_ns").get_to(stage.best);
      one.at("own_ns").get_to(stage.own);
      one.at("seed").get_to(stage.seed);
      one.at("inverse").get_to(stage.is_inverse);
      if (stage.best.empty() || stage.best.size() != stage.own.size()) {
        return Fail(Code::kJson, "samples", "windows without their pairs", "as many of both candidates");
      }
      stages.push_back(std::move(stage));
    }
    if (stages.empty()) return Fail(Code::kJson, "samples", "no stage", "at least one");
    const measure::Interval ratio = RatioOf(stages);
    return json{{"ratio", ratio.estimate}, {"ratio_low", ratio.low}, {"ratio_high", ratio.high}};
  } catch (const json::exception& error) {
    return Fail(Code::kJson, "samples", error.what(), std::string(kTrialSamplesFormat));
  }
}

}  // namespace boltbeam::search
