#include "codegen/listing_facts.h"

#include <gtest/gtest.h>

#include <cmath>

namespace boltbeam::codegen {
namespace {

TEST(ListingFactsTest, CountsTheInnermostLoop) {
  const ListingFacts facts = FactsOfListing(
      "\t.text\nkernel:\n\tvpbroadcastd\t.LCPI0_0(%rip), %zmm0\n.LBB0_2:\n\txorl\t%r10d, %r10d\n"
      ".LBB0_6:\n\tvmovdqu64\t(%rax,%r9), %zmm2\n\tvpandd\t%zmm0, %zmm2, %zmm3\n\tvmovups\t%zmm3, 64(%rsp)\n"
      "\taddq\t$320, %r9\n\tcmpq\t%r9, %r8\n\tjl\t.LBB0_6\n\tincq\t%rsi\n\tjne\t.LBB0_2\n\tretq\n");
  EXPECT_EQ(facts.loop_instructions, 6U);
  EXPECT_EQ(facts.vector_registers, 3U);
  EXPECT_EQ(facts.spills, 1U);
}

TEST(ListingFactsTest, ReadsArm) {
  const ListingFacts facts = FactsOfListing(
      "kernel:                                 // @kernel\n.LBB0_3:\n\tldr\tq2, [x9, x10]\n\tsdot\tv0.4s, v2.16b, "
      "v1.4b[0]\n"
      "\tstr\tq0, [sp, #16]\n\tcmp\tx10, x8\n\tb.lt\t.LBB0_3\n\tret\n");
  EXPECT_EQ(facts.loop_instructions, 5U);
  EXPECT_EQ(facts.vector_registers, 3U);
  EXPECT_EQ(facts.spills, 1U);
}

// Four lines, the third of which is read before the second: one pair over four lines. From read to read 1, 1, 3 and,
// around the loop, 2 instructions: root mean square 1.936 over a mean of 7 / 4.
TEST(ListingFactsTest, SeesTheOrderInWhichAStreamIsRead) {
  const ListingFacts facts = FactsOfListing(
      ".LBB0_4:\n\tvmovdqu64\t-64(%rax,%r8), %zmm1\n\tvmovdqu64\t64(%rax,%r8), %zmm2\n"
      "\tvpandd\t(%rax,%r8), %zmm0, %zmm3\n\tvpaddd\t4(%rcx,%r9){1to16}, %zmm3, %zmm3\n\tprefetcht0\t512(%rax,%r8)\n"
      "\tvmovups\t128(%rax,%r8), %ymm4\n\tjl\t.LBB0_4\n");
  EXPECT_EQ(facts.loop_instructions, 7U);
  ASSERT_TRUE(facts.stream);
  EXPECT_DOUBLE_EQ(facts.stream->disorder, 0.25);
  EXPECT_NEAR(facts.stream->unevenness, std::sqrt(15.0 / 4) / (7.0 / 4), 1e-12);
  // No memory, or only what lies on the stack, among constants or is one number for all lanes: no stream.
  EXPECT_FALSE(FactsOfListing(".L1:\n\tvaddps\t%zmm0, %zmm1, %zmm1\n\tvpaddd\t8(%rcx){1to16}, %zmm3, %zmm3\n"
                              "\tvmovups\t64(%rsp), %zmm2\n\tjl\t.L1\n")
                   .stream);
}

TEST(ListingFactsTest, NothingIsNothing) {
  EXPECT_EQ(FactsOfListing("").loop_instructions, 0U);
  EXPECT_EQ(FactsOfListing("\n:\n\tj\n\tjmp\t.L").loop_instructions, 0U);
}

}  // namespace
}  // namespace boltbeam::codegen
