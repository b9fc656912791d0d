// The reference dequantizer: interprets a format's layout, number by number, in double precision.
#include <fmt/format.h>

#include <vector>

#include "formats/format.h"
#include "formats/scale_word.h"

namespace boltbeam::formats {
namespace {

double ReadScale(const Field& field, std::span<const std::byte> block, std::uint32_t index) {
  const std::int32_t number = ReadField(field, block, index);
  if (!field.encoding) return number;
  const auto raw = static_cast<std::byte>(number);
  return DecodeFloat(*field.encoding, {&raw, 1});
}

void DequantizeBlock(const Format& format, std::span<const std::byte> block, std::span<double> out) {
  const Layout& layout = *format.layout;
  const double d = layout.d.factor * DecodeFloat(layout.d.encoding, block.subspan(layout.d.base_bit / 8));
  const double m = layout.m ? layout.m->sign * layout.m->factor *
                                  DecodeFloat(layout.m->encoding, block.subspan(layout.m->base_bit / 8))
                            : 0;
  for (std::uint32_t group = 0; group * layout.elements_per_scale < format.elements; ++group) {
    const double scale = layout.scales ? d * ReadScale(*layout.scales, block, group) : d;
    const double offset = layout.minimums ? m * ReadField(*layout.minimums, block, group) : m;
    for (std::uint32_t i = 0; i < layout.elements_per_scale; ++i) {
      const std::uint32_t element = group * layout.elements_per_scale + i;
      const std::int32_t code = ReadField(layout.codes, block, element);
      const std::int32_t value = layout.codebook.empty() ? code : layout.codebook[static_cast<std::size_t>(code)];
      // Without a minimum nothing is added, so that -0 stays -0 and an infinite m of another format can't enter.
      out[element] = layout.m ? scale * value + offset : scale * value;
    }
  }
}

}  // namespace

Result<void> Dequantize(const Format& format, std::span<const std::byte> blocks, std::span<double> out) {
  if (!format.IsKnown()) {
    return Fail(Code::kUnsupportedFormat, format.name, "no bit layout is known", "a format with a row in rows.json");
  }
  if (blocks.size() % format.bytes != 0) {
    return Fail(Code::kFormatBlocks, format.name, fmt::format("{} bytes", blocks.size()),
                fmt::format("a multiple of {}", format.bytes));
  }
  const std::size_t count = blocks.size() / format.bytes;
  if (out.size() % format.elements != 0 || out.size() / format.elements != count) {
    return Fail(Code::kFormatBlocks, format.name, fmt::format("{} elements for {} blocks", out.size(), count),
                fmt::format("{} elements for each block", format.elements));
  }
  if (format.coding) {
    std::vector<std::byte> plain(count * format.plain->bytes);
    BOLTBEAM_TRY(ToPlain(format, blocks, plain));
    return Dequantize(*format.plain, plain, out);
  }
  for (std::size_t b = 0; b < count; ++b) {
    const auto block = blocks.subspan(b * format.bytes, format.bytes);
    if (format.layout->encoding) {
      out[b] = DecodeFloat(*format.layout->encoding, block);
    } else {
      DequantizeBlock(format, block, out.subspan(b * format.elements, format.elements));
    }
  }
  return {};
}

}  // namespace boltbeam::formats
