#include "measure/probe_programs.h"

#include <fmt/format.h>

#include <functional>
#include <span>
#include <vector>

#include "kernel/builder.h"

namespace boltbeam::measure {
namespace {

using kernel::Builder;
using kernel::Value;

constexpr std::int64_t kLineBytes = 64;

// acc_0 .. acc_n-1 -> one vector that depends on all of them.
Value Combine(std::span<const Value> values) {
  Value sum = values[0];
  for (const Value& value : values.subspan(1)) sum = sum + value;
  return sum;
}

}  // namespace

kernel::Program StreamProgram(const StreamShape& shape) {
  Builder b(
      fmt::format("probe.stream.l{}.u{}.a{}.p{}", shape.lanes, shape.loads, shape.accumulators, shape.prefetch_bytes),
      "reads a stream in address order and adds up its words");
  const std::uint32_t data = b.AddBuffer("data");
  const std::uint32_t out = b.AddBuffer("out", true);
  const auto step_bytes = static_cast<std::int64_t>(shape.StepBytes());
  const std::vector<Value> zeroes(shape.accumulators, b.I32(0, shape.lanes));
  const std::vector<Value> sums =
      b.Loop(b.Begin(), b.End(), b.I64(1), zeroes, [&](Value step, std::span<const Value> carried) {
        const Value offset = step * step_bytes;
        if (shape.prefetch_bytes != 0) {
          for (std::int64_t line = 0; line < step_bytes; line += kLineBytes) {
            b.Prefetch(data, offset, shape.prefetch_bytes + line);
          }
        }
        std::vector<Value> next(carried.begin(), carried.end());
        for (std::uint32_t load = 0; load < shape.loads; ++load) {
          Value& sum = next[load % shape.accumulators];
          sum = sum + b.Load(data, {kernel::Scalar::kI32, shape.lanes}, kernel::Memory::kWord, offset,
                             std::int64_t{4} * shape.lanes * load, /*ordered=*/true);
        }
        return next;
      });
  b.Store(out, b.I64(0), Combine(sums));
  return std::move(b).Finish();
}

namespace {

/// A loop that runs every chain once a work item, and stores what depends on all of them.
void Chains(Builder& b, std::uint32_t out, const std::vector<Value>& initial,
            const std::function<Value(Value sum)>& step) {
  const std::vector<Value> sums =
      b.Loop(b.Begin(), b.End(), b.I64(1), initial, [&](Value, std::span<const Value> carried) {
        std::vector<Value> next;
        for (const Value& sum : carried) next.push_back(step(sum));
        return next;
      });
  b.Store(out, b.I64(0), Combine(sums));
}

}  // namespace

kernel::Program FmaProgram(std::uint16_t lanes, std::uint32_t accumulators) {
  Builder b(fmt::format("probe.fma.l{}.a{}", lanes, accumulators), "multiplies and adds in registers");
  const std::uint32_t in = b.AddBuffer("in");
  const std::uint32_t out = b.AddBuffer("out", true);
  const Value factor = b.LoadF32(in, lanes, b.I64(0));
  const Value addend = b.LoadF32(in, lanes, b.I64(0), std::int64_t{4} * lanes);
  std::vector<Value> initial;
  for (std::uint32_t i = 0; i < accumulators; ++i) initial.push_back(b.F32(static_cast<float>(i + 1), lanes));
  Chains(b, out, initial, [&](Value sum) { return kernel::Fma(sum, factor, addend); });
  return std::move(b).Finish();
}

namespace {

/// Integer arithmetic on one vector that is loaded once; the other side is the sum itself.
kernel::Program IntegerProgram(const char* name, const char* what, std::uint16_t lanes, std::uint32_t accumulators,
                               const std::function<Value(Value sum, Value factors)>& step) {
  Builder b(fmt::format("probe.{}.l{}.a{}", name, lanes, accumulators), what);
  const std::uint32_t in = b.AddBuffer("in");
  const std::uint32_t out = b.AddBuffer("out", true);
  const Value factors = b.LoadI32(in, lanes, b.I64(0));
  std::vector<Value> initial;
  for (std::uint32_t i = 0; i < accumulators; ++i) initial.push_back(b.I32(static_cast<std::int32_t>(i + 1), lanes));
  Chains(b, out, initial, [&](Value sum) { return step(sum, factors); });
  return std::move(b).Finish();
}

}  // namespace

kernel::Program DotProgram(std::uint16_t lanes, std::uint32_t accumulators) {
  return IntegerProgram("dot", "dot products of four bytes in registers", lanes, accumulators,
                        [](Value sum, Value factors) { return kernel::Dot4(sum, sum, factors); });
}

kernel::Program SignedDotProgram(std::uint16_t lanes, std::uint32_t accumulators) {
  return IntegerProgram("sdot", "dot products of four signed bytes in registers", lanes, accumulators,
                        [](Value sum, Value factors) { return kernel::Dot4Signed(sum, sum, factors); });
}

kernel::Program MaddBytesProgram(std::uint16_t lanes, std::uint32_t accumulators) {
  return IntegerProgram("madd8", "products of bytes, added in halves in registers", lanes, accumulators,
                        [](Value sum, Value factors) { return AddHalves(sum, kernel::MaddBytes(sum, factors)); });
}

kernel::Program MaddHalvesProgram(std::uint16_t lanes, std::uint32_t accumulators) {
  return IntegerProgram("madd16", "products of halves, added in registers", lanes, accumulators,
                        [](Value sum, Value factors) { return sum + kernel::MaddHalves(sum, factors); });
}

kernel::Program SimpleProgram(std::uint16_t lanes, std::uint32_t accumulators) {
  Builder b(fmt::format("probe.simple.l{}.a{}", lanes, accumulators), "integer additions in registers");
  b.AddBuffer("in");
  const std::uint32_t out = b.AddBuffer("out", true);
  const Value addend = Splat(Narrow(b.End()), lanes);
  std::vector<Value> initial;
  for (std::uint32_t i = 0; i < accumulators; ++i) initial.push_back(b.I32(static_cast<std::int32_t>(i + 1), lanes));
  Chains(b, out, initial, [&](Value sum) { return sum + addend; });
  return std::move(b).Finish();
}

kernel::Program CopyProgram(std::uint16_t lanes, std::uint64_t grain_bytes) {
  Builder b(fmt::format("probe.copy.l{}.g{}", lanes, grain_bytes), "copies a stream");
  const std::uint32_t source = b.AddBuffer("source");
  const std::uint32_t target = b.AddBuffer("target", true);
  const auto grain = static_cast<std::int64_t>(grain_bytes);
  b.Loop(b.Begin() * grain, b.End() * grain, b.I64(4 * lanes), {}, [&](Value at, auto) -> std::vector<Value> {
    b.Store(target, at, b.LoadI32(source, lanes, at));
    return {};
  });
  return std::move(b).Finish();
}

kernel::Program WriteProgram(std::uint16_t lanes, std::uint64_t grain_bytes) {
  Builder b(fmt::format("probe.write.l{}.g{}", lanes, grain_bytes), "overwrites a stream");
  const std::uint32_t target = b.AddBuffer("target", true);
  const auto grain = static_cast<std::int64_t>(grain_bytes);
  b.Loop(b.Begin() * grain, b.End() * grain, b.I64(4 * lanes), {}, [&](Value at, auto) -> std::vector<Value> {
    b.Store(target, at, Splat(Narrow(at), lanes));
    return {};
  });
  return std::move(b).Finish();
}

kernel::Program ChaseProgram() {
  Builder b("probe.chase", "loads, each from where the one before says");
  const std::uint32_t chain = b.AddBuffer("chain");
  const std::uint32_t place = b.AddBuffer("place", true);  // where it begins, and then where it ended
  const std::vector<Value> last =
      b.Loop(b.Begin(), b.End(), b.I64(1), {b.Load(place, {kernel::Scalar::kI64, 1}, kernel::Memory::kI64, b.I64(0))},
             [&](Value, std::span<const Value> at) -> std::vector<Value> {
               return {b.Load(chain, {kernel::Scalar::kI64, 1}, kernel::Memory::kI64, at[0])};
             });
  b.Store(place, b.I64(0), last[0], kernel::Memory::kI64);
  return std::move(b).Finish();
}

kernel::Program EmptyProgram() {
  Builder b("probe.empty", "does nothing");
  return std::move(b).Finish();
}

}  // namespace boltbeam::measure
