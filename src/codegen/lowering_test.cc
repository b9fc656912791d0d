// Every operation as machine code against the interpreter, for every target that this machine can run, at lane counts
// below, at and above the widths of its registers, odd ones included.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "codegen/test_targets.h"
#include "kernel/builder.h"
#include "kernel/interpreter.h"
#include "kernel/verify.h"
#include "runtime/code.h"

namespace boltbeam::codegen {
namespace {

using kernel::Builder;
using kernel::Memory;
using kernel::Op;
using kernel::Program;
using kernel::Scalar;
using kernel::Type;
using kernel::Value;

constexpr std::uint16_t kLaneCounts[] = {1, 3, 4, 8, 16, 24, 64};
constexpr std::size_t kBufferBytes = 8192;
constexpr std::size_t kOutputBytes = 65536;
constexpr int kRounds = 16;

const std::vector<NamedTarget>& Targets() {
  static const std::vector<NamedTarget> kTargets = RunnableTargets();
  return kTargets;
}

using Bytes = std::vector<std::byte>;

Bytes RandomWords(std::uint32_t seed, const std::function<std::uint32_t(std::mt19937&)>& word) {
  std::mt19937 random(seed);
  Bytes bytes(kBufferBytes);
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    const std::uint32_t value = word(random);
    std::memcpy(bytes.data() + at, &value, 4);
  }
  return bytes;
}

/// All bit patterns, with runs of extreme bytes among them.
std::uint32_t AnyWord(std::mt19937& random) {
  static constexpr std::uint32_t kExtremes[] = {0, 0xffffffff, 0x80808080, 0x7f7f7f7f, 0xff80ff80, 0x80000000};
  return random() % 4 == 0 ? kExtremes[random() % std::size(kExtremes)] : static_cast<std::uint32_t>(random());
}

/// Floats of moderate size, halves between integers, zeros of both signs.
std::uint32_t ModerateFloat(std::mt19937& random) {
  const auto integer = static_cast<float>(static_cast<int>(random() % 4001) - 2000);
  const std::uint32_t kind = random() % 8;
  if (kind == 0) return random() % 2 == 0 ? 0 : 0x80000000;
  if (kind < 3) return std::bit_cast<std::uint32_t>(integer + 0.5F);
  return std::bit_cast<std::uint32_t>(integer + static_cast<float>(random() % 100000) * 1e-5F);
}

/// Any float: infinities, NaNs and subnormals too.
std::uint32_t AnyFloat(std::mt19937& random) {
  static constexpr std::uint32_t kSpecials[] = {0x7f800000, 0xff800000, 0x7fc00000, 0,          0x80000000,
                                                1,          0x807fffff, 0x477fefff, 0x477ff000, 0x33000000,
                                                0x33000001, 0x387fc000, 0x4b000000};
  return random() % 4 == 0 ? kSpecials[random() % std::size(kSpecials)] : static_cast<std::uint32_t>(random());
}

/// Near what half precision can hold, so that conversions round, overflow and underflow.
std::uint32_t HalfRangeFloat(std::mt19937& random) {
  const std::uint32_t exponent = 127 - 26 + random() % 44;
  const std::uint32_t low = random() % 2 == 0 ? 0x1000 : random() % 0x2000;
  return (random() % 2) << 31 | exponent << 23 | (random() % 1024) << 13 | low;
}

bool SameWord(std::uint32_t a, std::uint32_t b, bool floats) {
  if (a == b) return true;
  return floats && std::isnan(std::bit_cast<float>(a)) && std::isnan(std::bit_cast<float>(b));
}

/// Runs the program over four inputs and one output by interpreter and by machine code of every target.
void Check(const Program& program, const std::vector<Bytes>& inputs, std::int64_t begin, std::int64_t end,
           bool floats) {
  SCOPED_TRACE(kernel::Print(program));
  const auto run = [&](const std::function<void(std::vector<kernel::BufferView>&)>& by) {
    std::vector<Bytes> buffers = inputs;
    buffers.emplace_back(kOutputBytes, std::byte{0x5a});
    std::vector<kernel::BufferView> views;
    for (Bytes& buffer : buffers) views.push_back({buffer.data(), buffer.size()});
    by(views);
    return buffers.back();
  };
  const Result<void> legal = kernel::Verify(program);
  ASSERT_TRUE(legal) << legal.error().Message();
  const Bytes expected = run([&](std::vector<kernel::BufferView>& views) {
    const Result<void> ran = kernel::Interpret(program, views, begin, end);
    ASSERT_TRUE(ran) << ran.error().Message();
  });
  for (const NamedTarget& named : Targets()) {
    SCOPED_TRACE(named.name);
    const Result<std::string> object = Compile(program, named.target);
    ASSERT_TRUE(object) << object.error().Message();
    const Result<runtime::Code> code = runtime::Code::Load(*object);
    ASSERT_TRUE(code) << code.error().Message();
    const Bytes found = run([&](std::vector<kernel::BufferView>& views) {
      std::vector<void*> pointers;
      for (const kernel::BufferView& view : views) pointers.push_back(view.data);
      code->function()(pointers.data(), begin, end);
    });
    for (std::size_t at = 0; at < expected.size(); at += 4) {
      std::uint32_t a = 0;
      std::uint32_t b = 0;
      std::memcpy(&a, expected.data() + at, 4);
      std::memcpy(&b, found.data() + at, 4);
      ASSERT_TRUE(SameWord(a, b, floats)) << fmt::format("word {}: expected {:#010x}, found {:#010x}", at / 4, a, b);
    }
  }
}

using Body = std::function<std::vector<Value>(Builder& builder, const std::vector<Value>& operands)>;
using Word = std::uint32_t (*)(std::mt19937&);

/// out[i] = all of body(in0[i], in1[i], in2[i]), for `lanes` lanes at a time.
void CheckLanes(const std::string& name, Scalar scalar, Word word, std::size_t operands, const Body& body) {
  for (const std::uint16_t lanes : kLaneCounts) {
    Builder b(fmt::format("{}.{}", name, lanes), "one operation");
    std::vector<std::uint32_t> in;
    for (std::size_t i = 0; i < 3; ++i) in.push_back(b.AddBuffer(fmt::format("in{}", i)));
    const std::uint32_t out = b.AddBuffer("out", true);
    b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value i, auto) -> std::vector<Value> {
      const Value at = i * (lanes * 4);
      std::vector<Value> values;
      for (std::size_t k = 0; k < operands; ++k) {
        values.push_back(b.Load(in[k], {scalar, lanes}, Memory::kWord, at));
      }
      const std::vector<Value> results = body(b, values);
      const std::int64_t step = results[0].lanes() * 4;
      for (std::size_t k = 0; k < results.size(); ++k) {
        b.Store(out, i * (step * std::ssize(results)), results[k], Memory::kWord, static_cast<std::int64_t>(k) * step);
      }
      return {};
    });
    const std::vector<Bytes> inputs = {RandomWords(1, word), RandomWords(2, word), RandomWords(3, word)};
    const Program program = std::move(b).Finish();
    Check(program, inputs, 0, kRounds, true);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// Each operation applied to as many operands as it takes.
struct Applied {
  Op op;
  std::size_t operands;
};

Body Each(const std::vector<Applied>& operations) {
  return [operations](Builder& b, const std::vector<Value>& v) {
    std::vector<Value> results;
    for (const auto& [op, operands] : operations) {
      results.push_back(b.Emit(op, v[0].type(), {v.begin(), v.begin() + static_cast<std::ptrdiff_t>(operands)}));
    }
    return results;
  };
}

TEST(Lowering, IntegerArithmetic) {
  CheckLanes("integers", Scalar::kI32, AnyWord, 2,
             Each({{Op::kAdd, 2},
                   {Op::kSub, 2},
                   {Op::kMul, 2},
                   {Op::kAnd, 2},
                   {Op::kOr, 2},
                   {Op::kXor, 2},
                   {Op::kMin, 2},
                   {Op::kMax, 2},
                   {Op::kLess, 2}}));
}

TEST(Lowering, Shifts) {
  CheckLanes("shifts", Scalar::kI32, AnyWord, 2, [](Builder& b, const std::vector<Value>& v) {
    const Value amount = v[1] & b.I32(31, v[0].lanes());
    std::vector<Value> results;
    for (const Op op : {Op::kShl, Op::kShr, Op::kSar}) {
      results.push_back(b.Emit(op, v[0].type(), {v[0], amount}));
      results.push_back(b.Emit(op, v[0].type(), {v[0], b.I32(5, v[0].lanes())}));
    }
    return results;
  });
}

TEST(Lowering, BytesOfAWord) {
  CheckLanes(
      "bytes", Scalar::kI32, AnyWord, 3,
      Each({{Op::kDot4, 3}, {Op::kDot4Signed, 3}, {Op::kMaddBytes, 2}, {Op::kMaddHalves, 2}, {Op::kAddHalves, 2}}));
}

TEST(Lowering, Table) {
  static const std::vector<std::int32_t> kTable = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};
  CheckLanes("table16", Scalar::kI32, AnyWord, 1, [](Builder& b, const std::vector<Value>& v) {
    return std::vector{b.Table16(v[0] & b.U32(0x0f0f0f0f, v[0].lanes()), kTable)};
  });
}

TEST(Lowering, FloatArithmetic) {
  const Body body = Each({{Op::kFAdd, 2},
                          {Op::kFSub, 2},
                          {Op::kFMul, 2},
                          {Op::kFDiv, 2},
                          {Op::kFMin, 2},
                          {Op::kFMax, 2},
                          {Op::kFSqrt, 1},
                          {Op::kFAbs, 1},
                          {Op::kFRound, 1}});
  CheckLanes("floats", Scalar::kF32, AnyFloat, 2, body);
  CheckLanes("moderate floats", Scalar::kF32, ModerateFloat, 2, body);
}

TEST(Lowering, FusedMultiplyAdd) {
  // Small integers: exact whether the target fuses or not.
  const auto small = [](std::mt19937& random) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(random() % 2001) - 1000.0F);
  };
  CheckLanes("fma", Scalar::kF32, small, 3, Each({{Op::kFma, 3}}));
}

TEST(Lowering, MultiplyThenAddIsNeverFused) {
  CheckLanes("mul add", Scalar::kF32, ModerateFloat, 3,
             [](Builder&, const std::vector<Value>& v) { return std::vector{v[0] * v[1] + v[2]}; });
}

TEST(Lowering, Conversions) {
  CheckLanes("to f32", Scalar::kI32, AnyWord, 1,
             [](Builder&, const std::vector<Value>& v) { return std::vector{ToF32(v[0]), Abs(AsF32(v[0]))}; });
  CheckLanes("to i32", Scalar::kF32, ModerateFloat, 1,
             [](Builder&, const std::vector<Value>& v) { return std::vector{ToI32(v[0])}; });
}

TEST(Lowering, Selecting) {
  CheckLanes("select", Scalar::kI32, AnyWord, 3,
             [](Builder&, const std::vector<Value>& v) { return std::vector{Select(v[0], v[1], v[2])}; });
  CheckLanes("fless", Scalar::kF32, AnyFloat, 2,
             [](Builder&, const std::vector<Value>& v) { return std::vector{Select(Less(v[0], v[1]), v[0], v[1])}; });
}

TEST(Lowering, LanesMove) {
  CheckLanes("shuffle", Scalar::kI32, AnyWord, 1, [](Builder& b, const std::vector<Value>& v) {
    std::vector<std::int32_t> reversed;
    for (int i = v[0].lanes(); i-- > 0;) reversed.push_back(i);
    return std::vector{b.Shuffle(v[0], reversed) ^ b.LaneIndex(v[0].lanes())};
  });
  CheckLanes("extract and splat", Scalar::kF32, AnyFloat, 1, [](Builder& b, const std::vector<Value>& v) {
    return std::vector{Splat(b.Extract(v[0], v[0].lanes() - 1U), 5)};
  });
  CheckLanes("shuffle to one", Scalar::kI32, AnyWord, 1,
             [](Builder& b, const std::vector<Value>& v) { return std::vector{b.Shuffle(v[0], {v[0].lanes() - 1})}; });
}

/// Every way of loading and storing narrow lanes, at odd addresses.
TEST(Lowering, NarrowMemory) {
  struct Case {
    Memory memory;
    Scalar scalar;
    std::int64_t bytes;
    bool store;
  };
  static constexpr Case kCases[] = {
      {Memory::kU8, Scalar::kI32, 1, true},    {Memory::kS8, Scalar::kI32, 1, true},
      {Memory::kU16, Scalar::kI32, 2, true},   {Memory::kF16, Scalar::kF32, 2, true},
      {Memory::kBf16, Scalar::kF32, 2, false}, {Memory::kWord, Scalar::kF32, 4, true},
      {Memory::kWord, Scalar::kI32, 4, true},
  };
  for (const Case& c : kCases) {
    for (const std::uint16_t lanes : kLaneCounts) {
      Builder b(fmt::format("memory{}.{}", static_cast<int>(c.memory), lanes), "loads and stores");
      const std::uint32_t in = b.AddBuffer("in");
      const std::uint32_t out = b.AddBuffer("out", true);
      const Type type{c.scalar, lanes};
      b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value i, auto) -> std::vector<Value> {
        const Value at = i * 17;
        const Value to = i * 1000;
        b.Prefetch(in, at, 4096);
        b.Store(out, to, b.Load(in, type, c.memory, at, 3), Memory::kWord);
        b.Store(out, to, b.Load(in, type, c.memory, at, 5, true), Memory::kWord, 256);
        const Value stride = b.I64(c.bytes + 7);
        b.Store(out, to, b.LoadStrided(in, type, c.memory, at, stride, 1), Memory::kWord, 512);
        b.Store(out, to, b.LoadBroadcast(in, type, c.memory, at, 9), Memory::kWord, 768);
        return {};
      });
      Check(std::move(b).Finish(), {RandomWords(7, AnyWord)}, 0, kRounds, true);
      if (HasFatalFailure()) return;
      if (!c.store) continue;
      Builder s(fmt::format("store{}.{}", static_cast<int>(c.memory), lanes), "narrow stores");
      const std::uint32_t from = s.AddBuffer("in");
      const std::uint32_t narrow = s.AddBuffer("out", true);
      s.Loop(s.Begin(), s.End(), s.I64(1), {}, [&](Value i, auto) -> std::vector<Value> {
        const Value value = s.Load(from, type, Memory::kWord, i * (lanes * 4));
        s.Store(narrow, i * 1000, value, c.memory, 1);
        s.StoreStrided(narrow, i * 1000, s.I64(c.bytes + 2), value, c.memory, 300);
        return {};
      });
      Check(std::move(s).Finish(), {RandomWords(8, c.scalar == Scalar::kF32 ? HalfRangeFloat : AnyWord)}, 0, kRounds,
            false);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Lowering, StridedWordsSideBySide) {
  constexpr std::int64_t kStride = 61;
  // Runs of three, four, seven and nine words with gaps between them, in any order.
  std::vector<std::int64_t> offsets;
  for (std::int64_t at = 3; const int words : {3, 4, 7, 9}) {
    for (int i = 0; i < words; ++i, at += 4) offsets.push_back(at);
    at += 5;
  }
  std::ranges::shuffle(offsets, std::mt19937(11));
  for (const std::uint16_t lanes : kLaneCounts) {
    Builder b(fmt::format("words.{}", lanes), "neighbouring words of every row, and words that change in between");
    const std::uint32_t in = b.AddBuffer("in");
    const std::uint32_t out = b.AddBuffer("out", true);
    const Type type{Scalar::kI32, lanes};
    const Value stride = b.I64(kStride);
    b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value i, auto) -> std::vector<Value> {
      const Value to = i * 16384;
      for (std::size_t k = 0; k < offsets.size(); ++k) {
        const Value words = b.LoadStrided(in, type, Memory::kWord, i * 7, stride, offsets[k]);
        b.Store(out, to, words, Memory::kWord, static_cast<std::int64_t>(k) * 4 * lanes);
      }
      for (std::int64_t k = 0; k < 8; ++k) {  // a buffer that is written: each load sees the store before it
        const Value words = b.LoadStrided(out, type, Memory::kWord, to, b.I64(64), 4 * k);
        b.StoreStrided(out, to, b.I64(64), words + 1, Memory::kWord, 4 * k + 4);
      }
      return {};
    });
    Check(std::move(b).Finish(), {RandomWords(12, AnyWord)}, 0, 3, false);
    if (HasFatalFailure()) return;
  }
}

TEST(Lowering, EveryHalfConverts) {
  Builder b("halves", "all 65536 halves to f32 and back");
  const std::uint32_t in = b.AddBuffer("in");
  const std::uint32_t out = b.AddBuffer("out", true);
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value i, auto) -> std::vector<Value> {
    const Value value = b.Load(in, {Scalar::kF32, 16}, Memory::kF16, i * 32);
    b.Store(out, i * 64, value);
    b.Store(out, i * 32, value, Memory::kF16, 8192);
    return {};
  });
  const Program program = std::move(b).Finish();
  for (std::uint32_t first = 0; first < 65536; first += 2048) {
    Bytes halves(kBufferBytes);
    for (std::uint32_t i = 0; i < 2048; ++i) {
      std::uint32_t bits = first + i;
      if ((bits & 0x7fff) > 0x7c00) bits = 0x7c00;  // payloads of NaNs are left open
      std::memcpy(halves.data() + i * 2, &bits, 2);
    }
    Check(program, {halves}, 0, 128, false);
    if (HasFatalFailure()) return;
  }
}

TEST(Lowering, LoopsAndConditions) {
  Builder b("loops", "nested loops with carried values, loops that never run, conditions");
  const std::uint32_t in = b.AddBuffer("in");
  const std::uint32_t out = b.AddBuffer("out", true);
  b.Loop(b.Begin(), b.End(), b.I64(3), {}, [&](Value i, auto) -> std::vector<Value> {
    const std::vector<Value> sums =
        b.Loop(b.I64(0), i, b.I64(2), {b.I32(7, 5), i}, [&](Value k, std::span<const Value> carried) {
          const std::vector<Value> inner = b.Loop(k, b.I64(4), b.I64(1), {carried[0]}, [&](Value, auto innermost) {
            return std::vector<Value>{innermost[0] + b.I32(1, 5)};
          });
          return std::vector<Value>{inner[0] + b.LoadI32(in, 5, k * 4), carried[1] / b.I64(2)};
        });
    b.Store(out, i * 32, sums[0]);
    b.Store(out, i * 32, sums[1], Memory::kI64, 20);
    const Value odd = b.Extract(sums[0], 0) & b.I32(1);
    b.If(odd, [&] { b.Store(out, i * 32, b.I32(99), Memory::kWord, 28); });
    return {};
  });
  const Program program = std::move(b).Finish();
  Check(program, {RandomWords(11, AnyWord)}, 2, 90, false);
  Check(program, {RandomWords(11, AnyWord)}, 5, 5, false);
}

TEST(Lowering, WideScalars) {
  Builder b("scalars", "64-bit arithmetic");
  const std::uint32_t in = b.AddBuffer("in");
  const std::uint32_t out = b.AddBuffer("out", true);
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value i, auto) -> std::vector<Value> {
    const Value x = b.Load(in, {Scalar::kI64, 1}, Memory::kI64, i * 8);
    const Value y = Widen(b.LoadI32(in, 1, i * 8, 4));
    const Type wide{Scalar::kI64, 1};
    const Value shift = i & b.I64(63);
    std::vector<Value> results = {x + y, x - y, x * y, x & y, x | y, x ^ y, Min(x, y), Max(x, y), y};
    for (const Op op : {Op::kShl, Op::kShr, Op::kSar}) results.push_back(b.Emit(op, wide, {x, shift}));
    results.push_back(b.Emit(Op::kDivU, wide, {x & b.I64(0x7fffffffffffffff), b.I64(37)}));
    results.push_back(Select(Less(x, y), x, y));
    for (std::size_t k = 0; k < results.size(); ++k) {
      b.Store(out, i * 128, results[k], Memory::kI64, static_cast<std::int64_t>(k) * 8);
    }
    return {};
  });
  Check(std::move(b).Finish(), {RandomWords(12, AnyWord)}, 0, 100, false);
}

}  // namespace
}  // namespace boltbeam::codegen
