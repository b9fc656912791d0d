#include "kernel/weight_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/families/scales.h"

namespace boltbeam::kernel {
namespace {

constexpr std::uint32_t kChunk = 32;        // elements: eight quads of n bits are n words
constexpr std::uint32_t kMostChunk = 256;   // of blocks that are no multiple of it
constexpr std::uint32_t kSumsPerGroup = 4;  // minimums per word
constexpr std::uint32_t kHalfBits = 4;      // of a scale that shares a byte
constexpr std::int32_t kMostSigned = 127;
constexpr std::uint32_t kWordBytes = 4;  // a block is rearranged in whole words
constexpr std::int32_t kMost16 = 32767;
constexpr std::int64_t kMost32 = 2147483647;
constexpr std::size_t kMostCodebook = 16;  // entries: one table lookup

std::unexpected<Error> Illegal(const formats::Format& format, std::string reason) {
  return Fail(Code::kKernelIllegal, format.name, std::move(reason),
              "a format whose layout a kernel can be derived from");
}

/// Quads of codes of `bits` bits side by side in words: whole ones first, then what is left over of each byte.
void PlaceCodes(WeightLayout& layout, std::uint32_t bits) {
  const std::uint32_t quads = layout.chunk_elements / 4;
  const std::uint32_t whole = 8 / bits;
  layout.code_words = (quads * bits + 7) / 8;
  std::vector<CodePiece> open;  // of a quad whose bits come from several words
  std::uint32_t have = 0;       // of its bits
  for (std::uint32_t word = 0; word < layout.code_words; ++word) {
    for (std::uint32_t i = 0; i < whole; ++i) layout.quads.push_back({{word, i * bits, bits, 0}});
    for (std::uint32_t at = whole * bits; at < 8;) {
      const std::uint32_t width = std::min(8 - at, bits - have);
      open.push_back({word, at, width, have});
      at += width;
      have += width;
      if (have < bits) continue;
      layout.quads.push_back(std::move(open));
      open.clear();
      have = 0;
    }
  }
  layout.quads.resize(quads);
}

/// Of the whole numbers that a field stands for.
std::int64_t LargestMagnitude(const formats::Field& field) {
  if (field.is_signed) return std::int64_t{1} << (field.bits - 1);
  return std::max<std::int64_t>(field.bias, (std::int64_t{1} << field.bits) - 1 - field.bias);
}

WeightLayout FloatLayout(const formats::Format& format, std::uint32_t lanes) {
  WeightLayout layout;
  layout.format = &format;
  layout.lanes = lanes;
  layout.is_float = true;
  layout.elements = 1;
  switch (*format.layout->encoding) {
    case formats::Encoding::kF16:
      layout.float_memory = Memory::kF16;
      break;
    case formats::Encoding::kBf16:
      layout.float_memory = Memory::kBf16;
      break;
    default:
      layout.float_memory = Memory::kWord;
      break;
  }
  layout.block_bytes = format.bytes * lanes;
  return layout;
}

/// Sets bias and code_max: signed codes and codebooks become unsigned bytes.
void ChooseStoredCodes(const formats::Layout& row, WeightLayout& layout) {
  if (!row.codebook.empty()) {
    const auto [lowest, highest] = std::ranges::minmax(row.codebook);
    layout.bias = std::max(0, -lowest);
    layout.code_max = highest + layout.bias;
  } else if (row.codes.is_signed) {
    layout.bias = 1 << (row.codes.bits - 1);
    layout.code_max = (1 << row.codes.bits) - 1;
  } else {
    layout.bias = row.codes.bias;
    layout.code_max = (1 << row.codes.bits) - 1;
  }
}

void PlaceFields(WeightLayout& layout, std::uint32_t bits) {
  const std::uint32_t lanes = layout.lanes;
  layout.chunk_offset = (layout.MinimumWords() + layout.ScaleWords()) * 4 * lanes;
  std::uint32_t at = 0;
  layout.scale_offset = at;
  if (layout.has_scales && layout.scale_place == ScalePlace::kBytes) at += layout.SubsPerChunk() * lanes;
  if (layout.has_scales && layout.scale_place == ScalePlace::kWords) at += layout.SubsPerChunk() * 4 * lanes;
  PlaceCodes(layout, bits);
  layout.code_offset = at;
  layout.chunk_bytes = at + layout.code_words * 4 * lanes;
  layout.d_offset = layout.chunk_offset + layout.chunks * layout.chunk_bytes;
  const formats::Layout& row = *layout.format->layout;
  const auto bytes = [&](formats::Encoding encoding) {
    return layout.scales == ScaleForm::kWords && encoding != formats::Encoding::kOne ? 4 : ScaleBytes(encoding);
  };
  layout.d_bytes = bytes(row.d.encoding);
  layout.m_bytes = layout.has_m ? bytes(row.m->encoding) : 0;
  layout.m_offset = layout.d_offset + layout.d_bytes * lanes;
  layout.block_bytes = layout.m_offset + layout.m_bytes * lanes;
}

ScalePlace PlaceOfScales(const formats::Layout& row, const WeightLayout& layout) {
  if (layout.scales == ScaleForm::kWords) return ScalePlace::kWords;
  if (layout.scales == ScaleForm::kBytes) return ScalePlace::kBytes;
  if (!layout.has_minimums || row.scales->is_signed || row.scales->encoding) return ScalePlace::kBytes;
  const std::uint32_t scale_bits = row.scales->bits, minimum_bits = row.minimums->bits;
  if (scale_bits <= kHalfBits && minimum_bits <= kHalfBits) return ScalePlace::kHalves;
  const bool fits = scale_bits > kHalfBits && scale_bits - kHalfBits + minimum_bits <= 8;
  return fits && layout.elements / layout.scale_elements % 8 == 0 ? ScalePlace::kSpread : ScalePlace::kBytes;
}

/// Scales of a byte are stored as what they stand for where that is a signed byte; words always are.
void ChooseStoredScales(const formats::Layout& row, WeightLayout& layout) {
  if (!layout.has_scales || row.scales->encoding) return;
  const formats::Field& field = *row.scales;
  const std::int32_t highest = (1 << field.bits) - 1 - field.bias;
  const bool fits = !field.is_signed && field.bias > 0 && highest <= kMostSigned && field.bias <= kMostSigned;
  layout.has_signed_scales = field.is_signed || fits;
  const bool is_written_out = layout.scale_place == ScalePlace::kBytes && fits;
  layout.scale_bias = is_written_out || layout.scale_place == ScalePlace::kWords ? 0 : field.bias;
}

/// Elements of a chunk and of a sub-block; the reason when there is no such division.
Result<void> ChooseChunks(const formats::Format& format, const formats::Layout& row, WeightLayout& layout) {
  const bool whole = format.elements % kChunk == 0;
  layout.chunk_elements = whole ? kChunk : format.elements;
  if (layout.has_scales) {
    layout.scale_elements = row.elements_per_scale;
    if (layout.scale_elements % 4 != 0) {
      return Illegal(format, fmt::format("{} elements share a scale", layout.scale_elements));
    }
    if (layout.chunk_elements % layout.scale_elements != 0) {
      const bool larger = layout.scale_elements % kChunk == 0;
      layout.chunk_elements = larger ? layout.scale_elements : format.elements;
    }
  } else {
    layout.scale_elements = layout.chunk_elements;
  }
  if (layout.chunk_elements % 4 != 0 || layout.chunk_elements > kMostChunk) {
    return Illegal(format, fmt::format("blocks of {} elements", format.elements));
  }
  layout.chunks = format.elements / layout.chunk_elements;
  return {};
}

}  // namespace

GemvGeometry GemvGeometry::Coarse() const {
  GemvGeometry geometry = *this;
  geometry.ordered = true;
  geometry.prefetch_bytes = 0;
  geometry.prefetch_once = false;
  geometry.prefetch_every = 1;
  return geometry;
}

std::uint32_t WeightLayout::ScaleWords() const {
  return scale_place == ScalePlace::kSpread ? elements / scale_elements / 8 : 0;
}

std::uint32_t WeightLayout::MinimumWords() const {
  return has_minimums ? (elements / scale_elements + kSumsPerGroup - 1) / kSumsPerGroup : 0;
}

std::uint32_t WeightLayout::PairDepth(Dot dot) const {
  if (is_float || dot != Dot::kMaddBytes) return 1;
  const std::int32_t factor_max = IsSplit(dot) ? kHalfBase - 1 : code_max;
  const std::int32_t fits = std::max(1, kMost16 / (2 * kMostSigned * factor_max));
  return std::min(static_cast<std::uint32_t>(fits), scale_elements / 4);
}

Result<WeightLayout> LayoutFor(const formats::Format& format, std::uint32_t lanes, ScaleForm scales) {
  const formats::Format& plain = format.Plain();
  if (!plain.layout) return Illegal(format, "its bit layout is not described");
  const formats::Layout& row = *plain.layout;
  if (row.encoding) return FloatLayout(format, lanes);
  if (plain.bytes < kWordBytes) return Illegal(format, fmt::format("blocks of {} bytes", plain.bytes));
  WeightLayout layout;
  layout.format = &plain;
  layout.lanes = lanes;
  layout.scales = scales;
  layout.elements = format.elements;
  layout.has_scales = row.scales.has_value();
  layout.has_minimums = row.minimums.has_value();
  layout.has_m = row.m.has_value();
  BOLTBEAM_TRY(ChooseChunks(format, row, layout));
  if (layout.has_minimums && (!layout.has_m || !layout.has_scales || row.minimums->is_signed ||
                              row.minimums->bias != 0 || row.minimums->bits > 8)) {
    return Illegal(format, "minimums in an unknown arrangement");
  }
  if (layout.has_scales && row.scales->bits > 8) {
    return Illegal(format, fmt::format("scales of {} bits", row.scales->bits));
  }
  if (row.codes.bits > 8 || row.codebook.size() > kMostCodebook) {
    return Illegal(format, fmt::format("codes of {} bits", row.codes.bits));
  }
  layout.scale_place = PlaceOfScales(row, layout);
  ChooseStoredScales(row, layout);
  ChooseStoredCodes(row, layout);
  PlaceFields(layout, row.codes.bits);
  return layout;
}

ActivationLayout ActivationsFor(const WeightLayout& layout, Dot dot) {
  ActivationLayout activations;
  if (layout.is_float) return activations;
  activations.is_float = false;
  activations.elements = layout.elements;
  activations.halves = dot == Dot::kMaddHalves;
  const std::uint32_t code_bytes = layout.elements * (activations.halves ? 2 : 1);
  const std::uint32_t subs = layout.elements / layout.scale_elements;
  activations.sum_elements = layout.scale_elements;
  std::uint32_t sums_bytes = 0;
  activations.bias = layout.bias - layout.Recentred(dot);
  if (activations.bias != 0) {
    activations.sums = ActivationLayout::Sums::kMinusBias;
    sums_bytes = subs * 4;
  } else if (layout.has_minimums) {
    activations.sums = ActivationLayout::Sums::kHalfPairs;
    sums_bytes = layout.MinimumWords() * 8;
  }
  activations.has_scaled_sum = layout.has_m && !layout.has_minimums;
  activations.sums_offset = code_bytes;
  activations.scale_offset = code_bytes + sums_bytes;
  activations.block_bytes = activations.scale_offset + (activations.has_scaled_sum ? 8 : 4);
  return activations;
}

std::string SumOverflow(const WeightLayout& layout) {
  if (layout.is_float) return {};
  const formats::Layout& row = *layout.format->layout;
  static_assert(kMostChunk * kMostSigned <= kMost16, "the activations that share a minimum sum up in 16 bits");
  const std::int64_t code = std::max(layout.bias, layout.code_max - layout.bias);
  // Scales that are floats, or that stand for some, multiply after the sub-block's sum has become a float.
  const bool is_scaled = layout.has_scales && !row.scales->encoding;
  const std::int64_t scale = is_scaled ? LargestMagnitude(*row.scales) : 1;
  const std::int64_t elements = layout.has_scales && !is_scaled ? layout.scale_elements : layout.elements;
  const std::int64_t sum = elements * kMostSigned * code * scale;
  if (sum > kMost32) {
    return fmt::format(
        "{} codes of up to {} times activations of up to {} times scales of up to {} sum to {}: 32 bits "
        "hold {}",
        elements, code, kMostSigned, scale, sum, kMost32);
  }
  const std::int64_t minimums =
      layout.has_minimums ? layout.elements * kMostSigned * LargestMagnitude(*row.minimums) : 0;
  if (minimums > kMost32) {
    return fmt::format("minimums times activations of {} elements sum to {}: 32 bits hold {}", layout.elements,
                       minimums, kMost32);
  }
  return {};
}

Result<void> CheckGeometry(const WeightLayout& layout, const GemvGeometry& geometry, std::uint64_t cols) {
  const auto illegal = [&](std::string reason) {
    return Fail(Code::kKernelIllegal, layout.format->name, std::move(reason), "a legal geometry");
  };
  if (cols == 0 || cols % layout.elements != 0) {
    return illegal(fmt::format("{} columns are no multiple of the block's {}", cols, layout.elements));
  }
  if (layout.is_float != (geometry.dot == Dot::kFloat))
    return illegal("float weights take float products, and only they");
  if (layout.bias != layout.Recentred(geometry.dot) && layout.has_minimums) {
    return illegal("a bias and minimums together");
  }
  if (const std::string overflow = SumOverflow(layout); !overflow.empty()) return illegal(overflow);
  if (geometry.rows() != layout.lanes || geometry.scales != layout.scales) {
    return illegal(fmt::format("a table of {} rows a group for a product of {}", layout.lanes, geometry.rows()));
  }
  if (geometry.lanes == 0 || geometry.columns == 0 || geometry.unroll == 0 || geometry.chains == 0) {
    return illegal("no lanes, columns, unroll or chains");
  }
  if (geometry.depth == 0 || geometry.depth > layout.PairDepth(geometry.dot)) {
    return illegal(fmt::format("{} pairs overflow 16 bits: {} fit", geometry.depth, layout.PairDepth(geometry.dot)));
  }
  return {};
}

}  // namespace boltbeam::kernel
