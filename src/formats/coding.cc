#include "formats/coding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "formats/scale_word.h"

namespace boltbeam::formats {
namespace {

constexpr std::uint32_t kMostCodeBits = 4;  // of a plain code that looks its number up

std::vector<std::int32_t> TableNumbers(const Coding& coding) {
  const std::set<std::int32_t> numbers(coding.table.begin(), coding.table.end());
  return {numbers.begin(), numbers.end()};
}

/// Whether every shift has a scale of its own and the table's numbers are evenly spaced: then codes can count them, and
/// where they begin, with the shift, is a minimum. That takes fewer bits than every number with every shift.
bool IsOffset(const Coding& coding) {
  if (!coding.shifts || coding.signs || !coding.scales || coding.shifts->elements != coding.elements_per_scale) {
    return false;
  }
  const std::vector<std::int32_t> numbers = TableNumbers(coding);
  if (numbers.size() < 2) return false;
  const std::int32_t spacing = numbers[1] - numbers[0];
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] - numbers[i - 1] != spacing) return false;
  }
  const std::int32_t largest = coding.step * ((1 << coding.scales->bits) - 1) - coding.scales->bias;
  return numbers[0] < 0 && largest * std::max(spacing, 1 - numbers[0]) <= 255;
}

/// Every number that a code can stand for, in ascending order.
std::vector<std::int32_t> NumbersOf(const Coding& coding) {
  if (!coding.index) return {-1, 0, 1};
  if (IsOffset(coding)) return TableNumbers(coding);
  std::set<std::int32_t> numbers;
  for (const std::int32_t number : coding.table) {
    for (const std::int32_t sign : {-1, 1}) {
      if (sign < 0 && !coding.signs) continue;
      for (const std::int32_t shift : {-1, 0, 1}) {
        if ((shift == 0) == coding.shifts.has_value()) continue;
        numbers.insert(sign * number + shift);
      }
    }
  }
  return {numbers.begin(), numbers.end()};
}

/// A field of `count` numbers side by side from base_bit on; codes in planes whose widths are powers of two.
Field Dense(std::uint32_t bits, std::uint32_t count, std::uint32_t base_bit) {
  Field field;
  field.bits = bits;
  std::uint32_t shift = 0;
  for (std::uint32_t width = 8; width > 0; width /= 2) {
    if ((bits & width) == 0) continue;
    field.pieces.push_back({width, shift, base_bit, {{count, width}}});
    base_bit += width * count;
    shift += width;
  }
  return field;
}

/// The low `width` bits of eight bytes side by side.
std::uint64_t Gather(std::uint64_t bytes, std::uint32_t width) {
  const auto mask = [](std::uint64_t bits, std::uint64_t every) { return ((1ULL << bits) - 1) * every; };
  std::uint64_t x = bytes & mask(width, 0x0101010101010101U);
  x = (x | x >> (8 - width)) & mask(2 * width, 0x0001000100010001U);
  x = (x | x >> (16 - 2 * width)) & mask(4 * width, 0x0000000100000001U);
  return (x | x >> (32 - 4 * width)) & mask(8 * width, 1);
}

/// Writes one block after another. The codes of a group are the bytes of one word, and those of every entry of the
/// table are looked up in two: as they are, and of the numbers with the other sign.
class Recoder {
 public:
  explicit Recoder(const Format& format)
      : coding_(*format.coding),
        plain_(*format.plain),
        layout_(*plain_.layout),
        is_offset_(IsOffset(coding_)),
        codes_(format.elements) {
    if (coding_.scales) scales_ = PlacesOf(*coding_.scales, format.elements / coding_.elements_per_scale);
    if (!coding_.index) return;
    const std::vector<std::int32_t> numbers = NumbersOf(coding_);
    if (is_offset_) {
      lowest_ = numbers[0];
      spacing_ = numbers[1] - numbers[0];
    }
    const std::uint32_t group = coding_.index->elements;
    const auto code_of = [&](std::int32_t number) {
      const auto found = std::ranges::lower_bound(numbers, number);  // a sign or shift that the row lacks gives none
      return static_cast<std::uint64_t>(found - numbers.begin()) & 0xFFU;
    };
    for (std::size_t shifted = 0; shifted < 2; ++shifted) {
      const std::int32_t shift = !coding_.shifts || is_offset_ ? 0 : shifted == 0 ? 1 : -1;
      Words& words = words_[shifted];
      for (std::size_t entry = 0; entry < coding_.table.size() / group; ++entry) {
        std::uint64_t plus = 0, minus = 0;
        for (std::uint32_t e = 0; e < group; ++e) {
          const std::int32_t number = coding_.table[entry * group + e];
          plus |= code_of(number + shift) << (8 * e);
          minus |= code_of(-number + shift) << (8 * e);
        }
        words.emplace_back(plus, minus);
      }
    }
    for (std::uint64_t bits = 0; bits < spread_.size(); ++bits) {
      for (std::uint32_t e = 0; e < 8; ++e) spread_[bits] |= ((bits >> e) & 1U) * 0xFFULL << (8 * e);
    }
    const auto places_of = [&](const GroupField& field) {
      return PlacesOf(field.field, format.elements / field.elements);
    };
    index_ = places_of(*coding_.index);
    if (coding_.signs) signs_ = places_of(*coding_.signs);
    if (coding_.shifts) shifts_ = places_of(*coding_.shifts);
  }

  void Recode(std::span<const std::byte> block, std::span<std::byte> out) {
    coding_.index ? GridCodes(block) : TritCodes(block);
    for (const Piece& piece : layout_.codes.pieces) {
      std::byte* to = out.data() + piece.base_bit / 8;
      for (std::size_t e = 0; e < codes_.size(); e += 8, to += piece.width) {
        std::uint64_t bytes = 0;
        std::memcpy(&bytes, &codes_[e], 8);
        const std::uint64_t bits = Gather(bytes >> piece.shift, piece.width);
        std::memcpy(to, &bits, piece.width);
      }
    }
    Scales(block, out);
    const auto d = static_cast<std::uint32_t>(ReadField(coding_.d, block, 0));
    const auto put_d = [&](std::uint32_t base_bit) {
      out[base_bit / 8] = static_cast<std::byte>(d & 0xFFU);
      out[base_bit / 8 + 1] = static_cast<std::byte>(d >> 8);
    };
    put_d(layout_.d.base_bit);
    if (layout_.m) put_d(layout_.m->base_bit);
  }

 private:
  /// One run of bits inside one byte.
  struct Place {
    std::uint32_t byte = 0, position = 0, mask = 0, shift = 0;
  };
  struct Places {
    std::vector<Place> list;            // number after number
    std::vector<std::uint32_t> starts;  // of each number in the list, and the list's end
  };

  /// Pieces that lie side by side in a byte, in the number as in the block, are read as one.
  static Places PlacesOf(const Field& field, std::uint32_t count) {
    Places places;
    for (std::uint32_t i = 0; i < count; ++i) {
      places.starts.push_back(static_cast<std::uint32_t>(places.list.size()));
      std::uint32_t end_bit = 0, end_shift = 0;
      for (const Piece& piece : field.pieces) {
        const std::uint32_t bit = piece.BitAddress(i);
        if (places.list.size() > places.starts.back() && bit == end_bit && piece.shift == end_shift && bit % 8 != 0) {
          Place& place = places.list.back();
          place.mask = place.mask << piece.width | ((1U << piece.width) - 1);
        } else {
          places.list.push_back({bit / 8, bit % 8, (1U << piece.width) - 1, piece.shift});
        }
        end_bit = bit + piece.width;
        end_shift = piece.shift + piece.width;
      }
    }
    places.starts.push_back(static_cast<std::uint32_t>(places.list.size()));
    return places;
  }

  static std::uint32_t Read(const Places& places, std::size_t index, std::span<const std::byte> block) {
    std::uint32_t value = 0;
    for (std::uint32_t p = places.starts[index]; p < places.starts[index + 1]; ++p) {
      const Place& place = places.list[p];
      const auto byte = std::to_integer<std::uint32_t>(block[place.byte]);
      value |= ((byte >> place.position) & place.mask) << place.shift;
    }
    return value;
  }

  void Scales(std::span<const std::byte> block, std::span<std::byte> out) const {
    if (!layout_.scales) return;
    const std::uint32_t first = layout_.scales->pieces[0].base_bit / 8;
    for (std::size_t i = 0; i + 1 < scales_.starts.size(); ++i) {
      const auto raw = static_cast<std::int32_t>(Read(scales_, i, block));
      const std::int32_t scale = coding_.step * raw - coding_.scales->bias;
      out[first + i] = static_cast<std::byte>(scale * spacing_);
      if (!is_offset_) continue;
      const std::int32_t shift = Read(shifts_, i, block) != 0 ? -1 : 1;
      out[layout_.minimums->pieces[0].base_bit / 8 + i] = static_cast<std::byte>(scale * (-lowest_ - shift));
    }
  }

  void GridCodes(std::span<const std::byte> block) {
    const std::uint32_t group = coding_.index->elements;
    std::uint32_t signs = 0;
    const Words* words = words_.data();
    for (std::uint32_t e = 0; e < codes_.size(); e += group) {
      if (coding_.signs && e % coding_.signs->elements == 0) {
        signs = Read(signs_, e / coding_.signs->elements, block);
        if (coding_.has_parity && std::popcount(signs) % 2 != 0) signs |= 1U << (coding_.signs->elements - 1);
      }
      if (coding_.shifts && e % coding_.shifts->elements == 0) {
        words = &words_[Read(shifts_, e / coding_.shifts->elements, block)];
      }
      const auto [plus, minus] = (*words)[Read(index_, e / group, block)];
      const std::uint64_t codes = plus ^ ((plus ^ minus) & spread_[signs & ((1U << group) - 1)]);
      std::memcpy(&codes_[e], &codes, group);
      signs >>= group;
    }
  }

  void TritCodes(std::span<const std::byte> block) {
    std::size_t element = 0;
    for (const TritRun& run : coding_.trits) {
      std::uint32_t power = 1;
      for (std::uint32_t digit = 0; digit < run.digits; ++digit, power *= 3) {
        for (std::uint32_t j = 0; j < run.bytes; ++j) {
          const auto byte = std::to_integer<std::uint32_t>(block[run.base_byte + j]);
          codes_[element++] = static_cast<std::uint8_t>(((byte * power & 0xFFU) * 3) >> 8);
        }
      }
    }
  }

  const Coding& coding_;
  const Format& plain_;
  const Layout& layout_;
  const bool is_offset_;
  std::int32_t lowest_ = 0, spacing_ = 1;                              // of a table whose shift is a minimum
  using Words = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // by entry: with plus and with minus signs

  std::vector<std::uint8_t> codes_;
  std::array<Words, 2> words_;               // by the bit of a shift
  std::array<std::uint64_t, 256> spread_{};  // a byte of ones for every bit
  Places index_, signs_, shifts_, scales_;
};

}  // namespace

Result<Format> PlainOf(const Format& format, const Coding& coding, const std::string& where) {
  const std::vector<std::int32_t> numbers = NumbersOf(coding);
  const auto bits = static_cast<std::uint32_t>(std::bit_width(numbers.size() - 1));
  if (bits > kMostCodeBits || numbers.front() < -127 || numbers.back() > 127) {
    return Fail(Code::kFormatRow, where, fmt::format("{} different numbers", numbers.size()), "16 of one byte");
  }
  Format plain;
  plain.name = format.name;
  plain.type = format.type;
  plain.elements = format.elements;
  Layout layout;
  layout.codes = Dense(bits, format.elements, 0);
  const bool is_offset = IsOffset(coding);
  if (is_offset) {
    // Codes from 0; their spacing is in the scales.
  } else if (coding.index) {
    layout.codebook = numbers;
    layout.codebook.resize(std::size_t{1} << bits, numbers.back());
  } else {
    layout.codes.bias = 1;
  }
  layout.elements_per_scale = coding.elements_per_scale;
  std::uint32_t at = bits * format.elements;
  if (coding.scales) {
    const std::uint32_t count = format.elements / coding.elements_per_scale;
    layout.scales = Dense(8, count, at);
    at += 8 * count;
    if (is_offset) {
      layout.minimums = Dense(8, count, at);
      at += 8 * count;
    }
  }
  layout.d = {at, Encoding::kF16, 1, coding.factor};
  at += 16;
  if (is_offset) {
    layout.m = {at, Encoding::kF16, -1, coding.factor};
    at += 16;
  }
  plain.bytes = at / 8;
  plain.layout = std::move(layout);
  return plain;
}

Result<void> ToPlain(const Format& format, std::span<const std::byte> blocks, std::span<std::byte> plain) {
  if (!format.coding) {
    return Fail(Code::kUnsupportedFormat, format.name, "no coding of its own", "a format with a coded row");
  }
  const std::size_t count = blocks.size() / format.bytes;
  if (blocks.size() % format.bytes != 0 || plain.size() != count * format.plain->bytes) {
    return Fail(Code::kFormatBlocks, format.name, fmt::format("{} bytes for {}", plain.size(), blocks.size()),
                fmt::format("{} for each {}", format.plain->bytes, format.bytes));
  }
  Recoder recoder(format);
  for (std::size_t b = 0; b < count; ++b) {
    recoder.Recode(blocks.subspan(b * format.bytes, format.bytes),
                   plain.subspan(b * format.plain->bytes, format.plain->bytes));
  }
  return {};
}

}  // namespace boltbeam::formats
