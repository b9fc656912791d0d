#include <fmt/format.h>

#include "kernel/families/elementwise.h"
#include "kernel/families/state.h"

namespace boltbeam::kernel {
namespace {

class Quantize {
 public:
  Quantize(const VectorShape& shape, const ActivationLayout& layout)
      : layout_(layout),
        lanes_(LanesFor(layout.sum_elements, shape.lanes)),
        b_(fmt::format("quantize.{}.e{}.s{}.b{}.l{}{}", shape.elements, layout.elements, layout.sum_elements,
                       layout.bias, lanes_, layout.halves ? ".halves" : ""),
           fmt::format("{} f32 -> 8-bit codes, one scale per {} elements", shape.elements, layout.elements)) {
    input_ = b_.AddBuffer("input");
    output_ = b_.AddBuffer("output", true);
    const auto in_bytes = static_cast<std::int64_t>(shape.elements) * 4;
    b_.Loop(b_.Begin(), b_.End(), b_.I64(1), {}, [&](Value column, auto) -> std::vector<Value> {
      const Value in = column * static_cast<std::int64_t>(shape.in_stride);
      const Value out = column * static_cast<std::int64_t>(layout_.ColumnBytes(shape.elements));
      b_.Loop(in, in + in_bytes, b_.I64(4 * std::int64_t{layout_.elements}), {out},
              [&](Value at, std::span<const Value> to) -> std::vector<Value> {
                Block(at, to[0]);
                return {to[0] + layout_.block_bytes};
              });
      return {};
    });
  }

  Program Build() && { return std::move(b_).Finish(); }

 private:
  void Block(Value in, Value out) {
    const std::uint32_t vectors = layout_.elements / lanes_;
    std::vector<Value> x;
    Value largest;
    b_.Note("a block's largest magnitude");
    for (std::uint32_t i = 0; i < vectors; ++i) {
      x.push_back(b_.LoadF32(input_, lanes_, in, std::int64_t{i} * 4 * lanes_));
      largest = i == 0 ? Abs(x[0]) : Max(largest, Abs(x[i]));
    }
    const Value magnitude = ReduceMax(largest);
    b_.Note("its scale: magnitude / 127");
    const Value scale = magnitude / b_.F32(127);
    // A block of zeros gets the code 0: the bound keeps 127 / magnitude finite.
    const Value inverse = Splat(b_.F32(127) / Max(magnitude, b_.F32(1e-30F)), lanes_);
    b_.Store(output_, out, scale, Memory::kWord, layout_.scale_offset);
    Value block_sum;
    const std::uint32_t per_sum = layout_.sum_elements / lanes_;
    for (std::uint32_t sum = 0; sum < vectors / per_sum; ++sum) {
      Value total;
      b_.Note(fmt::format("codes {} to {}, and their sum", sum * layout_.sum_elements,
                          (sum + 1) * layout_.sum_elements - 1));
      for (std::uint32_t i = 0; i < per_sum; ++i) {
        const std::uint32_t vector = sum * per_sum + i;
        const Value codes = ToI32(x[vector] * inverse);
        StoreCodes(out, codes, vector);
        total = i == 0 ? codes : total + codes;
      }
      if (layout_.sums == ActivationLayout::Sums::kNone && !layout_.has_scaled_sum) continue;
      total = ReduceAdd(total);
      StoreSum(out, total, sum);
      block_sum = sum == 0 ? total : block_sum + total;
    }
    if (layout_.has_scaled_sum) {
      b_.Store(output_, out, scale * ToF32(block_sum), Memory::kWord, layout_.scale_offset + 4);
    }
  }

  void StoreCodes(Value out, Value codes, std::uint32_t vector) {
    if (!layout_.halves) {
      b_.Store(output_, out, codes, Memory::kU8, std::int64_t{vector} * lanes_);
      return;
    }
    std::vector<std::int32_t> order;  // 0 2 1 3 of every four
    for (std::int32_t quad = 0; quad < lanes_; quad += 4) {
      for (const std::int32_t i : {0, 2, 1, 3}) order.push_back(quad + i);
    }
    b_.Store(output_, out, b_.Shuffle(codes, order), Memory::kU16, std::int64_t{vector} * 2 * lanes_);
  }

  void StoreSum(Value out, Value total, std::uint32_t index) {
    if (layout_.sums == ActivationLayout::Sums::kMinusBias) {
      b_.Store(output_, out, total * -std::int64_t{layout_.bias}, Memory::kWord, layout_.sums_offset + index * 4);
    } else if (layout_.sums == ActivationLayout::Sums::kHalfPairs) {
      static constexpr std::uint32_t kPlace[4] = {0, 2, 1, 3};
      b_.Store(output_, out, total, Memory::kU16, layout_.sums_offset + (index / 4 * 4 + kPlace[index % 4]) * 2);
    }
  }

  const ActivationLayout& layout_;
  const std::uint16_t lanes_;
  Builder b_;
  std::uint32_t input_ = 0, output_ = 0;
};

}  // namespace

Program BuildQuantize(const VectorShape& shape, const ActivationLayout& layout) {
  return Quantize(shape, layout).Build();
}

}  // namespace boltbeam::kernel
