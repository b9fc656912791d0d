#include "codegen/listing_facts.h"

#include <gtest/gtest.h>

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

TEST(ListingFactsTest, NothingIsNothing) {
  EXPECT_EQ(FactsOfListing("").loop_instructions, 0U);
  EXPECT_EQ(FactsOfListing("\n:\n\tj\n\tjmp\t.L").loop_instructions, 0U);
}

}  // namespace
}  // namespace boltbeam::codegen
