// Quantizers for every format with a layout whose scales are whole numbers, derived from it: codes are fitted group by
// group by weighted least squares, then the groups' scales and minimums are quantised in turn and the codes chosen
// again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "formats/fit.h"
#include "formats/format.h"
#include "formats/scale_word.h"

namespace boltbeam::formats {
namespace {

std::int32_t RoundInto(float value, std::int32_t lowest, std::int32_t highest) {
  if (!(value > static_cast<float>(lowest))) return lowest;  // NaN too
  return value < static_cast<float>(highest) ? static_cast<std::int32_t>(std::nearbyintf(value)) : highest;
}

/// The lowest code used. Codes of a whole signed byte leave the lowest out, so that every code can be negated.
std::int32_t LowestCode(const Field& codes) {
  return codes.is_signed && codes.bits == 8 ? -HighestOf(codes) : LowestOf(codes);
}

class BlockQuantizer {
 public:
  BlockQuantizer(const Format& format, Packer packer)
      : layout_(*format.layout),
        packer_(std::move(packer)),
        lowest_(LowestCode(layout_.codes)),
        highest_(HighestOf(layout_.codes)),
        codes_(format.elements),
        fits_(format.elements / layout_.elements_per_scale) {}

  Result<void> Quantize(std::span<const float> values, std::span<std::byte> block) {
    const float amplitude = Amplitude(values);
    for (std::size_t g = 0; g < fits_.size(); ++g) fits_[g] = FitGroup(Group(values, g), amplitude);
    BlockParts parts;
    parts.d = ChooseScales(values);
    parts.m = ChooseMinimums();
    ChooseCodes(values, parts.d, parts.m);
    parts.codes = codes_;
    parts.scales = scales_;
    parts.minimums = minimums_;
    return packer_.Pack(parts, block);
  }

 private:
  [[nodiscard]] std::span<const float> Group(std::span<const float> values, std::size_t group) const {
    return values.subspan(group * layout_.elements_per_scale, layout_.elements_per_scale);
  }

  /// The root mean square of the block: errors of values near zero count as much as this, not as nothing.
  static float Amplitude(std::span<const float> values) {
    float sum = 0;
    for (const float value : values) sum += value * value;
    return std::sqrt(sum / static_cast<float>(values.size()));
  }

  [[nodiscard]] Fit FitGroup(std::span<const float> values, float amplitude) const {
    if (!layout_.codebook.empty()) {
      return FitCodebook(values, layout_.codebook, layout_.d.encoding != Encoding::kE8m0Half);
    }
    if (!layout_.m) return FitScale(values, lowest_, highest_);
    // Stored minimums have no sign of their own: the offset can only go to the side of m's sign.
    const OffsetSide side = !layout_.minimums     ? OffsetSide::kAny
                            : layout_.m->sign < 0 ? OffsetSide::kBelow
                                                  : OffsetSide::kAbove;
    return FitScaleAndOffset(values, highest_, amplitude, side);
  }

  /// d, and the groups' scales as multiples of it.
  float ChooseScales(std::span<const float> values) {
    if (!layout_.scales) {
      return layout_.d.encoding == Encoding::kE8m0Half && !layout_.codebook.empty()
                 ? NearestPower(values, fits_[0].scale)
                 : RoundTo(layout_.d.encoding, fits_[0].scale);
    }
    const Field& field = *layout_.scales;
    float peak = 0;
    for (const Fit& fit : fits_) {
      if (std::fabs(fit.scale) > std::fabs(peak)) peak = fit.scale;
    }
    // A field that reaches further down than up gives its lowest number to the largest scale.
    const std::int32_t reach = -LowestOf(field) > HighestOf(field) ? LowestOf(field) : HighestOf(field);
    const float d = RoundTo(layout_.d.encoding, peak / static_cast<float>(reach));
    scales_.resize(fits_.size());
    for (std::size_t g = 0; g < fits_.size(); ++g) {
      scales_[g] = d == 0 ? std::clamp(0, LowestOf(field), HighestOf(field))
                          : RoundInto(fits_[g].scale / d, LowestOf(field), HighestOf(field));
    }
    return d;
  }

  /// Of the powers of two around a scale the one with the smaller error: they are too far apart to take the nearest.
  [[nodiscard]] float NearestPower(std::span<const float> values, float scale) const {
    float best = RoundTo(layout_.d.encoding, scale);
    float best_error = std::numeric_limits<float>::infinity();
    for (const float factor : {0.75F, 1.5F}) {
      const float power = RoundTo(layout_.d.encoding, scale * factor);
      float error = 0;
      for (const float value : values) {
        const auto code = static_cast<std::size_t>(NearestCode(layout_.codebook, value / power));
        const float difference = power * static_cast<float>(layout_.codebook[code]) - value;
        error += difference * difference;
      }
      if (error < best_error) {
        best_error = error;
        best = power;
      }
    }
    return best;
  }

  /// m, and the groups' minimums as multiples of it.
  float ChooseMinimums() {
    if (!layout_.m) return 0;
    const auto sign = static_cast<float>(layout_.m->sign);
    if (!layout_.minimums) return RoundTo(layout_.m->encoding, sign * fits_[0].offset);
    const std::int32_t highest = HighestOf(*layout_.minimums);
    float peak = 0;
    for (const Fit& fit : fits_) peak = std::max(peak, sign * fit.offset);
    const float m = RoundTo(layout_.m->encoding, peak / static_cast<float>(highest));
    minimums_.resize(fits_.size());
    for (std::size_t g = 0; g < fits_.size(); ++g) {
      minimums_[g] = m == 0 ? 0 : RoundInto(sign * fits_[g].offset / m, 0, highest);
    }
    return m;
  }

  /// The nearest codes under the scales and minimums as they are stored.
  void ChooseCodes(std::span<const float> values, float d, float m) {
    for (std::size_t g = 0; g < fits_.size(); ++g) {
      const float scale = layout_.scales ? d * static_cast<float>(scales_[g]) : d;
      const float offset = layout_.m ? static_cast<float>(layout_.m->sign) * m *
                                           (layout_.minimums ? static_cast<float>(minimums_[g]) : 1.0F)
                                     : 0.0F;
      const float inverse = scale == 0 ? 0.0F : 1.0F / scale;
      for (std::uint32_t i = 0; i < layout_.elements_per_scale; ++i) {
        const std::size_t element = g * layout_.elements_per_scale + i;
        const float number = (values[element] - offset) * inverse;
        codes_[element] =
            layout_.codebook.empty() ? RoundInto(number, lowest_, highest_) : NearestCode(layout_.codebook, number);
      }
    }
  }

  const Layout& layout_;
  Packer packer_;
  std::int32_t lowest_, highest_;
  std::vector<std::int32_t> codes_, scales_, minimums_;
  std::vector<Fit> fits_;
};

}  // namespace

bool CanQuantize(const Format& format) {
  if (!format.layout) return false;
  const Layout& layout = *format.layout;
  return layout.encoding || (layout.d.factor == 1 && !(layout.scales && layout.scales->encoding) &&
                             (layout.codebook.empty() || !layout.m));
}

Result<void> Quantize(const Format& format, std::span<const float> values, std::span<std::byte> blocks) {
  if (!CanQuantize(format)) {
    return Fail(Code::kUnsupportedFormat, format.name, "there is no quantizer for this format",
                "a plain float or a format whose scales are whole numbers");
  }
  if (values.size() % format.elements != 0 || blocks.size() % format.bytes != 0 ||
      values.size() / format.elements != blocks.size() / format.bytes) {
    return Fail(Code::kFormatBlocks, format.name, fmt::format("{} values for {} bytes", values.size(), blocks.size()),
                fmt::format("{} values for each {} bytes", format.elements, format.bytes));
  }
  if (format.layout->encoding) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      EncodeFloat(*format.layout->encoding, values[i], blocks.subspan(i * format.bytes, format.bytes));
    }
    return {};
  }
  BOLTBEAM_ASSIGN(Packer packer, Packer::For(format));
  BlockQuantizer quantizer(format, std::move(packer));
  for (std::size_t b = 0; b < values.size() / format.elements; ++b) {
    BOLTBEAM_TRY(quantizer.Quantize(values.subspan(b * format.elements, format.elements),
                                    blocks.subspan(b * format.bytes, format.bytes)));
  }
  return {};
}

}  // namespace boltbeam::formats
