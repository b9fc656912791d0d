#include "kernel/families/elementwise.h"

#include <fmt/format.h>

#include "kernel/families/late.h"
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
    Value sure = mean + b.F32(epsilon);
    if (shape.delay_turns > 0) sure = sure + LateZero(b, shape.delay_turns);
    const Value factor = Splat(b.F32(1) / Sqrt(sure), lanes);
    b.Note(adds ? "stream + x * factor * weight" : "x * factor * weight");
    b.Loop(b.I64(0), end, b.I64(vector_bytes), {}, [&](Value at, auto) -> std::vector<Value> {
      const Value y = b.LoadF32(input, lanes, in + at) * factor * b.LoadF32(weight, lanes, at);
      b.Store(output, out + at, adds ? b.LoadF32(output, lanes, out + at) + y : y);
      return {};
    });
  });
  return std::move(b).Finish();
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
  Builder b(fmt::format("{}_gate.{}.l{}", GateName(function), shape.elements, lanes),
            fmt::format("gate / (1 + exp({})) * up over {} elements",
                        function == GateFunction::kSilu ? "-gate" : "-2 sqrt(2 / pi) (gate + 0.044715 gate^3)",
                        shape.elements));
  const auto gate = b.AddBuffer("gate");
  const auto up = b.AddBuffer("up");
  const auto output = b.AddBuffer("output", true);
  ForColumns(b, shape, [&](Value in, Value out) {
    b.Loop(b.I64(0), b.I64(static_cast<std::int64_t>(shape.elements) * 4), b.I64(4 * lanes), {},
           [&](Value at, auto) -> std::vector<Value> {
             const Value x = b.LoadF32(gate, lanes, in + at);
             const Value y = b.LoadF32(up, lanes, in + at);
             b.Store(output, out + at, Gated(x, y, function));
             return {};
           });
  });
  return std::move(b).Finish();
}

}  // namespace boltbeam::kernel
