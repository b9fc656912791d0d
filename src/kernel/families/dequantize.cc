#include <fmt/format.h>

#include <algorithm>

#include "kernel/families/elementwise.h"
#include "kernel/families/scales.h"
#include "kernel/families/state.h"

namespace boltbeam::kernel {
namespace {

class DequantizeRow {
 public:
  DequantizeRow(const formats::Format& format, const VectorShape& shape, std::uint16_t lanes, float factor)
      : format_(format),
        row_(*format.layout),
        lanes_(lanes),
        factor_(factor),
        b_(fmt::format("dequantize_row.{}.e{}.y{}.l{}", shape.elements, format.elements, format.bytes, lanes),
           fmt::format("{} weights of a row of the file, blocks of {} B, as f32{}", shape.elements, format.bytes,
                       factor == 1 ? "" : fmt::format(", times {}", factor))) {
    source_ = b_.AddBuffer("source");
    output_ = b_.AddBuffer("output", true);
    const auto row_bytes = static_cast<std::int64_t>(shape.elements / format.elements * format.bytes);
    // Plain floats have blocks of one element: take a vector of them at once.
    const std::int64_t blocks = row_.encoding ? lanes : 1;
    b_.Loop(b_.Begin(), b_.End(), b_.I64(1), {}, [&](Value column, auto) -> std::vector<Value> {
      const Value from = column * row_bytes;
      b_.Loop(from, from + row_bytes, b_.I64(blocks * format.bytes),
              {column * static_cast<std::int64_t>(shape.out_stride)},
              [&](Value at, std::span<const Value> to) -> std::vector<Value> {
                if (row_.encoding) {
                  b_.Store(output_, to[0], Scaled(b_.Load(source_, F(), FloatMemory(), at)));
                } else {
                  Block(at, to[0]);
                }
                return {to[0] + blocks * format.elements * 4};
              });
      return {};
    });
  }

  Program Build() && { return std::move(b_).Finish(); }

 private:
  Value Scaled(Value weight) { return factor_ == 1 ? weight : weight * b_.F32(factor_, lanes_); }
  Type F() const { return {Scalar::kF32, lanes_}; }
  Memory FloatMemory() const {
    if (*row_.encoding == formats::Encoding::kF16) return Memory::kF16;
    return *row_.encoding == formats::Encoding::kBf16 ? Memory::kBf16 : Memory::kWord;
  }

  void Block(Value from, Value to) {
    Value d = BlockScale(from, row_.d);
    if (row_.d.factor != 1) d = d * b_.F32(row_.d.factor);
    Value m = row_.m ? BlockScale(from, *row_.m) : Value();
    if (row_.m && row_.m->factor != 1) m = m * b_.F32(row_.m->factor);
    Value scale, minimum;
    for (std::uint32_t element = 0; element < format_.elements; element += lanes_) {
      if (element % row_.elements_per_scale == 0) {
        const std::uint32_t sub = element / row_.elements_per_scale;
        scale = row_.scales ? d * SubScale(from, *row_.scales, sub) : d;
        if (row_.m) {
          minimum = row_.minimums ? m * ToF32(Bits(from, *row_.minimums, sub)) : m;
          if (row_.m->sign < 0) minimum = b_.F32(0) - minimum;
        }
      }
      Value weight = Splat(scale, lanes_) * ToF32(Codes(from, element));
      if (row_.m) weight = weight + Splat(minimum, lanes_);
      b_.Store(output_, to, Scaled(weight), Memory::kWord, std::int64_t{element} * 4);
    }
  }

  Value BlockScale(Value from, const formats::ScaleWord& word) {
    return LoadScale(b_, source_, word.encoding, 1, from, word.base_bit / 8, false);
  }

  Value SubScale(Value from, const formats::Field& field, std::uint32_t sub) {
    if (!field.encoding) return ToF32(Bits(from, field, sub));
    return DecodeScale(b_, *field.encoding, CleanScale(*field.encoding, Bits(from, field, sub)));
  }

  /// One element of a field as an i32 scalar.
  Value Bits(Value from, const formats::Field& field, std::uint32_t index) {
    Value value;
    for (std::size_t p = 0; p < field.pieces.size(); ++p) {
      const formats::Piece& piece = field.pieces[p];
      const std::uint32_t bit = piece.BitAddress(index);
      Value bits = b_.Load(source_, {Scalar::kI32, 1}, Memory::kU8, from, bit / 8);
      bits = Shr(bits, static_cast<std::int32_t>(bit % 8)) & b_.U32((1U << piece.width) - 1);
      bits = Shl(bits, static_cast<std::int32_t>(piece.shift));
      value = p == 0 ? bits : value | bits;
    }
    return Finished(value, field);
  }

  Value Finished(Value value, const formats::Field& field) {
    if (field.is_signed) {
      const auto unused = static_cast<std::int32_t>(32 - field.bits);
      value = Sar(Shl(value, unused), unused);
    }
    return value - field.bias;
  }

  /// The codes of `lanes` elements from `first` on, one a lane, as signed integers or the codebook's values.
  Value Codes(Value from, std::uint32_t first) {
    Value value;
    for (std::size_t p = 0; p < row_.codes.pieces.size(); ++p) {
      const formats::Piece& piece = row_.codes.pieces[p];
      const std::uint32_t bit = piece.BitAddress(first);
      const std::uint32_t stride = lanes_ == 1 ? 8 : piece.BitAddress(first + 1) - bit;
      Value bits;
      if (stride == 8) {
        bits = b_.Load(source_, {Scalar::kI32, lanes_}, Memory::kU8, from, bit / 8);
        bits = Shr(bits, static_cast<std::int32_t>(bit % 8));
      } else {
        bits = b_.LoadBroadcast(source_, {Scalar::kI32, lanes_}, Memory::kU16, from, bit / 8);
        const Value shift = b_.LaneIndex(lanes_) * stride + bit % 8;
        bits = b_.Emit(Op::kShr, bits.type(), {bits, shift});
      }
      bits = Shl(bits & b_.U32((1U << piece.width) - 1, lanes_), static_cast<std::int32_t>(piece.shift));
      value = p == 0 ? bits : value | bits;
    }
    if (row_.codebook.empty()) return Finished(value, row_.codes);
    std::vector<std::int32_t> table = row_.codebook;
    table.resize(16);
    return Sar(Shl(b_.Table16(value, std::move(table)), 24), 24);
  }

  const formats::Format& format_;
  const formats::Layout& row_;
  const std::uint16_t lanes_;
  const float factor_;
  Builder b_;
  std::uint32_t source_ = 0, output_ = 0;
};

/// Whether the elements of every vector lie at equal distances: one byte, or so close that 16 bits hold them.
bool IsRegular(const formats::Layout& row, std::uint32_t elements, std::uint16_t lanes) {
  for (std::uint32_t first = 0; first < elements; first += lanes) {
    for (const formats::Piece& piece : row.codes.pieces) {
      const std::uint32_t bit = piece.BitAddress(first);
      const std::uint32_t stride = piece.BitAddress(first + 1) - bit;
      if (bit % 8 + piece.width > 8) return false;
      if (stride != 8 && bit % 8 + stride * (lanes - 1U) + piece.width > 16) return false;
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        if (piece.BitAddress(first + lane) != bit + lane * stride) return false;
      }
    }
  }
  return true;
}

}  // namespace

Result<Program> BuildDequantizeRow(const formats::Format& coded, const VectorShape& shape, float scale) {
  const formats::Format& format = coded.Plain();
  if (!format.layout || shape.elements % format.elements != 0) {
    return Fail(Code::kKernelIllegal, format.name, fmt::format("a row of {} elements", shape.elements),
                fmt::format("whole blocks of {} of a format whose bit layout is described", format.elements));
  }
  std::uint16_t lanes = LanesFor(shape.elements, shape.lanes);
  if (!format.layout->encoding) {
    if (format.layout->codes.bits > 8 || format.layout->codebook.size() > 16) {
      return Fail(Code::kKernelIllegal, format.name, fmt::format("codes of {} bits", format.layout->codes.bits),
                  "8, or 4 of a codebook");
    }
    lanes = LanesFor(format.layout->elements_per_scale, std::min<std::uint16_t>(shape.lanes, 16));
    while (lanes > 1 && !IsRegular(*format.layout, format.elements, lanes)) lanes /= 2;
  }
  return DequantizeRow(format, shape, lanes, scale).Build();
}

}  // namespace boltbeam::kernel
