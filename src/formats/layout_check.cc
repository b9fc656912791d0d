#include "formats/layout_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "formats/scale_word.h"

namespace boltbeam::formats {
namespace {

/// Marks the bits of a block as they are given to numbers.
class BitMap {
 public:
  BitMap(std::uint32_t bits, std::string where) : used_(bits), where_(std::move(where)) {}

  Result<void> Take(std::uint64_t address, std::uint32_t width, std::string_view what) {
    if (address + width > used_.size()) {
      return Fail(Code::kFormatRow, where_, fmt::format("{} reaches bit {}", what, address + width),
                  fmt::format("within the block's {} bits", used_.size()));
    }
    for (std::uint64_t bit = address; bit < address + width; ++bit) {
      if (used_[bit])
        return Fail(Code::kFormatRow, where_, fmt::format("{} uses bit {} again", what, bit), "each once");
      used_[bit] = true;
    }
    return {};
  }

  [[nodiscard]] Result<void> CheckFull(std::uint32_t unused_bits) const {
    if (std::ranges::count(used_, false) == unused_bits) return {};
    const auto unused = std::ranges::find(used_, false);
    return Fail(
        Code::kFormatRow, where_,
        unused == used_.end() ? "no bit is unused" : fmt::format("bit {} belongs to no number", unused - used_.begin()),
        fmt::format("{} bits unused, as the row says", unused_bits));
  }

 private:
  std::vector<bool> used_;
  std::string where_;
};

Result<void> CheckPieces(const Field& field, std::uint32_t count, std::string_view what, const std::string& where) {
  std::uint32_t covered = 0;
  for (const Piece& piece : field.pieces) {
    const std::uint32_t mask = ((1U << piece.width) - 1) << piece.shift;
    if ((covered & mask) != 0) return Fail(Code::kFormatRow, where, fmt::format("pieces of {} overlap", what), "none");
    covered |= mask;
    std::uint64_t product = 1;
    for (const auto& digit : piece.digits) product = std::min<std::uint64_t>(product * digit.first, 1U << 20);
    if (product != count) {
      return Fail(Code::kFormatRow, where, fmt::format("digits of {} number {} elements", what, product),
                  fmt::format("{}", count));
    }
  }
  if (covered != (std::uint32_t{1} << field.bits) - 1) {
    return Fail(Code::kFormatRow, where, fmt::format("pieces of {} do not make up {} bits", what, field.bits),
                "every bit from one piece");
  }
  return {};
}

Result<void> TakeField(const Field& field, std::uint32_t count, std::string_view what, const std::string& where,
                       BitMap& map) {
  BOLTBEAM_TRY(CheckPieces(field, count, what, where));
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const Piece& piece : field.pieces) {
      const std::uint32_t address = piece.BitAddress(i);
      if (address % 8 + piece.width > 8) {
        return Fail(Code::kFormatRow, where, fmt::format("a piece of {} crosses a byte at bit {}", what, address),
                    "pieces within one byte");
      }
      BOLTBEAM_TRY(map.Take(address, piece.width, what));
    }
  }
  return {};
}

Result<void> TakeWord(const ScaleWord& word, std::string_view what, const std::string& where, BitMap& map) {
  if (word.base_bit % 8 != 0) {
    return Fail(Code::kFormatRow, where, fmt::format("{} begins at bit {}", what, word.base_bit), "a whole byte");
  }
  return map.Take(word.base_bit, EncodingBits(word.encoding), what);
}

}  // namespace

Result<void> CheckLayout(const Layout& layout, std::uint32_t elements, std::uint32_t bytes, const std::string& where) {
  if (elements % layout.elements_per_scale != 0) {
    return Fail(Code::kFormatRow, where, fmt::format("{} elements per scale", layout.elements_per_scale),
                fmt::format("a divisor of {}", elements));
  }
  if (layout.codes.encoding || (layout.minimums && layout.minimums->encoding)) {
    return Fail(Code::kFormatRow, where, "an encoding of codes or minimums", "of scales only");
  }
  if (layout.scales && layout.scales->encoding &&
      (layout.scales->bits != EncodingBits(*layout.scales->encoding) || layout.scales->bits != 8 ||
       layout.scales->is_signed || layout.scales->bias != 0)) {
    return Fail(Code::kFormatRow, where, fmt::format("scales of {} bits with an encoding", layout.scales->bits),
                "8 bits without sign or bias, and an encoding of one byte");
  }
  if (layout.minimums && !layout.m) return Fail(Code::kFormatRow, where, "minimums without m", "both or m alone");
  if (!layout.codebook.empty()) {
    if (layout.codes.is_signed || layout.codes.bias != 0 ||
        layout.codebook.size() != (std::size_t{1} << layout.codes.bits)) {
      return Fail(Code::kFormatRow, where, fmt::format("a codebook of {} values", layout.codebook.size()),
                  "one value for each code, codes from 0");
    }
  }
  const std::uint32_t scale_count = elements / layout.elements_per_scale;
  BitMap map(bytes * 8, where);
  BOLTBEAM_TRY(TakeField(layout.codes, elements, "codes", where, map));
  if (layout.scales) BOLTBEAM_TRY(TakeField(*layout.scales, scale_count, "scales", where, map));
  if (layout.minimums) BOLTBEAM_TRY(TakeField(*layout.minimums, scale_count, "minimums", where, map));
  BOLTBEAM_TRY(TakeWord(layout.d, "d", where, map));
  if (layout.m) BOLTBEAM_TRY(TakeWord(*layout.m, "m", where, map));
  return map.CheckFull(layout.unused_bits);
}

Result<void> CheckCoding(const Coding& coding, std::uint32_t elements, std::uint32_t bytes, const std::string& where) {
  BitMap map(bytes * 8, where);
  const auto take = [&](const std::optional<GroupField>& group, std::string_view what) -> Result<void> {
    if (!group) return {};
    if (elements % group->elements != 0) {
      return Fail(Code::kFormatRow, where, fmt::format("{} in groups of {}", what, group->elements),
                  fmt::format("a divisor of {}", elements));
    }
    return TakeField(group->field, elements / group->elements, what, where, map);
  };
  BOLTBEAM_TRY(take(coding.index, "index"));
  if (elements % 8 != 0) return Fail(Code::kFormatRow, where, fmt::format("{} elements", elements), "a multiple of 8");
  if (coding.index) {
    const std::uint32_t group = coding.index->elements;
    const auto fits = [&](const std::optional<GroupField>& other) { return !other || other->elements % group == 0; };
    if (group > 8 || !fits(coding.signs) || !fits(coding.shifts)) {
      return Fail(Code::kFormatRow, where, fmt::format("groups of {} elements", group),
                  "at most 8, and groups of signs and shifts that they divide");
    }
  }
  BOLTBEAM_TRY(take(coding.signs, "signs"));
  BOLTBEAM_TRY(take(coding.shifts, "shifts"));
  std::uint64_t trits = 0;
  for (const TritRun& run : coding.trits) {
    BOLTBEAM_TRY(map.Take(std::uint64_t{run.base_byte} * 8, run.bytes * 8, "trits"));
    trits += std::uint64_t{run.bytes} * run.digits;
  }
  if (!coding.index && trits != elements) {
    return Fail(Code::kFormatRow, where, fmt::format("{} trits", trits), fmt::format("{}", elements));
  }
  std::optional<GroupField> scales;
  if (coding.scales) scales = {coding.elements_per_scale, *coding.scales};
  BOLTBEAM_TRY(take(scales, "scales"));
  if (coding.d.bits != 16 || coding.d.is_signed || coding.d.bias != 0) {
    return Fail(Code::kFormatRow, where, "d is not the bits of an f16", "16 bits");
  }
  BOLTBEAM_TRY(TakeField(coding.d, 1, "d", where, map));
  return map.CheckFull(0);
}

}  // namespace boltbeam::formats
