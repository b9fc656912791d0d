// Fits a group of values to whole-number codes: value ~ scale * code + offset.
#pragma once

#include <cstdint>
#include <span>

namespace boltbeam::formats {

struct Fit {
  float scale = 0;
  float offset = 0;
};

enum class OffsetSide : std::uint8_t { kAny, kBelow, kAbove };  // of zero

/// No offset; the scale may be negative, so that the largest value takes the code of the largest magnitude.
Fit FitScale(std::span<const float> values, std::int32_t lowest, std::int32_t highest);

/// Codes from 0 to highest. Errors are weighted by amplitude + |value|: large weights matter more to a sum.
Fit FitScaleAndOffset(std::span<const float> values, std::int32_t highest, float amplitude, OffsetSide side);

/// Codes that stand for the numbers of a codebook. has_sign: whether the scale may be negative.
Fit FitCodebook(std::span<const float> values, std::span<const std::int32_t> codebook, bool has_sign);

/// The code whose number is nearest.
std::int32_t NearestCode(std::span<const std::int32_t> codebook, float value);

}  // namespace boltbeam::formats
