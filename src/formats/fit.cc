#include "formats/fit.h"

#include <algorithm>
#include <cmath>

namespace boltbeam::formats {
namespace {

constexpr int kSteps = 8;                // tried ranges on either side of the plain one
constexpr float kStep = 0.1F;            // between them, in codes
constexpr std::int32_t kFineCodes = 64;  // with more codes than this, the plain range is as good as any

/// Adding and taking away 1.5 * 2^23 leaves the nearest whole number: cheaper in a loop than a call.
float Nearest(float value) {
  constexpr float kRounder = 12582912.0F;
  return (value + kRounder) - kRounder;
}

float Code(float value, float lowest, float highest) { return Nearest(std::min(std::max(value, lowest), highest)); }

}  // namespace

Fit FitScale(std::span<const float> values, std::int32_t lowest, std::int32_t highest) {
  float peak = 0;
  for (const float value : values) {
    if (std::fabs(value) > std::fabs(peak)) peak = value;
  }
  // The side with more codes takes the largest value.
  const float reach = static_cast<float>(-lowest > highest ? lowest : highest);
  if (peak == 0 || !std::isfinite(peak)) return {};
  if (highest - lowest > kFineCodes) return {std::fabs(peak) / std::fabs(reach), 0};
  const auto low = static_cast<float>(lowest);
  const auto high = static_cast<float>(highest);
  Fit best{peak / reach, 0};
  float best_gain = -1;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float inverse = (reach + kStep * static_cast<float>(step)) / peak;
    float value_code = 0;
    float code_code = 0;
    for (const float value : values) {
      const float code = Code(value * inverse, low, high);
      const float weight = value * value;
      value_code += weight * value * code;
      code_code += weight * code * code;
    }
    // The best scale for these codes is value_code / code_code; it removes this much of the weighted square error.
    const float gain = code_code > 0 ? value_code * value_code / code_code : 0;
    if (code_code > 0 && gain > best_gain) {
      best_gain = gain;
      best.scale = value_code / code_code;
    }
  }
  return best;
}

namespace {

/// Sums of one choice of codes: what the two normal equations of a weighted line need.
struct LineSums {
  float weight = 0, value = 0, code = 0, code_code = 0, value_code = 0;
};

/// The line through the points (code, value), its offset kept on the allowed side.
Fit Line(const LineSums& sums, OffsetSide side) {
  const float determinant = sums.weight * sums.code_code - sums.code * sums.code;
  if (!(determinant > 0)) return {};
  Fit fit{(sums.weight * sums.value_code - sums.value * sums.code) / determinant,
          (sums.code_code * sums.value - sums.code * sums.value_code) / determinant};
  const bool wrong_side =
      (side == OffsetSide::kBelow && fit.offset > 0) || (side == OffsetSide::kAbove && fit.offset < 0);
  if (wrong_side) fit = {sums.value_code / sums.code_code, 0};
  return fit;
}

float WeightedError(std::span<const float> values, const Fit& fit, float highest, float amplitude) {
  const float inverse = 1.0F / fit.scale;
  float error = 0;
  for (const float value : values) {
    const float code = Code((value - fit.offset) * inverse, 0, highest);
    const float difference = fit.scale * code + fit.offset - value;
    error += (amplitude + std::fabs(value)) * difference * difference;
  }
  return error;
}

}  // namespace

Fit FitScaleAndOffset(std::span<const float> values, std::int32_t highest, float amplitude, OffsetSide side) {
  auto [low, high] = std::ranges::minmax(values);
  if (side == OffsetSide::kBelow) low = std::min(low, 0.0F);
  if (side == OffsetSide::kAbove) low = std::max(low, 0.0F);
  if (!std::isfinite(low) || !std::isfinite(high)) return {};
  if (high <= low) return {0, low};
  const auto top = static_cast<float>(highest);
  Fit best{(high - low) / top, low};
  float best_error = WeightedError(values, best, top, amplitude);
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float inverse = (top + kStep * static_cast<float>(step)) / (high - low);
    LineSums sums;
    for (const float value : values) {
      const float code = Code((value - low) * inverse, 0, top);
      const float weight = amplitude + std::fabs(value);
      sums.weight += weight;
      sums.value += weight * value;
      sums.code += weight * code;
      sums.code_code += weight * code * code;
      sums.value_code += weight * value * code;
    }
    const Fit fit = Line(sums, side);
    if (!(fit.scale > 0)) continue;
    const float error = WeightedError(values, fit, top, amplitude);
    if (error < best_error) {
      best_error = error;
      best = fit;
    }
  }
  return best;
}

std::int32_t NearestCode(std::span<const std::int32_t> codebook, float value) {
  std::size_t best = 0;
  for (std::size_t code = 1; code < codebook.size(); ++code) {
    if (std::fabs(static_cast<float>(codebook[code]) - value) < std::fabs(static_cast<float>(codebook[best]) - value)) {
      best = code;
    }
  }
  return static_cast<std::int32_t>(best);
}

Fit FitCodebook(std::span<const float> values, std::span<const std::int32_t> codebook, bool has_sign) {
  float peak = 0;
  for (const float value : values) {
    if (std::fabs(value) > std::fabs(peak)) peak = value;
  }
  if (peak == 0 || !std::isfinite(peak)) return {};
  float reach = 0;  // the largest value takes the number of the largest magnitude
  for (const std::int32_t number : codebook) {
    if (std::fabs(static_cast<float>(number)) > std::fabs(reach)) reach = static_cast<float>(number);
  }
  if (!has_sign && (reach < 0) != (peak < 0)) reach = -reach;
  Fit best{peak / reach, 0};
  float best_gain = -1;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float inverse = reach * (1 + 0.02F * static_cast<float>(step)) / peak;
    float value_number = 0;
    float number_number = 0;
    for (const float value : values) {
      const auto number =
          static_cast<float>(codebook[static_cast<std::size_t>(NearestCode(codebook, value * inverse))]);
      const float weight = value * value;
      value_number += weight * value * number;
      number_number += weight * number * number;
    }
    const float gain = number_number > 0 ? value_number * value_number / number_number : 0;
    if (number_number > 0 && value_number / number_number * best.scale > 0 && gain > best_gain) {
      best_gain = gain;
      best.scale = value_number / number_number;
    }
  }
  return best;
}

}  // namespace boltbeam::formats
