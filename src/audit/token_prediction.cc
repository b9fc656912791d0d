#include "audit/token_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/statistics.h"

namespace boltbeam::audit {
namespace {

TokenPrediction Around(double value_ns, double half, std::string method) {
  return {value_ns, value_ns * std::exp(-half), value_ns * std::exp(half), std::move(method)};
}

}  // namespace

Result<TokenPrediction> PredictToken(std::uint64_t bytes, double gb_s, std::span<const double> earlier) {
  const auto streamed = static_cast<double>(bytes);
  constexpr std::size_t kLeastEarlier = 3;
  std::vector<double> logs;
  for (const double ns_per_byte : earlier) {
    if (std::isfinite(ns_per_byte) && ns_per_byte > 0) logs.push_back(std::log(ns_per_byte));
  }
  if (logs.size() >= kLeastEarlier) {
    // Few values say little of their spread: none is believed below 3 %.
    constexpr double kLeastSpread = 0.03, kNormal = 1.4826, kQuantile = 1.645;
    const double spread = std::max(kLeastSpread, kNormal * measure::MedianAbsoluteDeviation(logs));
    const double half = kQuantile * spread * std::sqrt(1 + 1 / static_cast<double>(logs.size()));
    return Around(streamed * std::exp(measure::Median(logs)), half, "audit: earlier tokens");
  }
  if (!(gb_s > 0)) {
    return Fail(Code::kUsage, "--predict", "neither a measured bandwidth nor three earlier audits to foretell from",
                "boltbeam chip measure first");
  }
  constexpr double kMost = 2;  // times the floor
  return Around(streamed / gb_s * std::sqrt(kMost), std::log(kMost) / 2, "audit: bytes at the bandwidth");
}

}  // namespace boltbeam::audit
