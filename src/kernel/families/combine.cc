#include <fmt/format.h>

#include "kernel/families/attention.h"
#include "kernel/families/cache_place.h"
#include "kernel/families/state.h"

namespace boltbeam::kernel {

Program BuildCombine(const AttentionShape& shape) {
  const std::uint16_t lanes = LanesFor(shape.head_dim, shape.lanes);
  const auto partial_bytes = static_cast<std::int64_t>(shape.PartialBytes());
  Builder b(fmt::format("attention_combine.d{}{}.l{}", shape.head_dim, shape.window == 0 ? "" : ".window", lanes),
            fmt::format("the chunks of a head brought together over {} dimensions", shape.head_dim));
  const auto partial = b.AddBuffer("partial");
  const auto state = b.AddBuffer("state");
  const auto output = b.AddBuffer("output", true);
  const Value chunks = ChunksOf(b, state, shape);
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value item, auto) -> std::vector<Value> {
    const Value from = item * chunks * partial_bytes;
    const Value to = from + chunks * partial_bytes;
    const Value step = b.I64(partial_bytes);
    b.Note("the largest score of all chunks");
    const Value top =
        b.Loop(from, to, step, {b.F32(kMasked)}, [&](Value at, std::span<const Value> in) -> std::vector<Value> {
          return {Max(in[0], b.LoadF32(partial, 1, at))};
        })[0];
    b.Note("the sum of all weights, from that score on");
    const Value sum =
        b.Loop(from, to, step, {b.F32(0)}, [&](Value at, std::span<const Value> in) -> std::vector<Value> {
          return {Fma(Exp(b.LoadF32(partial, 1, at) - top), b.LoadF32(partial, 1, at, 4), in[0])};
        })[0];
    const Value inverse = Splat(b.F32(1) / sum, lanes);
    for (std::uint32_t d = 0; d < shape.head_dim; d += lanes) {
      b.Note(fmt::format("weighted mean of dimensions {} to {}", d, d + lanes - 1));
      const Value total =
          b.Loop(from, to, step, {b.F32(0, lanes)}, [&](Value at, std::span<const Value> in) -> std::vector<Value> {
            const Value factor = Splat(Exp(b.LoadF32(partial, 1, at) - top), lanes);
            return {Fma(factor, b.LoadF32(partial, lanes, at, 64 + std::int64_t{d} * 4), in[0])};
          })[0];
      b.Store(output, item * (std::int64_t{shape.head_dim} * 4), total * inverse, Memory::kWord, std::int64_t{d} * 4);
    }
    return {};
  });
  return std::move(b).Finish();
}

}  // namespace boltbeam::kernel
