#include "kernel/interpreter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "kernel/builder.h"
#include "kernel/verify.h"

namespace boltbeam::kernel {
namespace {

constexpr std::uint16_t kLanes = 8;
constexpr Type kWords{Scalar::kI32, kLanes};
constexpr Type kFloats{Scalar::kF32, kLanes};

template <typename T>
BufferView View(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

float F(std::uint32_t word) { return std::bit_cast<float>(word); }
std::uint32_t W(float value) { return std::bit_cast<std::uint32_t>(value); }
std::int32_t S(std::uint32_t word) { return static_cast<std::int32_t>(word); }

/// Runs out[l] = f(a[l], b[l], c[l]) over one vector of inputs and compares with expected, bit for bit.
void ExpectLanes(const std::vector<std::vector<std::uint32_t>>& in, Type type,
                 const std::function<Value(Builder&, std::vector<Value>)>& write,
                 const std::function<std::uint32_t(std::uint32_t, std::uint32_t, std::uint32_t)>& expected) {
  Builder b("test", "one operation");
  std::vector<Value> values;
  std::vector<std::vector<std::uint32_t>> data = in;
  data.resize(3, std::vector<std::uint32_t>(kLanes));
  std::vector<std::uint32_t> out(kLanes);
  std::vector<BufferView> views;
  for (auto& operand : data) {
    const std::string name(1, static_cast<char>('a' + views.size()));
    values.push_back(b.Load(b.AddBuffer(name), type, Memory::kWord, b.I64(0)));
    views.push_back(View(operand));
  }
  const auto to = b.AddBuffer("out", true);
  views.push_back(View(out));
  b.Store(to, b.I64(0), write(b, values));
  const Program program = std::move(b).Finish();
  const auto ran = Interpret(program, views, 0, 0);
  ASSERT_TRUE(ran) << ran.error().Message() << "\n" << Print(program);
  for (std::size_t l = 0; l < kLanes; ++l) {
    EXPECT_EQ(out[l], expected(data[0][l], data[1][l], data[2][l])) << "lane " << l << "\n" << Print(program);
  }
}

std::vector<std::vector<std::uint32_t>> RandomWords(std::uint32_t mask = ~0U) {
  std::mt19937 random(7);
  std::vector<std::vector<std::uint32_t>> words(3, std::vector<std::uint32_t>(kLanes));
  for (auto& operand : words) std::generate(operand.begin(), operand.end(), [&] { return random() & mask; });
  return words;
}

std::vector<std::vector<std::uint32_t>> FloatWords() {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> floats = {{1.5F, -2.5F, 0.5F, 3.5F, -0.0F, inf, 1e-40F, 16777217.0F},
                                                  {0.1F, 1e10F, -0.5F, 7.0F, 0.0F, 2.0F, 3.0F, -1.0F / 3},
                                                  {1.0F, 2.0F, 0.25F, -24.5F, 1.0F, 5.0F, 1e-45F, 5592405.5F}};
  std::vector<std::vector<std::uint32_t>> words;
  for (const auto& operand : floats) {
    words.emplace_back();
    for (const float value : operand) words.back().push_back(W(value));
  }
  return words;
}

using Write = std::function<Value(Builder&, std::vector<Value>)>;
using Expected = std::function<std::uint32_t(std::uint32_t, std::uint32_t, std::uint32_t)>;

Write Emit(Op op, Type type, std::size_t operands) {
  return [=](Builder& b, std::vector<Value> values) {
    values.resize(operands);
    return b.Emit(op, type, values);
  };
}

TEST(InterpreterTest, IntegerOperations) {
  const auto both = [](Op op, const Expected& expected) {
    ExpectLanes(RandomWords(), kWords, Emit(op, kWords, 2), expected);
  };
  both(Op::kAdd, [](auto a, auto b, auto) { return a + b; });
  both(Op::kSub, [](auto a, auto b, auto) { return a - b; });
  both(Op::kMul, [](auto a, auto b, auto) { return a * b; });
  both(Op::kAnd, [](auto a, auto b, auto) { return a & b; });
  both(Op::kOr, [](auto a, auto b, auto) { return a | b; });
  both(Op::kXor, [](auto a, auto b, auto) { return a ^ b; });
  both(Op::kMin, [](auto a, auto b, auto) { return static_cast<std::uint32_t>(std::min(S(a), S(b))); });
  both(Op::kMax, [](auto a, auto b, auto) { return static_cast<std::uint32_t>(std::max(S(a), S(b))); });
  both(Op::kLess, [](auto a, auto b, auto) { return S(a) < S(b) ? ~0U : 0; });
}

TEST(InterpreterTest, Shifts) {
  for (const std::int32_t by : {1, 4, 31}) {
    ExpectLanes(
        RandomWords(), kWords, [=](Builder&, auto v) { return Shl(v[0], by); },
        [=](auto a, auto, auto) { return a << by; });
    ExpectLanes(
        RandomWords(), kWords, [=](Builder&, auto v) { return Shr(v[0], by); },
        [=](auto a, auto, auto) { return a >> by; });
    ExpectLanes(
        RandomWords(), kWords, [=](Builder&, auto v) { return Sar(v[0], by); },
        [=](auto a, auto, auto) { return static_cast<std::uint32_t>(S(a) >> by); });
  }
}

TEST(InterpreterTest, FloatOperations) {
  const auto run = [](Op op, std::size_t operands, const Expected& expected) {
    ExpectLanes(FloatWords(), kFloats, Emit(op, kFloats, operands), expected);
  };
  run(Op::kFAdd, 2, [](auto a, auto b, auto) { return W(F(a) + F(b)); });
  run(Op::kFSub, 2, [](auto a, auto b, auto) { return W(F(a) - F(b)); });
  run(Op::kFMul, 2, [](auto a, auto b, auto) { return W(F(a) * F(b)); });
  run(Op::kFDiv, 2, [](auto a, auto b, auto) { return W(F(a) / F(b)); });
  run(Op::kFma, 3, [](auto a, auto b, auto c) { return W(std::fma(F(a), F(b), F(c))); });
  run(Op::kFAbs, 1, [](auto a, auto, auto) { return W(std::fabs(F(a))); });
  run(Op::kFRound, 1, [](auto a, auto, auto) { return W(std::nearbyint(F(a))); });
  run(Op::kFMin, 2, [](auto a, auto b, auto) { return F(a) < F(b) ? a : b; });
  run(Op::kFMax, 2, [](auto a, auto b, auto) { return F(a) > F(b) ? a : b; });
  ExpectLanes(
      FloatWords(), kFloats, [](Builder&, auto v) { return Sqrt(Abs(v[0])); },
      [](auto a, auto, auto) { return W(std::sqrt(std::fabs(F(a)))); });
  ExpectLanes(FloatWords(), kFloats, Emit(Op::kFLess, kWords, 2),
              [](auto a, auto b, auto) { return F(a) < F(b) ? ~0U : 0; });
}

TEST(InterpreterTest, MinAndMaxTakeTheSecondOperandWhenOneIsNan) {
  const std::uint32_t nan = 0x7fc00000;
  const std::vector<std::vector<std::uint32_t>> in = {{nan, W(1), W(-0.0F), W(0), nan, W(2), W(3), W(4)},
                                                      {W(1), nan, W(0), W(-0.0F), nan, W(2), W(3), W(4)}};
  const auto second = [](auto, auto b, auto) { return b; };
  ExpectLanes(in, kFloats, Emit(Op::kFMin, kFloats, 2), second);
  ExpectLanes(in, kFloats, Emit(Op::kFMax, kFloats, 2), second);
}

TEST(InterpreterTest, Conversions) {
  ExpectLanes(RandomWords(), kWords, Emit(Op::kI32ToF32, kFloats, 1),
              [](auto a, auto, auto) { return W(static_cast<float>(S(a))); });
  std::vector<std::vector<std::uint32_t>> halves = {{}};
  for (const float value : {0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 0.49999997F, 2147483520.0F, -2147483648.0F})
    halves[0].push_back(W(value));
  ExpectLanes(halves, kFloats, Emit(Op::kF32ToI32, kWords, 1), [](auto a, auto, auto) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(std::nearbyint(F(a))));
  });
  ExpectLanes(RandomWords(), kWords, Emit(Op::kBitcast, kFloats, 1), [](auto a, auto, auto) { return a; });
  ExpectLanes(RandomWords(), kWords, Emit(Op::kSelect, kWords, 3),
              [](auto mask, auto a, auto b) { return S(mask) < 0 ? a : b; });
}

std::int64_t UByte(std::uint32_t word, unsigned i) { return word >> (8 * i) & 0xff; }
std::int64_t SByte(std::uint32_t word, unsigned i) { return static_cast<std::int8_t>(word >> (8 * i)); }
std::int64_t SHalf(std::uint32_t word, unsigned i) { return static_cast<std::int16_t>(word >> (16 * i)); }

TEST(InterpreterTest, DotProductsInsideWords) {
  auto words = RandomWords();
  words[0][0] = 0xffffffff;  // 255 * 127 twice saturates; -32768 * -32768 twice wraps
  words[1][0] = 0x7f7f7f7f;
  words[0][1] = words[1][1] = 0x80008000;
  words[1][2] = 0x80808080;
  words[0][2] = 0xffffffff;
  ExpectLanes(words, kWords, Emit(Op::kDot4, kWords, 3), [](auto acc, auto a, auto b) {
    std::int64_t sum = S(acc);
    for (unsigned i = 0; i < 4; ++i) sum += UByte(a, i) * SByte(b, i);
    return static_cast<std::uint32_t>(sum);
  });
  ExpectLanes(words, kWords, Emit(Op::kDot4Signed, kWords, 3), [](auto acc, auto a, auto b) {
    std::int64_t sum = S(acc);
    for (unsigned i = 0; i < 4; ++i) sum += SByte(a, i) * SByte(b, i);
    return static_cast<std::uint32_t>(sum);
  });
  ExpectLanes(words, kWords, Emit(Op::kMaddBytes, kWords, 2), [](auto a, auto b, auto) {
    std::uint32_t word = 0;
    for (unsigned i = 0; i < 2; ++i) {
      const auto sum = UByte(a, 2 * i) * SByte(b, 2 * i) + UByte(a, 2 * i + 1) * SByte(b, 2 * i + 1);
      word |= (static_cast<std::uint32_t>(std::clamp<std::int64_t>(sum, -32768, 32767)) & 0xffff) << (16 * i);
    }
    return word;
  });
  ExpectLanes(words, kWords, Emit(Op::kMaddHalves, kWords, 2), [](auto a, auto b, auto) {
    return static_cast<std::uint32_t>(SHalf(a, 0) * SHalf(b, 0) + SHalf(a, 1) * SHalf(b, 1));
  });
  ExpectLanes(words, kWords, Emit(Op::kAddHalves, kWords, 2),
              [](auto a, auto b, auto) { return ((a + b) & 0xffff) | (((a >> 16) + (b >> 16)) << 16); });
}

TEST(InterpreterTest, TableReplacesEveryByte) {
  const std::vector<std::int32_t> table = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 255};
  ExpectLanes(
      RandomWords(0x0f0f0f0f), kWords, [&](Builder& b, auto v) { return b.Table16(v[0], table); },
      [&](auto a, auto, auto) {
        std::uint32_t word = 0;
        for (unsigned i = 0; i < 4; ++i)
          word |= (static_cast<std::uint32_t>(table[static_cast<std::size_t>(UByte(a, i))]) & 0xff) << (8 * i);
        return word;
      });
}

TEST(InterpreterTest, LanesMove) {
  const auto in = RandomWords();
  std::size_t lane = 0;
  ExpectLanes(
      in, kWords, [](Builder& b, auto v) { return b.Shuffle(v[0], {7, 6, 5, 4, 3, 2, 1, 1}); },
      [&](auto, auto, auto) { return in[0][std::max<std::size_t>(7 - lane++, 1)]; });
  ExpectLanes(
      in, kWords, [](Builder& b, auto v) { return Splat(b.Extract(v[0], 5), kLanes); },
      [&](auto, auto, auto) { return in[0][5]; });
  lane = 0;
  ExpectLanes(
      in, kWords, [](Builder& b, const auto&) { return b.LaneIndex(kLanes); },
      [&](auto, auto, auto) { return static_cast<std::uint32_t>(lane++); });
}

TEST(InterpreterTest, ScalarsOf64Bits) {
  Builder b("test", "addresses");
  const auto out = b.AddBuffer("out", true);
  const std::int64_t big = (std::int64_t{1} << 40) + 5;
  const std::vector<Value> values = {
      b.I64(big) + b.I64(3),
      b.I64(big) - b.I64(2 * big),
      b.I64(big) * b.I64(3),
      b.I64(-1) / b.I64(16),
      b.I64(big) & b.I64(0xff),
      b.I64(big) | b.I64(0xf0),
      b.I64(big) ^ b.I64(-1),
      Shl(b.I64(5), 40),
      Shr(b.I64(-1), 60),
      Sar(b.I64(-64), 3),
      Min(b.I64(-5), b.I64(4)),
      Max(b.I64(-5), b.I64(4)),
      Widen(b.I32(-9)),
      b.Begin(),
      b.End(),
      Select(Less(b.I64(1), b.I64(big)), b.I64(7), b.I64(8)),
  };
  for (std::size_t i = 0; i < values.size(); ++i)
    b.Store(out, b.I64(static_cast<std::int64_t>(8 * i)), values[i], Memory::kI64);
  const std::vector<std::int64_t> expected = {
      big + 3, -big, 3 * big, 0x0fffffffffffffff, 5, big | 0xf0, ~big, 5LL << 40, 15, -8, -5, 4, -9, -3, 11, 7};
  std::vector<std::int64_t> found(expected.size());
  const BufferView view = View(found);
  ASSERT_TRUE(Interpret(std::move(b).Finish(), {&view, 1}, -3, 11));
  EXPECT_EQ(found, expected);
}

TEST(InterpreterTest, NarrowDataAreWidenedAndNarrowed) {
  std::vector<std::uint8_t> in = {0x00, 0x3c, 0xff, 0x7b, 0x80, 0x00, 0x01, 0xfc};
  const auto run = [&](Scalar scalar, Memory memory, Memory stored) {
    Builder b("test", "narrow");
    const auto from = b.AddBuffer("in");
    const auto to = b.AddBuffer("out", true);
    const std::uint16_t lanes = memory == Memory::kU8 || memory == Memory::kS8 ? 8 : 4;
    b.Store(to, b.I64(0), b.Load(from, {scalar, lanes}, memory, b.I64(0)), stored);
    std::vector<std::uint32_t> out(8);
    const BufferView views[] = {View(in), View(out)};
    EXPECT_TRUE(Interpret(std::move(b).Finish(), views, 0, 0));
    return out;
  };
  EXPECT_EQ(run(Scalar::kI32, Memory::kU8, Memory::kWord)[2], 255U);
  EXPECT_EQ(run(Scalar::kI32, Memory::kS8, Memory::kWord)[2], ~0U);
  EXPECT_EQ(run(Scalar::kI32, Memory::kU16, Memory::kWord)[1], 0x7bffU);
  EXPECT_EQ(run(Scalar::kF32, Memory::kF16, Memory::kWord)[0], W(1.0F));
  EXPECT_EQ(run(Scalar::kF32, Memory::kF16, Memory::kWord)[1], W(65504.0F));
  EXPECT_EQ(run(Scalar::kF32, Memory::kF16, Memory::kWord)[2], W(std::ldexp(128.0F, -24)));  // subnormal
  EXPECT_EQ(run(Scalar::kF32, Memory::kBf16, Memory::kWord)[0], 0x3c000000U);
  for (const Memory memory : {Memory::kU8, Memory::kS8, Memory::kU16}) {
    const auto out = run(Scalar::kI32, memory, memory);
    EXPECT_EQ(std::memcmp(out.data(), in.data(), 8), 0);
  }
  EXPECT_EQ(std::memcmp(run(Scalar::kF32, Memory::kF16, Memory::kF16).data(), in.data(), 6), 0);
}

TEST(InterpreterTest, HalfStoresRoundToNearestEven) {
  std::vector<float> in = {2049.0F, 2051.0F, 65519.0F, 65520.0F, std::ldexp(1.0F, -25), std::ldexp(3.0F, -25)};
  std::vector<std::uint16_t> out(in.size());
  Builder b("test", "halves");
  const auto from = b.AddBuffer("in");
  const auto to = b.AddBuffer("out", true);
  b.Store(to, b.I64(0), b.LoadF32(from, 6, b.I64(0)), Memory::kF16);
  const BufferView views[] = {View(in), View(out)};
  ASSERT_TRUE(Interpret(std::move(b).Finish(), views, 0, 0));
  EXPECT_EQ(out, (std::vector<std::uint16_t>{0x6800, 0x6802, 0x7bff, 0x7c00, 0x0000, 0x0002}));
}

TEST(InterpreterTest, StridesBroadcastsAndLoopsThatExchange) {
  // Fibonacci by a loop that exchanges what it carries; a matrix transposed by strides.
  Builder b("test", "loops");
  const auto in = b.AddBuffer("in");
  const auto out = b.AddBuffer("out", true);
  const auto last = b.Loop(b.I64(0), b.I64(10), b.I64(1), {b.I32(0), b.I32(1)},
                           [&](Value, std::span<const Value> carried) -> std::vector<Value> {
                             return {carried[1], carried[0] + carried[1]};
                           });
  b.Store(out, b.I64(0), last[0]);
  b.If(Less(b.I32(3), b.I32(2)), [&] { b.Store(out, b.I64(0), b.I32(-1)); });
  b.If(Less(b.I32(2), b.I32(3)), [&] { b.Store(out, b.I64(4), b.I32(77)); });
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value column, auto) -> std::vector<Value> {
    const Value values = b.LoadStrided(in, {Scalar::kI32, 3}, Memory::kWord, column * 4, b.I64(16), 0);
    b.StoreStrided(out, column * 4, b.I64(16), values + b.LoadBroadcast(in, {Scalar::kI32, 3}, Memory::kWord, b.I64(4)),
                   Memory::kWord, 8);
    return {};
  });
  std::vector<std::int32_t> from = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::vector<std::int32_t> to(14, -5);
  const BufferView views[] = {View(from), View(to)};
  ASSERT_TRUE(Interpret(std::move(b).Finish(), views, 1, 4));
  EXPECT_EQ(to, (std::vector<std::int32_t>{55, 77, -5, 2, 3, 4, -5, 6, 7, 8, -5, 10, 11, 12}));
}

TEST(InterpreterTest, EveryAccessOutsideIsRefusedByName) {
  const auto run = [](const std::function<void(Builder&)>& write) {
    Builder b("refused", "an access outside");
    b.AddBuffer("data", true);
    write(b);
    std::vector<std::uint8_t> data(64);
    const BufferView view = View(data);
    const auto ran = Interpret(std::move(b).Finish(), {&view, 1}, 0, 0);
    EXPECT_FALSE(ran);
    if (ran) return std::string();
    EXPECT_EQ(ran.error().code, Code::kKernelIllegal);
    return ran.error().Message();
  };
  EXPECT_EQ(run([](Builder& b) { b.LoadI32(0, 8, b.I64(32), 4); }),
            "refused: %0 = load i32x8 data[32 + 4]: touches 32 bytes at 36 of data; expected 0 to 64");
  run([](Builder& b) { b.LoadI32(0, 1, b.I64(-1)); });
  run([](Builder& b) { b.LoadI32(0, 1, b.I64(std::numeric_limits<std::int64_t>::max()), 8); });
  run([](Builder& b) { b.LoadStrided(0, {Scalar::kI32, 5}, Memory::kWord, b.I64(0), b.I64(16)); });
  run([](Builder& b) { b.LoadBroadcast(0, {Scalar::kI32, 4}, Memory::kWord, b.I64(61)); });
  run([](Builder& b) { b.Store(0, b.I64(63), b.I32(0), Memory::kU16); });
  run([](Builder& b) { b.StoreStrided(0, b.I64(8), b.I64(-16), b.I32(0, 2), Memory::kU8); });
  run([](Builder& b) { b.Emit(Op::kDivU, {Scalar::kI64, 1}, {b.I64(3), b.I64(0)}); });
  run([](Builder& b) { Shl(b.I32(3), 32); });
  run([](Builder& b) { Shr(b.I64(3), 64); });
  run([](Builder& b) { b.Table16(b.I32(16), std::vector<std::int32_t>(16)); });
  run([](Builder& b) { b.Loop(b.I64(0), b.I64(1), b.I64(0), {}, [](Value, auto) { return std::vector<Value>(); }); });
}

TEST(InterpreterTest, PrefetchMayPointAnywhere) {
  Builder b("prefetch", "outside");
  b.Prefetch(b.AddBuffer("data"), b.I64(1 << 20));
  std::vector<std::uint8_t> data(1);
  const BufferView view = View(data);
  const Program program = std::move(b).Finish();
  EXPECT_TRUE(Interpret(program, {&view, 1}, 0, 0));
  EXPECT_EQ(Interpret(program, {}, 0, 0).error().code, Code::kKernelIllegal);  // a buffer too few
}

}  // namespace
}  // namespace boltbeam::kernel
