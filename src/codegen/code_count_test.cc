#include "codegen/code_count.h"

#include <gtest/gtest.h>

#include "formats/format.h"
#include "kernel/families/attention.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/gemv.h"
#include "kernel/families/state.h"
#include "kernel/geometry.h"

namespace boltbeam::codegen {
namespace {

using kernel::LoopTurns;

ListingLoop Loop(std::int32_t parent, double wide, double narrow = 0) {
  chip::VectorCounts counts = chip::VectorCounts::Of(256, wide);
  counts += chip::VectorCounts::Of(128, narrow);
  return {parent, counts};
}

TEST(CodeCount, LoopsAreWeighedByTheirTurns) {
  const std::vector<LoopTurns> program = {{.turns = 1, .vector_operations = 5},
                                          {.parent = 0, .turns = 3, .vector_operations = 2},
                                          {.parent = 1, .turns = 12, .vector_operations = 4}};
  const CodeCount count = CountLoops({Loop(-1, 10), Loop(0, 7, 2), Loop(1, 1)}, program, 512);
  EXPECT_TRUE(count.is_from_listing);
  EXPECT_EQ(count.vector_instructions.of, (std::array<double, 3>{3 * 2, 10 + 3 * 7 + 12, 0}));
}

TEST(CodeCount, OtherLoopsThanTheProgramsCountTheProgram) {
  const std::vector<LoopTurns> program = {{.turns = 1, .vector_operations = 5},
                                          {.parent = 0, .turns = 3, .vector_operations = 2},
                                          {.parent = 1, .turns = 12, .vector_operations = 4}};
  for (const auto& listing :
       {std::vector{Loop(-1, 10), Loop(0, 7)}, std::vector{Loop(-1, 9), Loop(0, 7), Loop(0, 1)}}) {
    const CodeCount count = CountLoops(listing, program, 512);
    EXPECT_FALSE(count.is_from_listing);
    EXPECT_EQ(count.vector_instructions, chip::VectorCounts::Of(512, 5 + 3 * 2 + 12 * 4));
    EXPECT_NE(count.why.find("loops"), std::string::npos) << count.why;
  }
}

TEST(CodeCount, ALoopThatTurnsOnceIsNoLoopOfTheCompilers) {
  const std::vector<LoopTurns> program = {
      {.turns = 1}, {.parent = 0, .turns = 1, .is_single = true}, {.parent = 1, .turns = 12, .vector_operations = 4}};
  const CodeCount count = CountLoops({Loop(-1, 10), Loop(0, 3)}, program, 512);
  EXPECT_TRUE(count.is_from_listing);
  EXPECT_DOUBLE_EQ(count.vector_instructions.Total(), 10 + 12 * 3);
  // But it may be left.
  const CodeCount left = CountLoops({Loop(-1, 10), Loop(0, 2), Loop(1, 3)}, program, 512);
  EXPECT_TRUE(left.is_from_listing);
  EXPECT_DOUBLE_EQ(left.vector_instructions.Total(), 10 + 2 + 12 * 3);
}

/// As many instructions a weight as the listing of the product's inner loop has, and no fewer than half of what the
/// program says: a compiler folds shifts and masks but not the products.
TEST(CodeCount, ProductsComeFromTheirListing) {
  chip::Chip chip;
  chip.features = {"pni", "ssse3", "sse4_1", "sse4_2", "avx", "avx2", "fma", "f16c"};
  const kernel::VectorFacts facts = kernel::VectorFactsOf(chip);
  CodeCounter counter(TargetFor(chip), facts.bits());
  for (const char* name : {"Q4_K", "Q6_K", "Q8_0", "F16"}) {
    const formats::Format& format = *formats::FindFormat(name);
    const kernel::GemvGeometry geometry = kernel::DefaultGeometry(format, facts, false);
    const kernel::WeightLayout layout = *kernel::LayoutFor(format, geometry);
    const kernel::Program program = *kernel::BuildGemv(layout, geometry, {.rows = 64, .cols = 4096});
    const CodeCount all = counter.Count(program, 0, 64 / layout.lanes);
    EXPECT_TRUE(all.is_from_listing) << name << ": " << all.why;
    const CodeCount half = counter.Count(program, 0, 32 / layout.lanes);
    const double sum = all.vector_instructions.Total();
    EXPECT_NEAR(half.vector_instructions.Total() * 2, sum, sum * 0.01) << name;
    // Scales are read and spread in narrow registers, products are wide.
    EXPECT_GT(all.vector_instructions.of[1], sum * 0.7) << name;
    EXPECT_EQ(all.vector_instructions.of[2], 0) << name;
    double own = 0;
    for (const LoopTurns& loop : kernel::TurnsOf(program, 0, 64 / layout.lanes))
      own += loop.turns * loop.vector_operations;
    EXPECT_GT(sum, own / 2) << name;
    EXPECT_LT(sum, own * 2) << name;
  }
}

TEST(CodeCount, AttentionTakesWhatItsPositionsTake) {
  chip::Chip chip;
  chip.features = {"pni", "ssse3", "sse4_1", "sse4_2", "avx", "avx2", "fma", "f16c"};
  const kernel::VectorFacts facts = kernel::VectorFactsOf(chip);
  kernel::AttentionShape shape;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 64;
  shape.context = 4096;
  shape.lanes = facts.lanes;
  shape.registers = facts.registers;
  const kernel::Program program = kernel::BuildAttention(shape);
  CodeCounter counter(TargetFor(chip), facts.bits());
  const auto at = [&](std::int32_t position) {
    const std::int32_t chunks = position / 128 + 1;
    const kernel::KnownWord words[] = {
        {3, kernel::kStateColumns, 1}, {3, kernel::kStatePosition, position}, {3, kernel::kStateChunks, chunks}};
    const CodeCount count = counter.Count(program, 0, std::int64_t{2} * chunks, words);
    EXPECT_TRUE(count.is_from_listing) << count.why;
    return count.vector_instructions.Total();
  };
  // Each position: 64 products with its key and 64 with its value for 4 heads, 8 a lane; the last chunk is not full.
  EXPECT_GT(at(4095), 4096.0 * 4 * 128 / 8);
  EXPECT_LT(at(4095), 4 * 4096.0 * 4 * 128 / 8);
  EXPECT_NEAR(at(1023) / at(511), 2, 0.02);
  EXPECT_NEAR((at(543) - at(511)) / (at(1023) - at(511)), 32.0 / 512, 0.01);
}

TEST(CodeCount, WhatIsNotCompiledIsCountedInTheProgram) {
  CodeCounter counter({"no-such-machine", {}}, 256);
  const kernel::Program program = kernel::BuildGate({96, 384, 384, 8}, kernel::GateFunction::kSilu);
  const CodeCount count = counter.Count(program, 0, 2);
  EXPECT_FALSE(count.is_from_listing);
  EXPECT_FALSE(count.why.empty());
  EXPECT_GT(count.vector_instructions.of[1], 2 * 12 * 10);
}

}  // namespace
}  // namespace boltbeam::codegen
