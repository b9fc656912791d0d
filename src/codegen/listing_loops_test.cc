#include "codegen/listing_loops.h"

#include <gtest/gtest.h>

namespace boltbeam::codegen {
namespace {

// A loop whose last block stands before its first one, as compilers lay out what is left from the middle: no jump goes
// back from the loop's last line to its first.
TEST(ListingLoops, FollowTheJumpsAndNotTheLines) {
  const auto loops = LoopsOfListing(
      "\t.text\nkernel:\n\tvpbroadcastd\t.LCPI0_0(%rip), %zmm0\n\tvpslld\t$4, %zmm0, %zmm1\n\tjge\t.LBB0_9\n"
      "\tjmp\t.LBB0_2\n"
      ".LBB0_8:\n\tincq\t%rsi\n\tvaddps\t%zmm4, %zmm5, %zmm5\n\tjge\t.LBB0_9\n"
      ".LBB0_2:\n\tvmovdqu64\t(%rax), %zmm2\n\tvpandd\t%zmm0, %zmm2, %zmm3\n"
      ".LBB0_6:\n\tvpdpbusd\t(%rcx){1to16}, %zmm2, %zmm3\n\tvpxor\t%xmm7, %xmm7, %xmm7\n\tvmovups\t%zmm3, 64(%rsp)\n"
      "\tjl\t.LBB0_6\n\tjmp\t.LBB0_8\n"
      ".LBB0_9:\n\tvzeroupper\n\tretq\n.Lfunc_end0:\n");
  ASSERT_EQ(loops.size(), 3U);
  EXPECT_EQ(loops[0].vector_instructions, chip::VectorCounts::Of(512, 1));
  EXPECT_EQ(loops[1].parent, 0);
  EXPECT_EQ(loops[1].vector_instructions, chip::VectorCounts::Of(512, 2));  // vaddps and vpandd
  EXPECT_EQ(loops[2].parent, 1);
  EXPECT_EQ(loops[2].vector_instructions, chip::VectorCounts::Of(512, 1));  // vpdpbusd
}

TEST(ListingLoops, ReadsArm) {
  const auto loops = LoopsOfListing(
      "kernel:                                 // @kernel\n\tcbz\tx0, .LBB0_4\n.LBB0_3:\n\tldr\tq2, [x9, x10]\n"
      "\tsdot\tv0.4s, v2.16b, v1.4b[0]\n\tstr\tq0, [sp, #16]\n\tb.lt\t.LBB0_3\n.LBB0_4:\n\tret\n");
  ASSERT_EQ(loops.size(), 2U);
  EXPECT_EQ(loops[1].vector_instructions, chip::VectorCounts::Of(128, 1));
}

TEST(ListingLoops, WhatTakesAVectorUnit) {
  const std::pair<const char*, std::uint32_t> lines[] = {{"\tvfmadd231ps\t(%rcx){1to16}, %zmm2, %zmm3", 512},
                                                         {"\tvpbroadcastd\t%r10d, %zmm1", 512},
                                                         {"\tvcvtph2ps\t(%rax), %ymm1", 256},
                                                         {"\tvextracti128\t$1, %ymm1, %xmm2", 256},
                                                         {"\tvpmovdb\t%zmm1, (%rax)", 512},
                                                         {"\tvmovshdup\t%xmm1, %xmm2", 128},
                                                         {"\tvpxord\t%zmm1, %zmm2, %zmm3", 512},
                                                         {"\tsdot\tv0.4s, v2.16b, v1.4b[0]", 128},
                                                         {"\tvmovdqu64\t(%rax), %zmm1", 0},
                                                         {"\tvmovaps\t%zmm1, %zmm2", 0},
                                                         {"\tvpbroadcastd\t(%rax), %zmm1", 0},
                                                         {"\tvxorps\t%xmm1, %xmm1, %xmm1", 0},
                                                         {"\taddq\t$4, %rax", 0},
                                                         {"\tprefetcht0\t(%rax)", 0},
                                                         {"\tvzeroupper", 0}};
  for (const auto& [line, bits] : lines) EXPECT_EQ(VectorInstructionBits(line), bits) << line;
}

TEST(ListingLoops, NothingIsNothing) {
  EXPECT_EQ(LoopsOfListing("").size(), 1U);
  EXPECT_EQ(LoopsOfListing("\n:\n\tj\n\tjmp\t.L\nkernel:\n\tjmp\t.LBB0_9\n").size(), 1U);
}

}  // namespace
}  // namespace boltbeam::codegen
