// Weight formats as data: block sizes of every GGUF tensor type, and for those that can be described so, the bit layout
// that the reference dequantizer interprets and the kernel generator derives its unpacking from.
//
// weight = d * factor * scale * (codebook[code] or code) + m_sign * m * minimum. A float format has no fields:
// `encoding` says it. Sources: data/formats/*.json name theirs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace boltbeam::formats {

/// Element i of a field: for every piece, address = base_bit + sum over digits, least significant first, of
/// (i mod radix) * stride, i /= radix; value |= bits[address, width] << shift.
struct Piece {
  std::uint32_t width = 0;
  std::uint32_t shift = 0;
  std::uint32_t base_bit = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> digits;  // (radix, stride in bits)

  [[nodiscard]] std::uint32_t BitAddress(std::uint32_t index) const;
};

/// How a float is stored. kE8m0Half: a byte, 2^(byte - 128). kUe4m3Half: a byte without sign, four bits of exponent and
/// three of fraction, half of what they say; 0x7F is 0. kOne: no bits, always 1.
enum class Encoding : std::uint8_t { kF32, kF16, kBf16, kE8m0Half, kUe4m3Half, kOne };

struct Field {
  std::uint32_t bits = 0;
  bool is_signed = false;
  std::int32_t bias = 0;
  std::vector<Piece> pieces;
  std::optional<Encoding> encoding;  // of scales only: the bits are a float and no whole number
};

struct ScaleWord {
  std::uint32_t base_bit = 0;
  Encoding encoding = Encoding::kF16;
  std::int32_t sign = 1;  // of m only
  float factor = 1;       // a power of two; a row gives it to d alone
};

/// The layout of one block. Float formats have only `encoding`.
struct Layout {
  std::uint32_t elements_per_scale = 0;
  std::optional<Encoding> encoding;  // a plain float per element
  Field codes;
  std::optional<Field> scales;
  std::optional<Field> minimums;
  ScaleWord d;
  std::optional<ScaleWord> m;
  std::vector<std::int32_t> codebook;
  std::uint32_t unused_bits = 0;  // of a block: they belong to no number
};

struct Coding;  // coding.h

/// One GGUF tensor type.
struct Format {
  std::string name;              // "Q4_K"
  std::uint32_t type = 0;        // ggml's number
  std::uint32_t elements = 0;    // per block
  std::uint32_t bytes = 0;       // per block
  std::optional<Layout> layout;  // absent: coded, or sized and bounded, but not dequantised or run
  /// Numbers that are no bits of their own (indices into tables of groups, digits to base 3): how they are made, and
  /// the format of blocks that hold the same numbers as bits in fixed places. ToPlain writes those.
  std::shared_ptr<const Coding> coding;
  std::shared_ptr<const Format> plain;

  /// The format whose blocks kernels read: this one, or the plain one of a coding.
  [[nodiscard]] const Format& Plain() const { return plain ? *plain : *this; }
  [[nodiscard]] bool IsKnown() const { return Plain().layout.has_value(); }
  [[nodiscard]] double BitsPerWeight() const { return 8.0 * bytes / elements; }
};

std::span<const Format> AllFormats();
const Format* FindType(std::uint32_t ggml_type);  // nullptr: unknown
const Format* FindFormat(std::string_view name);  // nullptr: unknown
bool IsRemovedType(std::uint32_t ggml_type);      // numbers that ggml has retired

/// The reference dequantizer, in double precision, by interpreting the layout. blocks holds whole blocks of the format;
/// out has elements for each. Slow on purpose: it is what every kernel is checked against.
Result<void> Dequantize(const Format& format, std::span<const std::byte> blocks, std::span<double> out);

/// Whole blocks of a format with a coding -> as many blocks of its plain format, the same weights to the last bit.
Result<void> ToPlain(const Format& format, std::span<const std::byte> blocks, std::span<std::byte> plain);

/// Quantises whole blocks; kUnsupportedFormat when there is no quantizer for this format.
Result<void> Quantize(const Format& format, std::span<const float> values, std::span<std::byte> blocks);
bool CanQuantize(const Format& format);

/// The numbers that one block is made of, as its fields hold them: codes, scales and minimums are the stored numbers
/// after bias and sign (a code of Q6_K is -32 to 31). Empty scales or minimums: the format has none.
struct BlockParts {
  std::span<const std::int32_t> codes;
  std::span<const std::int32_t> scales;
  std::span<const std::int32_t> minimums;
  float d = 0;
  float m = 0;
};

/// Writes explicit numbers into blocks: what quantizers and random models are made with. Made once per format, since it
/// works out where every bit lies. The smallest and largest number of each field are those that fit it.
class Packer {
 public:
  static Result<Packer> For(const Format& format);  // kUnsupportedFormat: no layout, or a plain float

  /// kFormatBlocks: a count that is not the format's; kFormatValue: a number that does not fit its field.
  Result<void> Pack(const BlockParts& parts, std::span<std::byte> block) const;

 private:
  /// One run of bits inside one byte of the block.
  struct Slot {
    std::uint32_t byte = 0;
    std::uint32_t position = 0;  // of the lowest bit in the byte
    std::uint32_t mask = 0;
    std::uint32_t shift = 0;  // of these bits in the number
  };
  /// The slots of every element of a field, element by element.
  struct Places {
    std::vector<Slot> slots;
    std::uint32_t count = 0;
    std::int32_t bias = 0, lowest = 0, highest = 0;
  };

  static Places PlacesOf(const Field& field, std::uint32_t count);
  static Result<void> Put(const Places& places, std::string_view what, std::span<const std::int32_t> numbers,
                          std::span<std::byte> block);

  std::string name_;
  std::uint32_t bytes_ = 0;
  Places codes_, scales_, minimums_;
  ScaleWord d_;
  std::optional<ScaleWord> m_;
};

/// The smallest and the largest number that a field can hold.
std::int32_t LowestOf(const Field& field);
std::int32_t HighestOf(const Field& field);

/// The number that element index of a field holds in a block.
std::int32_t ReadField(const Field& field, std::span<const std::byte> block, std::uint32_t index);

/// Reads a registry: data/formats/types.json, rows.json and grids.json as text. kFormatRow names the row and what is
/// wrong with it.
struct Registry {
  std::vector<Format> formats;
  std::vector<std::uint32_t> removed_types;
};
Result<Registry> ParseRegistry(std::string_view types_json, std::string_view rows_json,
                               std::string_view grids_json = {});

float HalfToFloat(std::uint16_t half);
std::uint16_t FloatToHalf(float value);  // round to nearest even

}  // namespace boltbeam::formats
