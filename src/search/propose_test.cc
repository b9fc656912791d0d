#include "search/propose.h"

#include <gtest/gtest.h>

#include "chip/test_facts.h"
#include "search/fit.h"
#include "search/predict.h"

namespace boltbeam::search {
namespace {

Part Q4() {
  const formats::Format* format = formats::FindFormat("Q4_K");
  return {"Q4_K.4096x4096", "attn_qo", format, 4096, 4096, 1, std::uint64_t{4096} * 4096 / 256 * 144};
}

TEST(ProposeTest, AccountsForEveryPointOfTheFreeProduct) {
  const Proposal proposal = ProposeProduct(Q4(), chip::MeasuredTestCpu());
  std::uint64_t rejected = 0;
  for (const Rejected& one : proposal.rejected) rejected += one.points;
  EXPECT_GT(proposal.points.size(), 200U);
  EXPECT_EQ(proposal.points.size() + rejected, proposal.free_product);
}

TEST(ProposeTest, LeavesOutWhatTheLedgerHasRefuted) {
  const Proposal all = ProposeProduct(Q4(), chip::MeasuredTestCpu());
  const std::string refuted = CandidateName(all.points[3]);
  const Proposal rest = ProposeProduct(Q4(), chip::MeasuredTestCpu(),
                                       [&](const ledger::Subject& subject) { return subject.candidate == refuted; });
  EXPECT_EQ(rest.refuted, 1U);
  EXPECT_EQ(rest.points.size() + 1, all.points.size());
  EXPECT_EQ(rest.legal(), all.legal());
}

TEST(PredictTest, OrdersByTimeAndHasAFloor) {
  const auto foresight = PredictProduct(ProposeProduct(Q4(), chip::MeasuredTestCpu()), chip::MeasuredTestCpu(), 2);
  ASSERT_TRUE(foresight);
  ASSERT_FALSE(foresight->survivors.empty());
  for (std::size_t i = 1; i < foresight->survivors.size(); ++i) {
    EXPECT_LE(foresight->survivors[i - 1].ns, foresight->survivors[i].ns);
  }
  EXPECT_NEAR(foresight->floor_ns, 4096.0 * 4096 * 4.5 / 8 / 40, 1);
}

TEST(PredictTest, WhatNobodyAskedForAheadIsLate) {
  Work work;
  work.bytes = 40e3;
  work.bandwidth_gb_s = 40;
  work.instructions_s = 1e9;
  const Coefficients coefficients;
  const auto memory_ns = [&](double ahead_kib) {
    work.ahead_kib = ahead_kib;
    return TimeOf(work, coefficients).memory_ns;
  };
  work.has_long_stride = true;
  work.kept = 0;
  EXPECT_NEAR(memory_ns(0), 1000 * (1 + coefficients.late), 1e-6);
  EXPECT_NEAR(memory_ns(1), 1000 * (1 + coefficients.late / 2), 1e-6);
  EXPECT_LT(memory_ns(16), memory_ns(1));
  // Of half of the lines one half is late as before; what a core looks ahead by itself counts as fetched.
  work.asked = 0.5;
  EXPECT_NEAR(memory_ns(1), 1000 * (1 + coefficients.late * 0.75), 1e-6);
  work.kib_each = 1 / coefficients.window;
  EXPECT_NEAR(memory_ns(0), 1000 * (1 + coefficients.late / 2), 1e-6);
  // A prefetcher is ahead of what it can follow, and what every cache keeps pushes other lines out.
  work.kib_each = 0;
  work.has_long_stride = false;
  EXPECT_NEAR(memory_ns(0), 1000 * (1 + coefficients.late / (1 + coefficients.follow)), 1e-6);
  work.has_long_stride = true;
  work.kept = 1;
  EXPECT_NEAR(memory_ns(0), 1000 * (1 + coefficients.late) * (1 + coefficients.kept), 1e-6);
}

TEST(PredictTest, NoPrefetcherFollowsTurnsOfMoreThanHalfAPage) {
  const Part part = *PartOfTable("Q8_0.4096x4096");
  Counter counter(part, chip::MeasuredTestCpu(), 2);
  kernel::GemvGeometry point{.lanes = 16, .dot = kernel::Dot::kDot4, .unroll = 2};  // turns of 1,088 B
  const Work two = *counter.Count(point);
  point.unroll = 4;
  const Work four = *counter.Count(point);
  EXPECT_FALSE(two.has_long_stride);
  EXPECT_TRUE(four.has_long_stride);
  EXPECT_EQ(four.asked, 1);
  EXPECT_EQ(four.kept, 1);
  point.prefetch_bytes = 4096;
  point.prefetch_once = true;
  point.prefetch_every = 2;
  const Work half = *counter.Count(point);
  EXPECT_EQ(half.asked, 0.5);
  EXPECT_EQ(half.kept, 0.5);
  EXPECT_EQ(half.prefetches * 2, half.turns * 34);
}

}  // namespace
}  // namespace boltbeam::search
