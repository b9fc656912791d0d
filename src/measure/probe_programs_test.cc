#include "measure/probe_programs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernel/interpreter.h"
#include "kernel/verify.h"

namespace boltbeam::measure {
namespace {

template <typename T>
kernel::BufferView View(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

TEST(ProbeProgramsTest, StreamReadsEveryWordOnce) {
  for (const StreamShape& shape : {StreamShape{4, 4, 4, 0}, StreamShape{8, 8, 2, 4096}, StreamShape{16, 16, 8, 0}}) {
    const kernel::Program program = StreamProgram(shape);
    ASSERT_TRUE(kernel::Verify(program));
    constexpr std::int64_t kSteps = 5;
    std::vector<std::uint32_t> data(kSteps * shape.StepBytes() / 4), out(16);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint32_t>(i * i + 1);
    const std::array views{View(data), View(out)};
    ASSERT_TRUE(kernel::Interpret(program, views, 1, kSteps));
    std::vector<std::uint32_t> expected(16);
    for (std::size_t i = shape.StepBytes() / 4; i < data.size(); ++i) expected[i % shape.lanes] += data[i];
    EXPECT_EQ(out, expected) << program.name;
  }
}

TEST(ProbeProgramsTest, FmaDoesItsSums) {
  const kernel::Program program = FmaProgram(8, 3);
  ASSERT_TRUE(kernel::Verify(program));
  std::vector<float> in(16, 0.5F), out(8);
  for (std::size_t lane = 8; lane < 16; ++lane) in[lane] = 2;
  const std::array views{View(in), View(out)};
  ASSERT_TRUE(kernel::Interpret(program, views, 0, 4));
  float expected = 0;
  for (float sum : {1.0F, 2.0F, 3.0F}) {
    for (int i = 0; i < 4; ++i) sum = sum * 0.5F + 2;
    expected += sum;
  }
  EXPECT_FLOAT_EQ(out[7], expected);
}

TEST(ProbeProgramsTest, IntegerProductsDoTheirSums) {
  // Bytes 1, 2, 3 and -4 of a word; one accumulator that begins at 1, one work item.
  const std::uint32_t word = 0xFC030201U;
  const auto one = [&](const kernel::Program& program) {
    EXPECT_TRUE(kernel::Verify(program)) << program.name;
    std::vector<std::uint32_t> in(4, word), out(4);
    const std::array views{View(in), View(out)};
    EXPECT_TRUE(kernel::Interpret(program, views, 0, 1)) << program.name;
    return out[3];
  };
  EXPECT_EQ(one(DotProgram(4, 1)), 1U + 1);  // 1 + 1 x 1
  EXPECT_EQ(one(SignedDotProgram(4, 1)), 1U + 1);
  EXPECT_EQ(one(MaddBytesProgram(4, 1)), 1U + 1);
  EXPECT_EQ(one(MaddHalvesProgram(4, 1)), 1U + 0x0201);  // 1 x the low half
  // A second turn multiplies what the first one left.
  const auto two = [&](const kernel::Program& program) {
    std::vector<std::uint32_t> in(4, word), out(4);
    const std::array views{View(in), View(out)};
    EXPECT_TRUE(kernel::Interpret(program, views, 0, 2)) << program.name;
    return out[0];
  };
  EXPECT_EQ(two(DotProgram(4, 1)), 2U + 2);
  EXPECT_EQ(two(MaddHalvesProgram(4, 1)), 0x0202U + 0x0202 * 0x0201);
}

TEST(ProbeProgramsTest, SimpleAddsOnceAWorkItem) {
  std::vector<std::uint32_t> in(4), out(4);
  const std::array views{View(in), View(out)};
  ASSERT_TRUE(kernel::Interpret(SimpleProgram(4, 3), views, 2, 7));  // adds the end of the range, five times
  EXPECT_EQ(out[3], 1U + 2 + 3 + 3 * 5 * 7);
}

TEST(ProbeProgramsTest, CopyAndWriteTouchTheirGrainsAndNoOthers) {
  constexpr std::uint64_t kGrainBytes = 128;
  std::vector<std::uint32_t> source(96), target(96, 7);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint32_t>(1000 + i);
  const std::array views{View(source), View(target)};
  ASSERT_TRUE(kernel::Interpret(CopyProgram(8, kGrainBytes), views, 1, 2));
  for (std::size_t i = 0; i < target.size(); ++i) EXPECT_EQ(target[i], i / 32 == 1 ? source[i] : 7) << i;
  const std::array written{View(target)};
  ASSERT_TRUE(kernel::Interpret(WriteProgram(8, kGrainBytes), written, 2, 3));
  for (std::size_t i = 64; i < target.size(); ++i) EXPECT_EQ(target[i], i / 8 * 32) << i;  // the offset of its vector
  EXPECT_EQ(target[0], 7U);
}

TEST(ProbeProgramsTest, ChaseFollowsTheChain) {
  std::vector<std::uint64_t> chain{24, 0, 0, 40, 0, 8}, out(1);
  const std::array views{View(chain), View(out)};
  ASSERT_TRUE(kernel::Interpret(ChaseProgram(), views, 0, 3));
  EXPECT_EQ(out[0], 8U);  // 0 -> 24 -> 40 -> 8
  ASSERT_TRUE(kernel::Interpret(ChaseProgram(), views, 0, 1));
  EXPECT_EQ(out[0], 0U) << "on from where it ended";
}

TEST(ProbeProgramsTest, DotDependsOnEveryStep) {
  const kernel::Program program = DotProgram(4, 2);
  ASSERT_TRUE(kernel::Verify(program));
  std::vector<std::int32_t> in(4, 0x01020304), out(4), more(4);
  const std::array views{View(in), View(out)}, more_views{View(in), View(more)};
  ASSERT_TRUE(kernel::Interpret(program, views, 0, 3));
  ASSERT_TRUE(kernel::Interpret(program, more_views, 0, 4));
  EXPECT_NE(out[0], 0);
  EXPECT_NE(out[0], more[0]);
}

TEST(ProbeProgramsTest, EmptyDoesNothing) {
  EXPECT_TRUE(kernel::Verify(EmptyProgram()));
  EXPECT_TRUE(kernel::Interpret(EmptyProgram(), {}, 0, 10));
}

}  // namespace
}  // namespace boltbeam::measure
