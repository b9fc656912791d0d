// The printed form, the identity, and what the verifier refuses.
#include "kernel/program.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "kernel/builder.h"
#include "kernel/verify.h"

namespace boltbeam::kernel {
namespace {

constexpr Type kI32x4{Scalar::kI32, 4};

Program Sample(std::int64_t step = 64) {
  Builder b("sample.f32", "out = sum of weights times x, and a clamp");
  const auto weights = b.AddBuffer("weights");
  const auto out = b.AddBuffer("out", true);
  const Value begin = b.Begin();
  const Value end = b.End();
  const auto sums = b.Loop(
      begin, end, b.I64(step), {b.F32(0, 16)}, [&](Value at, std::span<const Value> carried) -> std::vector<Value> {
        b.Prefetch(weights, at, 4096);
        const Value codes = b.Load(weights, {Scalar::kI32, 16}, Memory::kU8, at, 64, /*ordered=*/true);
        const Value low = codes & b.I32(0x0f, 16);
        const Value codes_as_float = ToF32(low);
        return {Fma(codes_as_float, b.F32(0.5F, 16), carried[0])};
      });
  b.If(Less(b.I32(3), b.Extract(AsI32(sums[0]), 5)), [&] {
    const Value at = begin * 4;
    b.Store(out, at, b.Shuffle(sums[0], {1, 0}), Memory::kF16, -8);
    b.StoreStrided(out, b.I64(0), b.I64(12), sums[0]);
  });
  return std::move(b).Finish();
}

constexpr std::string_view kGolden = R"(kernel sample.f32
  out = sum of weights times x, and a clamp
  provenance compiler_generated
  buffer 0 weights
  buffer 1 out written
%0 = begin i64
%1 = end i64
%2 = loop %3 from %0 to %1 step 64 carrying %4 f32x16 = 0.0 {
  prefetch weights[%3 + 4096]
  %5 = load u8x16 weights[%3 + 64] ordered
  %6 = and i32x16 %5, 15
  %7 = i32_to_f32 f32x16 %6
  %8 = fma f32x16 %7, 0.5, %4
  next %8
}
%9 = bitcast i32x16 %2
%10 = extract i32 %9 lane 5
%11 = less i32 3, %10
if %11 {
  %12 = mul i64 %0, 4
  %13 = shuffle f32x2 %2 [1, 0]
  store f16x2 out[%12 - 8], %13
  store_strided f32x16 out[0 + lane * 12], %2
}
)";

TEST(PrintTest, GoldenText) { EXPECT_EQ(Print(Sample()), kGolden); }

TEST(PrintTest, NotesStandBeforeWhatTheyDescribeAndAreNoPartOfTheIdentity) {
  Program noted = Sample();
  for (Instruction& instruction : noted.body.code)
    if (instruction.op == Op::kLoop) instruction.note = "weights of a row";
  EXPECT_NE(Print(noted).find("\n# weights of a row\n%2 = loop"), std::string::npos);
  EXPECT_EQ(Identity(noted), Identity(Sample()));

  Builder b("noted", "");
  b.Note("outer");
  b.Loop(b.I64(0), b.I64(4), b.I64(1), {}, [&](Value at, auto) -> std::vector<Value> {
    b.Note("inner");
    static_cast<void>(at * 4);
    return {};
  });
  const std::string text = Print(std::move(b).Finish());
  EXPECT_NE(text.find("# outer\nloop"), std::string::npos) << text;
  EXPECT_NE(text.find("  # inner\n  %1 = mul"), std::string::npos) << text;
}

TEST(PrintTest, EqualProgramsHaveEqualIdentitiesAndOthersDiffer) {
  EXPECT_EQ(Identity(Sample()), Identity(Sample()));
  EXPECT_EQ(Identity(Sample()).size(), 64U);
  EXPECT_NE(Identity(Sample()), Identity(Sample(128)));
  const auto differs = [](const std::function<void(Program&)>& change) {
    Program program = Sample();
    change(program);
    return Identity(program) != Identity(Sample());
  };
  const auto loop = [](Program& p) -> Instruction& {
    for (Instruction& i : p.body.code)
      if (i.op == Op::kLoop) return i;
    return p.body.code.front();
  };
  EXPECT_TRUE(differs([](Program& p) { p.name = "other"; }));
  EXPECT_TRUE(differs([](Program& p) { p.buffers[0].written = true; }));
  EXPECT_TRUE(differs([](Program& p) { p.provenance = Provenance::kHandWritten; }));
  EXPECT_TRUE(differs([&](Program& p) { loop(p).body[0].code[1].ordered = false; }));
  EXPECT_TRUE(differs([&](Program& p) { loop(p).body[0].code[1].offset = 0; }));
  EXPECT_TRUE(differs([&](Program& p) { loop(p).body[0].code[1].memory = Memory::kS8; }));
  EXPECT_TRUE(differs([&](Program& p) { loop(p).body[0].code[1].buffer = 1; }));
  EXPECT_TRUE(differs([](Program& p) { p.body.code.front().imm ^= 1; }));
  EXPECT_TRUE(differs([](Program& p) { p.body.code.back().body[0].code.pop_back(); }));
}

TEST(PrintTest, EveryOperationAndProvenanceHasAName) {
  EXPECT_EQ(OpName(Op::kConstant), "constant");
  EXPECT_EQ(OpName(Op::kDivU), "div_u");
  EXPECT_EQ(OpName(Op::kFRound), "fround");
  EXPECT_EQ(OpName(Op::kTable16), "table16");
  EXPECT_EQ(OpName(Op::kIf), "if");
  EXPECT_EQ(ProvenanceName(Provenance::kSearchGenerated), "search_generated");
  EXPECT_EQ(ProvenanceName(Provenance::kUnknown), "unknown");
}

TEST(PrintTest, ConstantsReadBackExactly) {
  Builder b("constants", "shown where they are used");
  const auto out = b.AddBuffer("out", true);
  for (const Value value : {b.F32(0.1F), b.F32(-0.0F), b.F32(1e30F), b.F32(std::numeric_limits<float>::infinity()),
                            b.F32(std::numeric_limits<float>::quiet_NaN()), b.I32(-7), b.I32(-65536)})
    b.Store(out, b.I64(0), value);
  const std::string text = Print(std::move(b).Finish());
  for (const char* shown :
       {", 0.1\n", ", -0.0\n", ", 1e+30\n", ", inf\n", ", nan:0x7fc00000\n", ", -7\n", ", 0xffff0000\n"})
    EXPECT_NE(text.find(shown), std::string::npos) << shown << "\n" << text;
}

/// Verify refuses what change makes of the sample; the message.
std::string Refused(
    const std::function<void(Builder&)>& write, const std::function<void(Program&)>& change = [](Program&) {}) {
  Builder b("refused", "ill formed");
  b.AddBuffer("in");
  b.AddBuffer("out", true);
  write(b);
  Program program = std::move(b).Finish();
  change(program);
  const auto verified = Verify(program);
  EXPECT_FALSE(verified) << Print(program);
  if (verified) return "";
  EXPECT_EQ(verified.error().code, Code::kKernelIllegal);
  EXPECT_FALSE(Print(program).empty());  // what is ill formed can still be printed
  return verified.error().Message();
}

TEST(VerifyTest, AcceptsTheSample) {
  const auto verified = Verify(Sample());
  EXPECT_TRUE(verified) << verified.error().Message();
}

TEST(VerifyTest, RefusesWrongTypes) {
  EXPECT_EQ(Refused([](Builder& b) { b.Emit(Op::kAdd, kI32x4, {b.LaneIndex(4), b.LaneIndex(8)}); }),
            "refused: %2 = add i32x4 %0, %1: operand 1 has the wrong type; expected the type that the operation and "
            "its result ask for");
  Refused([](Builder& b) { b.Emit(Op::kFAdd, kI32x4, {b.LaneIndex(4), b.LaneIndex(4)}); });
  Refused([](Builder& b) { b.Emit(Op::kFma, {Scalar::kF32, 1}, {b.F32(1), b.F32(1)}); });
  Refused([](Builder& b) { b.Emit(Op::kAdd, {Scalar::kI64, 2}, {b.I64(1), b.I64(1)}); });
  Refused([](Builder& b) { b.Emit(Op::kLess, {Scalar::kI32, 2}, {b.I64(1), b.I64(1)}); });
  Refused([](Builder& b) { b.Emit(Op::kDivU, {Scalar::kI32, 1}, {b.I32(1), b.I32(1)}); });
  Refused([](Builder& b) { b.Emit(Op::kBitcast, {Scalar::kI32, 1}, {b.I32(1)}); });
  Refused([](Builder& b) { b.Emit(Op::kWiden, {Scalar::kI64, 1}, {b.I64(1)}); });
  Refused([](Builder& b) { b.Emit(Op::kNarrow, {Scalar::kI32, 1}, {b.I32(1)}); });
  Refused([](Builder& b) { b.If(b.I64(1), [] {}); });
  Refused([](Builder& b) { b.Load(0, kI32x4, Memory::kF16, b.I64(0)); });
  Refused([](Builder& b) { b.Load(0, {Scalar::kF32, 4}, Memory::kU8, b.I64(0)); });
  Refused([](Builder& b) { b.Load(0, kI32x4, Memory::kWord, b.I32(0)); });
  Refused([](Builder& b) { b.Load(0, {Scalar::kI64, 1}, Memory::kWord, b.I64(0)); });
}

TEST(VerifyTest, RefusesWrongPlacesAndTables) {
  Refused([](Builder& b) { b.LoadI32(2, 4, b.I64(0)); });
  EXPECT_NE(Refused([](Builder& b) { b.Store(0, b.I64(0), b.I32(1)); }).find("only read"), std::string::npos);
  Refused([](Builder& b) { b.Store(1, b.I64(0), b.F32(1), Memory::kBf16); });
  Refused([](Builder& b) { b.Prefetch(9, b.I64(0)); });
  Refused([](Builder& b) { b.Shuffle(b.LaneIndex(4), {0, 4}); });
  Refused([](Builder& b) { b.Shuffle(b.LaneIndex(4), {0, -1}); });
  Refused([](Builder& b) { b.Table16(b.LaneIndex(4), {1, 2}); });
  Refused([](Builder& b) { b.Table16(b.LaneIndex(4), std::vector<std::int32_t>(16, 256)); });
  Refused([](Builder& b) { b.Extract(b.LaneIndex(4), 4); });
  Refused([](Builder& b) { b.LaneIndex(4); }, [](Program& p) { p.body.code[0].table = {1}; });
  Refused([](Builder& b) { b.I32(1); }, [](Program& p) { p.body.code[0].imm = std::uint64_t{1} << 32; });
  Refused([](Builder& b) { b.LaneIndex(4); }, [](Program& p) { p.types[0].lanes = 0; });
  Refused([](Builder&) {}, [](Program& p) { p.buffers[1].name = "in"; });
}

TEST(VerifyTest, RefusesWrongDefinitionsAndScopes) {
  const auto two = [](Builder& b) { b.LaneIndex(4), b.LaneIndex(4); };
  Refused(two, [](Program& p) { p.body.code[1].results[0] = 0; });
  Refused(two, [](Program& p) { p.body.code[1].results[0] = 7; });
  Refused(two, [](Program& p) { p.body.code[1].results.clear(); });
  Refused(two, [](Program& p) { p.body.code.pop_back(); });
  Refused(two, [](Program& p) { p.body.code[1].body.resize(1); });
  Refused(two, [](Program& p) { p.body.yields = {0}; });
  Refused([](Builder& b) { b.LaneIndex(4) + b.LaneIndex(4); },
          [](Program& p) { std::swap(p.body.code[1], p.body.code[2]); });
  EXPECT_NE(Refused([](Builder& b) {
              Value inner;
              b.If(b.I32(1), [&] { inner = b.LaneIndex(4); });
              b.Store(1, b.I64(0), inner);
            }).find("outside of the body"),
            std::string::npos);
}

TEST(VerifyTest, RefusesLoopsThatDoNotFit) {
  const auto loop = [](Builder& b) {
    b.Loop(b.I64(0), b.I64(4), b.I64(1), {b.I32(1)},
           [](Value, std::span<const Value> carried) { return std::vector<Value>{carried[0] + 1}; });
  };
  const auto broken = [&](const std::function<void(Instruction&)>& change) {
    Refused(loop, [&](Program& p) { change(p.body.code.back()); });
  };
  broken([](Instruction& i) { i.body[0].yields.clear(); });
  broken([](Instruction& i) { i.body[0].yields[0] = i.body[0].arguments[0]; });
  broken([](Instruction& i) { i.body[0].arguments.pop_back(); });
  broken([](Instruction& i) { i.results.clear(); });
  broken([](Instruction& i) { i.operands.pop_back(); });
  broken([](Instruction& i) { i.operands[2] = i.operands[3]; });
  broken([](Instruction& i) { i.body.clear(); });
}

}  // namespace
}  // namespace boltbeam::kernel
