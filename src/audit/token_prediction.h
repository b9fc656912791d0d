// What a token is going to take, said before it is measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace boltbeam::audit {

/// With an interval that is meant to hold the truth nine times out of ten.
struct TokenPrediction {
  double value_ns = 0, low_ns = 0, high_ns = 0;
  std::string method;
};
inline constexpr double kPredictionConfidence = 0.9;

/// earlier: nanoseconds a byte of earlier tokens of this machine, from measurements. Three or more of them foretell by
/// their median and spread. With fewer the bytes at the chip's read bandwidth do, with what plans have so far lost
/// against that: the token takes 1 to 2 times as long. kUsage when neither is known; gb_s 0: not known.
Result<TokenPrediction> PredictToken(std::uint64_t bytes, double gb_s, std::span<const double> earlier);

}  // namespace boltbeam::audit
