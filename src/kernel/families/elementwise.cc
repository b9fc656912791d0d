#include "kernel/families/elementwise.h"

#include <fmt/format.h>

#include "kernel/families/state.h"

namespace boltbeam::kernel {
namespace {

/// Runs body(in, out) for every column of the range, with the columns' byte offsets.
void ForColumns(Builder& b, const VectorShape& shape, const std::function<void(Value in, Value out)>& body) {
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value column, auto) -> std::vector<Value> {
    body(column * static_cast<std::int64_t>(shape.in_stride), column * static_cast<std::int64_t>(shape.out_stride));
    return {};
  });
}

}  // namespace

namespace {

Program BuildNorm(const VectorShape& shape, float epsilon, bool adds) {
  const std::uint16_t lanes = LanesFor(shape.elements, shape.lanes);
  const std::uint64_t vectors = shape.elements / lanes;
  const std::int64_t chains = vectors % 4 == 0 ? 4 : 1;
  const std::int64_t vector_bytes = 4 * lanes;
  Builder b(
      fmt::format("rms_norm{}.{}.l{}", adds ? "_add" : "", shape.elements, lanes),
      fmt::format("{}x / sqrt(mean(x^2) + {}) * w over {} elements", adds ? "stream + " : "", epsilon, shape.elements));
  const auto input = b.AddBuffer("input");
  const auto weight = b.AddBuffer("weight");
  const auto output = b.AddBuffer(adds ? "stream" : "output", true);
  ForColumns(b, shape, [&](Value in, Value out) {
    const Value end = b.I64(static_cast<std::int64_t>(shape.elements) * 4);
    const std::vector<Value> zeros(static_cast<std::size_t>(chains), b.F32(0, lanes));
    b.Note("sum of squares");
    std::vector<Value> sums = b.Loop(b.I64(0), end, b.I64(chains * vector_bytes), zeros, [&](Value at, auto carried) {
      std::vector<Value> next;
      for (std::int64_t chain = 0; chain < chains; ++chain) {
        const Value x = b.LoadF32(input, lanes, in + at, chain * vector_bytes);
        next.push_back(Fma(x, x, carried[static_cast<std::size_t>(chain)]));
      }
      return next;
    });
    Value sum = chains == 4 ? (sums[0] + sums[1]) + (sums[2] + sums[3]) : sums[0];
    const Value mean = ReduceAdd(sum) / b.F32(static_cast<float>(shape.elements));
    const Value factor = Splat(b.F32(1) / Sqrt(mean + b.F32(epsilon)), lanes);
    b.Note(adds ? "stream + x * factor * weight" : "x * factor * weight");
    b.Loop(b.I64(0), end, b.I64(vector_bytes), {}, [&](Value at, auto) -> std::vector<Value> {
      const Value y = b.LoadF32(input, lanes, in + at) * factor * b.LoadF32(weight, lanes, at);
      b.Store(output, out + at, adds ? b.LoadF32(output, lanes, out + at) + y : y);
      return {};
    });
  });
  return std::move(b).Finish();
}

/// The exponent e of x / (1 + exp(e)).
Value GateExponent(Builder& b, Value x, GateFunction function) {
  const std::uint16_t lanes = x.lanes();
  if (function == GateFunction::kSilu) return b.F32(0, lanes) - x;
  constexpr float kLinear = -1.5957691216F;  // -2 sqrt(2 / pi)
  constexpr float kCubic = 0.044715F * kLinear;
  return x * Fma(x * x, b.F32(kCubic, lanes), b.F32(kLinear, lanes));
}

}  // namespace

Program BuildRmsNorm(const VectorShape& shape, float epsilon) { return BuildNorm(shape, epsilon, false); }

Program BuildRmsNormAdd(const VectorShape& shape, float epsilon) { return BuildNorm(shape, epsilon, true); }

Program BuildAdd(const VectorShape& shape) {
  const std::uint16_t lanes = LanesFor(shape.elements, shape.lanes);
  Builder b(fmt::format("add.{}.l{}", shape.elements, lanes),
            fmt::format("stream + x over {} elements", shape.elements));
  const auto input = b.AddBuffer("input");
  const auto stream = b.AddBuffer("stream", true);
  ForColumns(b, shape, [&](Value in, Value out) {
    b.Loop(b.I64(0), b.I64(static_cast<std::int64_t>(shape.elements) * 4), b.I64(4 * lanes), {},
           [&](Value at, auto) -> std::vector<Value> {
             b.Store(stream, out + at, b.LoadF32(stream, lanes, out + at) + b.LoadF32(input, lanes, in + at));
             return {};
           });
  });
  return std::move(b).Finish();
}

Program BuildGate(const VectorShape& shape, GateFunction function) {
  const std::uint16_t lanes = LanesFor(shape.elements, shape.lanes);
  const bool is_silu = function == GateFunction::kSilu;
  Builder b(fmt::format("{}_gate.{}.l{}", is_silu ? "silu" : "gelu", shape.elements, lanes),
            fmt::format("gate / (1 + exp({})) * up over {} elements",
                        is_silu ? "-gate" : "-2 sqrt(2 / pi) (gate + 0.044715 gate^3)", shape.elements));
  const auto gate = b.AddBuffer("gate");
  const auto up = b.AddBuffer("up");
  const auto output = b.AddBuffer("output", true);
  ForColumns(b, shape, [&](Value in, Value out) {
    b.Loop(b.I64(0), b.I64(static_cast<std::int64_t>(shape.elements) * 4), b.I64(4 * lanes), {},
           [&](Value at, auto) -> std::vector<Value> {
             const Value x = b.LoadF32(gate, lanes, in + at);
             const Value active = x / (b.F32(1, lanes) + Exp(GateExponent(b, x, function)));
             b.Store(output, out + at, active * b.LoadF32(up, lanes, in + at));
             return {};
           });
  });
  return std::move(b).Finish();
}

namespace {

struct Best {
  Value value, index;
};

/// The larger value, and of equals the lower index.
Best Better(Best a, Best b) {
  Builder& builder = a.value.builder();
  const Value ones = builder.I32(-1, a.value.lanes());
  const Value equal_or_more = Less(b.value, a.value) ^ ones;
  const Value take_b = Less(a.value, b.value) | (equal_or_more & Less(b.index, a.index));
  return {Select(take_b, b.value, a.value), Select(take_b, b.index, a.index)};
}

Best ReduceBest(Best best) {
  Builder& b = best.value.builder();
  for (std::int32_t half = best.value.lanes() / 2; half >= 1; half /= 2) {
    std::vector<std::int32_t> low, high;
    for (std::int32_t lane = 0; lane < half; ++lane) {
      low.push_back(lane);
      high.push_back(lane + half);
    }
    best = Better({b.Shuffle(best.value, low), b.Shuffle(best.index, low)},
                  {b.Shuffle(best.value, high), b.Shuffle(best.index, high)});
  }
  return best;
}

constexpr float kLowest = -3.0e38F;

}  // namespace

Program BuildArgmaxPartial(std::uint64_t elements, std::uint16_t lanes) {
  Builder b(fmt::format("argmax_partial.{}.l{}", elements, lanes),
            fmt::format("the largest of every {} of {} values and where it lies", kArgmaxChunk, elements));
  const auto logits = b.AddBuffer("logits");
  const auto partial = b.AddBuffer("partial", true);
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value run, auto) -> std::vector<Value> {
    const Value from = run * static_cast<std::int64_t>(kArgmaxChunk);
    const Value to = Min(from + static_cast<std::int64_t>(kArgmaxChunk), b.I64(static_cast<std::int64_t>(elements)));
    const std::vector<Value> start{b.F32(kLowest, lanes), b.I32(0, lanes),
                                   Splat(Narrow(from), lanes) + b.LaneIndex(lanes)};
    const std::vector<Value> best =
        b.Loop(from, to, b.I64(lanes), start, [&](Value at, std::span<const Value> c) -> std::vector<Value> {
          Value value = b.LoadF32(logits, lanes, at * 4);
          const Value inside = Less(c[2], b.I32(static_cast<std::int32_t>(elements), lanes));
          value = Select(inside, value, b.F32(kLowest, lanes));
          const Value larger = Less(c[0], value);
          return {Select(larger, value, c[0]), Select(larger, c[2], c[1]), c[2] + lanes};
        });
    const Best winner = ReduceBest({best[0], best[1]});
    b.Store(partial, run * 8, winner.value);
    b.Store(partial, run * 8, winner.index, Memory::kWord, 4);
    return {};
  });
  return std::move(b).Finish();
}

Program BuildArgmaxFinal(std::uint64_t runs) {
  Builder b(fmt::format("argmax_final.{}", runs), fmt::format("the best of {} runs, the first of equals", runs));
  const auto partial = b.AddBuffer("partial");
  const auto result = b.AddBuffer("result", true);
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value, auto) -> std::vector<Value> {
    const std::vector<Value> best =
        b.Loop(b.I64(0), b.I64(static_cast<std::int64_t>(runs) * 8), b.I64(8), {b.F32(kLowest), b.I32(0)},
               [&](Value at, std::span<const Value> c) -> std::vector<Value> {
                 const Value value = b.LoadF32(partial, 1, at);
                 const Value larger = Less(c[0], value);
                 return {Select(larger, value, c[0]), Select(larger, b.LoadI32(partial, 1, at, 4), c[1])};
               });
    b.Store(result, b.I64(0), best[1]);
    return {};
  });
  return std::move(b).Finish();
}

}  // namespace boltbeam::kernel
