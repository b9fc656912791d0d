#include "kernel/families/gemv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernel/builder.h"
#include "kernel/families/scales.h"
#include "kernel/families/state.h"

namespace boltbeam::kernel {
namespace {

constexpr std::uint32_t kEvenBytes = 0x00FF00FF;
constexpr std::int32_t kHalfBase = 16;  // of a number of a codebook that is split in two

std::string_view DotName(Dot dot) {
  switch (dot) {
    case Dot::kDot4:
      return "dot4";
    case Dot::kMaddBytes:
      return "maddbytes";
    case Dot::kMaddHalves:
      return "maddhalves";
    case Dot::kFloat:
      return "fma";
  }
  return "";
}

class Gemv {
 public:
  Gemv(const WeightLayout& layout, const GemvGeometry& geometry, const GemvShape& shape)
      : layout_(layout),
        geometry_(geometry),
        shape_(shape),
        activations_(ActivationsFor(layout, geometry.dot)),
        lanes_(geometry.lanes),
        b_(Name(), Description()) {
    weights_ = b_.AddBuffer("weights");
    input_ = b_.AddBuffer("activations");
    output_ = b_.AddBuffer("output", true);
    if (shape.epilogue == Epilogue::kBias) bias_ = b_.AddBuffer("bias");
    if (geometry.columns > 1) state_ = b_.AddBuffer("state");
  }

  Program Build() && {
    const Value begin = b_.Begin();
    const Value end = b_.End();
    Groups(begin, end);
    return std::move(b_).Finish();
  }

 private:
  std::string Name() const {
    return fmt::format("gemv.{}x{}.b{}.r{}.c{}.u{}.{}{}", shape_.rows, shape_.cols, layout_.block_bytes,
                       geometry_.lanes, geometry_.columns, geometry_.unroll, DotName(geometry_.dot),
                       shape_.epilogue == Epilogue::kStore      ? ""
                       : shape_.epilogue == Epilogue::kResidual ? ".residual"
                                                                : ".bias");
  }
  std::string Description() const {
    return fmt::format(
        "[{} x {}] table times {} column(s), {} rows side by side, {} elements and {} B a block of a group",
        shape_.rows, shape_.cols, geometry_.columns, lanes_, layout_.elements, layout_.block_bytes);
  }

  Type F() const { return {Scalar::kF32, lanes_}; }
  Type I() const { return {Scalar::kI32, lanes_}; }
  std::int64_t ColumnStride() const { return static_cast<std::int64_t>(activations_.ColumnBytes(shape_.cols)); }
  std::int64_t OutStride() const { return static_cast<std::int64_t>(OutputStride(shape_.rows)); }

  void Groups(Value begin, Value end) {
    b_.Note(fmt::format("row groups: {} rows, one a lane", lanes_));
    b_.Loop(begin, end, b_.I64(1), {}, [&](Value group, auto) -> std::vector<Value> {
      const Value at = group * static_cast<std::int64_t>(layout_.GroupBytes(shape_.cols));
      const Value out = group * (4 * lanes_);
      group_out_ = out;
      if (geometry_.columns == 1) {
        Tile(at, b_.I64(0), out);
        return {};
      }
      b_.Note(fmt::format("tiles of {} columns", geometry_.columns));
      const Value tiles = Widen(StateWord(b_, state_, kStateTiles));
      b_.Loop(b_.I64(0), tiles, b_.I64(1), {}, [&](Value tile, auto) -> std::vector<Value> {
        Tile(at, tile * (geometry_.columns * ColumnStride()), out + tile * (geometry_.columns * OutStride()));
        return {};
      });
      return {};
    });
  }

  /// One row group times one tile of columns.
  void Tile(Value weights, Value input, Value out) {
    const std::uint16_t sums = geometry_.columns * Chains();
    std::vector<Value> carried{input};
    for (std::uint16_t i = 0; i < sums; ++i) carried.push_back(shape_.delay_turns > 0 ? Delay() : b_.F32(0, lanes_));
    const std::int64_t blocks = static_cast<std::int64_t>(shape_.cols / layout_.elements);
    const std::int64_t turns = blocks / geometry_.unroll;
    const std::int64_t step = geometry_.unroll * std::int64_t{layout_.block_bytes};
    const Value middle = weights + turns * step;
    if (turns > 0) {
      b_.Note(fmt::format("{} turns of {} block(s) of {} elements", turns, geometry_.unroll, layout_.elements));
      carried = b_.Loop(weights, middle, b_.I64(step), carried, [&](Value at, std::span<const Value> values) {
        return Blocks(at, {values.begin(), values.end()}, geometry_.unroll);
      });
    }
    carried = Blocks(middle, std::move(carried), static_cast<std::uint16_t>(blocks - turns * geometry_.unroll));
    Finish(carried, out);
  }

  /// Zero, late: a chain of dependent operations that no compiler may shorten.
  Value Delay() {
    const Value one = b_.F32(1);
    const Value half = b_.F32(0.5F);
    const std::vector<Value> late =
        b_.Loop(b_.I64(0), b_.I64(shape_.delay_turns), b_.I64(1), {one},
                [&](Value, std::span<const Value> v) -> std::vector<Value> { return {Fma(v[0], half, one)}; });
    return Splat(late[0] * b_.F32(0), lanes_);
  }

  /// Float sums of one column are split into chains so that one addition need not wait for the last.
  std::uint16_t Chains() const { return layout_.is_float && geometry_.columns == 1 ? 4 : 1; }

  std::vector<Value> Blocks(Value weights, std::vector<Value> carried, std::uint16_t count) {
    const Value input = carried[0];
    for (std::uint16_t block = 0; block < count; ++block) {
      at_ = std::int64_t{block} * layout_.block_bytes;
      in_ = std::int64_t{block} * activations_.block_bytes;
      turn_ = count > 1 ? fmt::format("block {} of {}: ", block + 1, count) : "";
      if (geometry_.prefetch_bytes > 0) {
        for (std::uint32_t line = 0; line < layout_.block_bytes; line += 64) {
          b_.Prefetch(weights_, weights, at_ + geometry_.prefetch_bytes + line);
        }
      }
      if (layout_.is_float) {
        FloatElement(weights, input, carried, block);
      } else {
        IntegerBlock(weights, input, carried);
      }
    }
    if (count > 0) carried[0] = input + std::int64_t{count} * activations_.block_bytes;
    return carried;
  }

  void FloatElement(Value weights, Value input, std::vector<Value>& carried, std::uint16_t element) {
    const Value w = b_.Load(weights_, F(), layout_.float_memory, weights, at_, geometry_.ordered);
    for (std::uint16_t c = 0; c < geometry_.columns; ++c) {
      Value& sum = carried[1 + c * Chains() + element % Chains()];
      sum = Fma(w, b_.LoadBroadcast(input_, F(), Memory::kWord, input, in_ + c * ColumnStride()), sum);
    }
  }

  Value Words(Value weights, std::int64_t offset, Memory memory = Memory::kWord) {
    return b_.Load(weights_, I(), memory, weights, at_ + offset, geometry_.ordered);
  }
  Value Scale(Value weights, formats::Encoding encoding, std::int64_t offset) {
    return LoadScale(b_, weights_, encoding, lanes_, weights, at_ + offset, geometry_.ordered);
  }
  Value Broadcast(Value input, std::uint16_t column, std::int64_t offset) {
    return b_.LoadBroadcast(input_, I(), Memory::kWord, input, in_ + offset + column * ColumnStride());
  }
  Value BroadcastF(Value input, std::uint16_t column, std::int64_t offset) {
    return b_.LoadBroadcast(input_, F(), Memory::kWord, input, in_ + offset + column * ColumnStride());
  }

  void IntegerBlock(Value weights, Value input, std::vector<Value>& carried) {
    scale_words_.clear();
    std::vector<Value> minimums = Minimums(weights, input);
    if (layout_.scale_place == ScalePlace::kSpread) SpreadScales(weights);
    std::vector<Value> total(geometry_.columns);
    for (std::uint32_t chunk = 0; chunk < layout_.chunks; ++chunk) Chunk(weights, input, chunk, total);
    b_.Note(layout_.has_m ? "the block's scale and minimum" : "the block's scale");
    const formats::Layout& row = *layout_.format->layout;
    Value d = Scale(weights, row.d.encoding, layout_.d_offset);
    if (row.d.factor != 1) d = d * b_.F32(row.d.factor, lanes_);
    Value m;
    if (layout_.has_m) {
      m = Scale(weights, row.m->encoding, layout_.m_offset);
      if (row.m->factor != 1) m = m * b_.F32(row.m->factor, lanes_);
      if (row.m->sign < 0) m = b_.F32(0, lanes_) - m;
    }
    for (std::uint16_t c = 0; c < geometry_.columns; ++c) {
      Value& sum = carried[1 + c];
      b_.Note("column sum += scales x integer sums");
      const Value scale = BroadcastF(input, c, activations_.scale_offset);
      sum = Fma(d * scale, row.scales && row.scales->encoding ? total[c] : ToF32(total[c]), sum);
      if (layout_.has_minimums) {
        sum = Fma(m * scale, ToF32(minimums[c]), sum);
      } else if (layout_.has_m) {
        sum = Fma(m, BroadcastF(input, c, activations_.scale_offset + 4), sum);
      }
    }
  }

  /// Per column: the sum over sub-blocks of minimum times the sum of its activations, exact.
  std::vector<Value> Minimums(Value weights, Value input) {
    std::vector<Value> sums(geometry_.columns);
    if (!layout_.has_minimums) return sums;
    const bool halves = layout_.scale_place == ScalePlace::kHalves;
    const std::uint32_t bits = halves ? 4 : layout_.scale_place == ScalePlace::kSpread ? layout_.SpreadBit() : 8;
    const Value mask = b_.U32(0x00010001U * ((1U << bits) - 1), lanes_);
    for (std::uint32_t group = 0; group < layout_.MinimumWords(); ++group) {
      b_.Note(fmt::format("{}minimums of sub-blocks {} to {} x sums of their activations", turn_, group * 4,
                          group * 4 + 3));
      const Value word = Words(weights, std::int64_t{group} * 4 * lanes_);
      scale_words_.push_back(word);
      const Value even = (halves ? Shr(word, 4) : word) & mask;
      const Value odd = Shr(word, halves ? 12 : 8) & mask;
      for (std::uint16_t c = 0; c < geometry_.columns; ++c) {
        const std::int64_t at = activations_.sums_offset + group * 8;
        const Value first = MaddHalves(even, Broadcast(input, c, at));
        sums[c] = group == 0 ? first : sums[c] + first;
        sums[c] = sums[c] + MaddHalves(odd, Broadcast(input, c, at + 4));
      }
    }
    return sums;
  }

  void Chunk(Value weights, Value input, std::uint32_t chunk, std::vector<Value>& total) {
    const std::int64_t base = layout_.chunk_offset + std::int64_t{chunk} * layout_.chunk_bytes;
    const std::uint32_t subs = layout_.SubsPerChunk();
    const std::vector<Value> scales = SubScales(weights, base, chunk);
    std::vector<std::vector<Value>> words(layout_.planes.size());
    for (std::size_t plane = 0; plane + 1 < layout_.planes.size(); ++plane)
      LoadPlane(weights, base, plane, words[plane]);
    for (std::uint32_t sub = 0; sub < subs; ++sub) {
      const std::vector<Value> dots = SubBlock(weights, input, base, chunk, sub, words);
      for (std::uint16_t c = 0; c < geometry_.columns; ++c) {
        const Value scaled = !layout_.has_scales                         ? dots[c]
                             : scales[sub].type().scalar == Scalar::kF32 ? ToF32(dots[c]) * scales[sub]
                                                                         : dots[c] * scales[sub];
        const bool is_first = chunk == 0 && sub == 0;
        total[c] = is_first ? scaled : total[c] + scaled;
      }
    }
  }

  /// Puts the scales of kSpread together, four to a word: low halves from their own words, the rest from the minimums'.
  void SpreadScales(Value weights) {
    b_.Note(turn_ + "scales of all sub-blocks");
    const std::uint32_t high_bits = layout_.format->layout->scales->bits - 4;
    const Value low_mask = b_.U32(0x0F0F0F0F, lanes_);
    const Value high_mask = b_.U32(0x10101010U * ((1U << high_bits) - 1), lanes_);
    for (std::uint32_t word = 0; word < layout_.ScaleWords(); ++word) {
      const Value low = Words(weights, std::int64_t{layout_.MinimumWords() + word} * 4 * lanes_);
      for (const std::uint32_t half : {0U, 1U}) {
        Value& scales = scale_words_[2 * word + half];
        const Value high = Shr(scales, static_cast<std::int32_t>(layout_.SpreadBit() - 4)) & high_mask;
        scales = (Shr(low, static_cast<std::int32_t>(4 * half)) & low_mask) | high;
      }
    }
  }

  /// The scales of a chunk's sub-blocks: whole numbers, or f32 where the format encodes them so.
  std::vector<Value> SubScales(Value weights, std::int64_t base, std::uint32_t chunk) {
    std::vector<Value> scales;
    if (!layout_.has_scales) return scales;
    const formats::Field& field = *layout_.format->layout->scales;
    b_.Note(fmt::format("{}sub-block scales of elements {} to {}", turn_, chunk * layout_.chunk_elements,
                        (chunk + 1) * layout_.chunk_elements - 1));
    for (std::uint32_t sub = 0; sub < layout_.SubsPerChunk(); ++sub) {
      const std::int64_t at = base + layout_.scale_offset + sub * lanes_;
      if (field.encoding) {
        scales.push_back(Scale(weights, *field.encoding, at));
      } else if (layout_.scale_place != ScalePlace::kBytes) {
        const std::uint32_t index = chunk * layout_.SubsPerChunk() + sub;
        const std::uint32_t mask = layout_.scale_place == ScalePlace::kHalves ? 0xF : 0xFF;
        Value scale = Shr(scale_words_[index / 4], static_cast<std::int32_t>(index % 4 * 8));
        if (mask != 0xFF || index % 4 != 3) scale = scale & b_.U32(mask, lanes_);
        scales.push_back(scale - field.bias);
      } else {
        scales.push_back(Words(weights, at, field.is_signed ? Memory::kS8 : Memory::kU8) - field.bias);
      }
    }
    return scales;
  }

  void LoadPlane(Value weights, std::int64_t base, std::size_t plane, std::vector<Value>& words) {
    b_.Note(
        fmt::format("{} bit(s) of every code, from bit {}", layout_.planes[plane].width, layout_.planes[plane].shift));
    for (std::uint32_t word = 0; word * 32 < layout_.planes[plane].width * layout_.chunk_elements; ++word) {
      words.push_back(Words(weights, base + layout_.planes[plane].offset + word * 4 * lanes_));
    }
  }

  /// Four codes of every row: elements 4 * quad + 0..3 of the chunk, one a byte.
  Value Codes(Value weights, std::int64_t base, std::uint32_t quad, std::vector<std::vector<Value>>& words) {
    Value codes;
    for (std::size_t p = 0; p < layout_.planes.size(); ++p) {
      const Plane& plane = layout_.planes[p];
      const std::uint32_t quads = 8 / plane.width;  // in a word
      if (words[p].size() <= quad / quads) {        // the widest plane is read as it is used
        words[p].push_back(Words(weights, base + plane.offset + quad / quads * 4 * lanes_));
      }
      // One shift from where the bits lie to where they belong, then a mask.
      const auto down =
          static_cast<std::int32_t>(plane.width * (quad % quads)) - static_cast<std::int32_t>(plane.shift);
      Value bits = words[p][quad / quads];
      if (down != 0) bits = down > 0 ? Shr(bits, down) : Shl(bits, -down);
      if (plane.width < 8) bits = bits & b_.U32(0x01010101U * (((1U << plane.width) - 1) << plane.shift), lanes_);
      codes = p == 0 ? bits : codes | bits;
    }
    return codes;
  }

  /// What is multiplied: the codes, or the codebook's numbers, or the two halves of each, low ones first, where whole
  /// ones would overflow.
  std::vector<Value> Factors(Value codes) {
    const std::vector<std::int32_t>& codebook = layout_.format->layout->codebook;
    if (codebook.empty()) return {codes};
    std::vector<std::vector<std::int32_t>> tables(layout_.IsSplit(geometry_.dot) ? 2 : 1,
                                                  std::vector<std::int32_t>(16));
    for (std::size_t code = 0; code < codebook.size(); ++code) {
      const std::int32_t number = codebook[code] + layout_.bias;
      tables[0][code] = tables.size() == 1 ? number : number % kHalfBase;
      if (tables.size() == 2) tables[1][code] = number / kHalfBase;
    }
    std::vector<Value> factors;
    for (std::vector<std::int32_t>& table : tables) factors.push_back(b_.Table16(codes, std::move(table)));
    return factors;
  }

  std::vector<Value> SubBlock(Value weights, Value input, std::int64_t base, std::uint32_t chunk, std::uint32_t sub,
                              std::vector<std::vector<Value>>& words) {
    const std::uint32_t quads = layout_.scale_elements / 4;
    std::vector<Value> dots(geometry_.columns);
    std::vector<std::array<Value, 2>> pairs(geometry_.columns);
    const std::uint32_t sub_index = chunk * layout_.SubsPerChunk() + sub;
    for (std::uint16_t c = 0; c < geometry_.columns; ++c) {
      dots[c] = layout_.bias != 0 ? Broadcast(input, c, activations_.sums_offset + sub_index * 4) : b_.I32(0, lanes_);
    }
    const std::int32_t factor_max = layout_.IsSplit(geometry_.dot) ? kHalfBase - 1 : layout_.code_max;
    const std::int32_t depth = std::max(1, 32767 / (2 * 127 * factor_max));  // sums of byte pairs that fit 16 bits
    for (std::uint32_t quad = 0; quad < quads; ++quad) {
      const std::int64_t element = chunk * layout_.chunk_elements + (sub * quads + quad) * 4;
      b_.Note(fmt::format("{}codes of elements {} to {} x activations", turn_, element, element + 3));
      const std::vector<Value> factors = Factors(Codes(weights, base, sub * quads + quad, words));
      for (std::uint16_t c = 0; c < geometry_.columns; ++c) {
        const bool is_last = quad + 1 == quads || static_cast<std::int32_t>(quad + 1) % depth == 0;
        const bool is_first = static_cast<std::int32_t>(quad) % depth == 0;
        Product(factors, input, c, element, dots[c], pairs[c], is_first, is_last);
      }
    }
    return dots;
  }

  void Product(const std::vector<Value>& factors, Value input, std::uint16_t column, std::int64_t element, Value& dots,
               std::array<Value, 2>& pairs, bool is_first, bool is_last) {
    const Value codes = factors[0];
    if (geometry_.dot == Dot::kDot4) {
      dots = Dot4(dots, codes, Broadcast(input, column, element));
    } else if (geometry_.dot == Dot::kMaddBytes) {
      const Value activations = Broadcast(input, column, element);
      for (std::size_t half = 0; half < factors.size(); ++half) {
        const Value products = MaddBytes(factors[half], activations);
        pairs[half] = is_first ? products : AddHalves(pairs[half], products);
        const std::uint32_t weight = half == 0 ? 1 : kHalfBase;
        if (is_last) dots = dots + MaddHalves(pairs[half], b_.U32(weight << 16 | weight, lanes_));
      }
    } else {
      const Value mask = b_.U32(kEvenBytes, lanes_);
      dots = dots + MaddHalves(codes & mask, Broadcast(input, column, element * 2));
      dots = dots + MaddHalves(Shr(codes, 8) & mask, Broadcast(input, column, element * 2 + 4));
    }
  }

  void Finish(const std::vector<Value>& carried, Value out) {
    for (std::uint16_t c = 0; c < geometry_.columns; ++c) {
      const std::uint16_t first = 1 + c * Chains();
      Value sum = carried[first];
      if (Chains() == 4) sum = (sum + carried[first + 1]) + (carried[first + 2] + carried[first + 3]);
      const std::int64_t offset = c * OutStride();
      b_.Note(geometry_.columns == 1 ? "the rows' results" : fmt::format("the rows' results of column {}", c));
      if (shape_.epilogue == Epilogue::kResidual) sum = b_.Load(output_, F(), Memory::kWord, out, offset) + sum;
      if (shape_.epilogue == Epilogue::kBias) sum = sum + b_.LoadF32(bias_, lanes_, group_out_);
      b_.Store(output_, out, sum, Memory::kWord, offset);
    }
  }

  const WeightLayout& layout_;
  const GemvGeometry& geometry_;
  const GemvShape& shape_;
  const ActivationLayout activations_;
  const std::uint16_t lanes_;
  Builder b_;
  std::uint32_t weights_ = 0, input_ = 0, output_ = 0, bias_ = 0, state_ = 0;
  std::int64_t at_ = 0, in_ = 0;    // constant offsets of the block being written
  std::vector<Value> scale_words_;  // of the block being written: scales of kHalves and kSpread, four to a word
  std::string turn_;                // which block of a turn it is, for notes
  Value group_out_;                 // byte offset of the group's rows in a column
};

}  // namespace

Result<Program> BuildGemv(const WeightLayout& layout, const GemvGeometry& geometry, const GemvShape& shape) {
  BOLTBEAM_TRY(CheckGeometry(layout, geometry, shape.cols));
  return Gemv(layout, geometry, shape).Build();
}

}  // namespace boltbeam::kernel
