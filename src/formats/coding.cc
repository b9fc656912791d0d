#include "formats/coding.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "formats/scale_word.h"

namespace boltbeam::formats {
namespace {

constexpr std::uint32_t kMostCodeBits = 4;  // of a plain code that looks its number up

/// Every number that an element can have, in ascending order.
std::vector<std::int32_t> NumbersOf(const Coding& coding) {
  if (!coding.index) return {-1, 0, 1};
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

/// Writes one block after another.
class Recoder {
 public:
  explicit Recoder(const Format& format)
      : coding_(*format.coding), plain_(*format.plain), layout_(*plain_.layout), codes_(format.elements) {
    const std::vector<std::int32_t> numbers = NumbersOf(coding_);
    lowest_ = numbers.front();
    code_of_.resize(static_cast<std::size_t>(numbers.back() - lowest_) + 1);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      code_of_[static_cast<std::size_t>(numbers[i] - lowest_)] = static_cast<std::uint8_t>(i);
    }
    if (coding_.index) index_ = PlacesOf(*coding_.index);
    if (coding_.signs) signs_ = PlacesOf(*coding_.signs);
    if (coding_.shifts) shifts_ = PlacesOf(*coding_.shifts);
  }

  void Recode(std::span<const std::byte> block, std::span<std::byte> out) {
    std::ranges::fill(out, std::byte{0});
    coding_.index ? GridCodes(block) : TritCodes(block);
    for (const Piece& piece : layout_.codes.pieces) {
      const std::uint32_t mask = (1U << piece.width) - 1;
      std::uint32_t bit = piece.base_bit;
      for (const std::uint8_t code : codes_) {
        out[bit / 8] |= static_cast<std::byte>(((code >> piece.shift) & mask) << (bit % 8));
        bit += piece.width;
      }
    }
    if (layout_.scales) {
      const std::uint32_t first = layout_.scales->pieces[0].base_bit / 8;
      Field raw = *coding_.scales;
      raw.bias = 0;
      for (std::uint32_t i = 0; i < plain_.elements / layout_.elements_per_scale; ++i) {
        const std::int32_t scale = coding_.step * ReadField(raw, block, i) - coding_.scales->bias;
        out[first + i] = static_cast<std::byte>(scale);
      }
    }
    const auto d = static_cast<std::uint32_t>(ReadField(coding_.d, block, 0));
    out[layout_.d.base_bit / 8] = static_cast<std::byte>(d & 0xFFU);
    out[layout_.d.base_bit / 8 + 1] = static_cast<std::byte>(d >> 8);
  }

 private:
  /// One run of bits inside one byte.
  struct Place {
    std::uint32_t byte = 0, position = 0, mask = 0, shift = 0;
  };
  using Places = std::vector<Place>;  // number after number, each with as many places as the field has pieces

  [[nodiscard]] Places PlacesOf(const GroupField& group) const {
    Places places;
    for (std::uint32_t i = 0; i < plain_.elements / group.elements; ++i) {
      for (const Piece& piece : group.field.pieces) {
        const std::uint32_t bit = piece.BitAddress(i);
        places.push_back({bit / 8, bit % 8, (1U << piece.width) - 1, piece.shift});
      }
    }
    return places;
  }

  static std::uint32_t Read(const Places& places, std::size_t pieces, std::size_t index,
                            std::span<const std::byte> block) {
    std::uint32_t value = 0;
    for (std::size_t p = index * pieces; p < (index + 1) * pieces; ++p) {
      const auto byte = std::to_integer<std::uint32_t>(block[places[p].byte]);
      value |= ((byte >> places[p].position) & places[p].mask) << places[p].shift;
    }
    return value;
  }

  void GridCodes(std::span<const std::byte> block) {
    const std::uint32_t group = coding_.index->elements;
    std::uint32_t signs = 0;
    std::int32_t shift = 0;
    const std::int32_t* entry = nullptr;
    for (std::uint32_t e = 0; e < codes_.size(); ++e) {
      if (e % group == 0) {
        entry = coding_.table.data() +
                std::size_t{Read(index_, coding_.index->field.pieces.size(), e / group, block)} * group;
      }
      if (coding_.signs && e % coding_.signs->elements == 0) {
        signs = Read(signs_, coding_.signs->field.pieces.size(), e / coding_.signs->elements, block);
        if (coding_.has_parity && std::popcount(signs) % 2 != 0) signs |= 1U << (coding_.signs->elements - 1);
      }
      if (coding_.shifts && e % coding_.shifts->elements == 0) {
        shift = Read(shifts_, coding_.shifts->field.pieces.size(), e / coding_.shifts->elements, block) != 0 ? -1 : 1;
      }
      std::int32_t number = entry[e % group];
      if (coding_.signs && ((signs >> (e % coding_.signs->elements)) & 1U) != 0) number = -number;
      codes_[e] = code_of_[static_cast<std::size_t>(number + shift - lowest_)];
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
  std::vector<std::uint8_t> codes_, code_of_;
  std::int32_t lowest_ = 0;
  Places index_, signs_, shifts_;
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
  if (coding.index) {
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
  }
  layout.d = {at, Encoding::kF16, 1, coding.factor};
  plain.bytes = at / 8 + 2;
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
