#include <fmt/format.h>

#include "kernel/families/best.h"
#include "kernel/families/elementwise.h"

namespace boltbeam::kernel {

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

Best Improved(Best best, Value value, Value index) {
  const Value larger = Less(best.value, value);
  return {Select(larger, value, best.value), Select(larger, index, best.index)};
}

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
          const Best better = Improved({c[0], c[1]}, value, c[2]);
          return {better.value, better.index, c[2] + lanes};
        });
    const Best winner = ReduceBest({best[0], best[1]});
    b.Store(partial, run * 8, winner.value);
    b.Store(partial, run * 8, winner.index, Memory::kWord, 4);
    return {};
  });
  return std::move(b).Finish();
}

Program BuildArgmaxFinal(std::uint64_t runs, bool resets) {
  Builder b(fmt::format("argmax_final.{}{}", runs, resets ? ".resets" : ""),
            fmt::format("the best of {} runs, the first of equals", runs));
  const auto partial = b.AddBuffer("partial", resets);
  const auto result = b.AddBuffer("result", true);
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value, auto) -> std::vector<Value> {
    const std::vector<Value> best = b.Loop(
        b.I64(0), b.I64(static_cast<std::int64_t>(runs) * 8), b.I64(8), {b.F32(kLowest), b.I32(0)},
        [&](Value at, std::span<const Value> c) -> std::vector<Value> {
          const Value value = b.LoadF32(partial, 1, at);
          const Value index = b.LoadI32(partial, 1, at, 4);
          // Runs of one thread after the other ascend, those of threads that share their tails do not.
          const Best better = resets ? Better({c[0], c[1]}, {value, index}) : Improved({c[0], c[1]}, value, index);
          if (resets) {
            b.Store(partial, at, b.F32(kLowest));
            b.Store(partial, at, b.I32(0), Memory::kWord, 4);
          }
          return {better.value, better.index};
        });
    b.Store(result, b.I64(0), best[1]);
    return {};
  });
  return std::move(b).Finish();
}

}  // namespace boltbeam::kernel
