#include "measure/probes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "measure/chip_measure.h"
#include "measure/memory_probes.h"
#include "measure/statistics.h"

namespace boltbeam::measure {
namespace {

TEST(RefusalTest, ARereadFasterThanTheMemoryShowsThatNothingWasEvicted) {
  // Recorded: 64 MiB at 2.03 TB/s after a flush that evicted nothing, on a memory of 1.70 TB/s.
  const auto refused =
      RefuseAbove("re-read after the cache sweep", 2030, "the memory's streaming rate", 1701, 0.05, "GB/s");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kMeasurementImpossible);
  EXPECT_EQ(CodeGroup(refused.error().code), Group::kMeasurement);
  EXPECT_TRUE(RefuseAbove("re-read", 1700, "the memory's streaming rate", 1701, 0.05, "GB/s"));
  EXPECT_TRUE(RefuseAbove("re-read", 1750, "the memory's streaming rate", 1701, 0.05, "GB/s"));  // within the band
}

TEST(RefusalTest, ALoopThatWasOptimisedAwayIsRefused) {
  // A loop without the minimum length once reported 1.78 million GFLOPS.
  EXPECT_EQ(RefuseImpossibleRate("fma", 1.78e15, 2, 16, 2).error().code, Code::kMeasurementImpossible);
  EXPECT_EQ(RefuseImpossibleRate("fma", 0, 2, 16, 2).error().code, Code::kMeasurementImpossible);
  EXPECT_TRUE(RefuseImpossibleRate("fma", 232e9, 2, 16, 2));
}

TEST(RefusalTest, ALoopMustOutlastTheDispatch) {
  EXPECT_EQ(RefuseShortLoop("fma", 49'000, 1000).error().code, Code::kMeasurementImpossible);
  EXPECT_TRUE(RefuseShortLoop("fma", 50'000, 1000));
}

TEST(RefusalTest, ALatencyOfACacheIsRefused) {
  EXPECT_EQ(RefuseCachedLatency(14).error().code, Code::kMeasurementImpossible);
  EXPECT_TRUE(RefuseCachedLatency(90));
}

TEST(ThreadCountsTest, PowersOfTwoAndAll) {
  EXPECT_EQ(ThreadCounts(1), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(ThreadCounts(2), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(ThreadCounts(6), (std::vector<std::uint32_t>{1, 2, 4, 6}));
}

class ProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    machine_ = chip::DetectThisMachine().value();
    kernels_ = std::make_unique<runtime::KernelCache>(codegen::TargetFor(machine_), "");
    auto pool = runtime::ThreadPool::Create({chip::UsableCpus().front()});
    ASSERT_TRUE(pool) << pool.error().Message();
    pool_ = std::move(*pool);
  }
  chip::Chip machine_;
  std::unique_ptr<runtime::KernelCache> kernels_;
  std::unique_ptr<runtime::ThreadPool> pool_;
};

TEST_F(ProbeTest, MemoryIsCopiedWrittenAndChasedAtPossibleRates) {
  constexpr double kMostGbS = 5000;
  auto probe = MemoryProbe::Create(*kernels_, machine_, *pool_, 8 << 20);
  ASSERT_TRUE(probe) << probe.error().Message();
  for (const double gb_s : {probe->Copy(*pool_), probe->Write(*pool_)}) {
    EXPECT_GT(gb_s, 0.01);
    EXPECT_LT(gb_s, kMostGbS);
  }
  probe->PrepareChase(3);
  EXPECT_GT(probe->Latency(*pool_), 0.5);  // a chain that was not followed takes no time at all
}

TEST_F(ProbeTest, StreamsOfEveryShapeReadAtAPossibleRate) {
  auto probe = StreamProbe::Create(*kernels_, machine_, *pool_, 3'000'000);
  ASSERT_TRUE(probe) << probe.error().Message();
  EXPECT_GE(probe->bytes(), 3'000'000U);
  EXPECT_GE(probe->shapes().size(), 6U);
  const std::vector<std::size_t> order = probe->FastestShapes(*pool_, 3);
  EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), probe->shapes().size());
  const double gb_s = probe->Pass(*pool_, order.front());
  EXPECT_GT(gb_s, 0.01);
  EXPECT_LT(gb_s, 2000);
}

TEST(ColdBytesTest, SixteenCachesIfTheMemoryHasRoom) {
  chip::Chip chip;
  const auto add = [&](const char* name, double value) {
    chip::Fact fact;
    fact.name = name;
    fact.value = value;
    fact.provenance = chip::Provenance::kDetected;
    chip.facts.push_back(fact);
  };
  add("l3_bytes", 32 << 20);
  EXPECT_EQ(ColdBytes(chip), std::uint64_t{512} << 20);
  add("l3_count", 4);
  add("memory_bytes", 64e9);
  EXPECT_EQ(ColdBytes(chip), std::uint64_t{2048} << 20);
  add("memory_limit_bytes", 2147483648.0);
  EXPECT_EQ(ColdBytes(chip), std::uint64_t{256} << 20);
  chip.facts.back().value = 1 << 20;
  EXPECT_EQ(ColdBytes(chip), std::uint64_t{128} << 20) << "four of them at the least";
}

TEST_F(ProbeTest, TwiceTheIterationsTakeTwiceTheTime) {
  for (const RateProbe::Kind kind :
       {RateProbe::Kind::kFma, RateProbe::Kind::kDot, RateProbe::Kind::kMaddBytes, RateProbe::Kind::kMaddHalves}) {
    auto probe = RateProbe::Create(*kernels_, machine_, kind);
    ASSERT_TRUE(probe) << probe.error().Message();
    const std::int64_t iterations = probe->IterationsFor(0, 1e6);
    std::vector<double> once, twice;
    for (int i = 0; i < 9; ++i) {
      once.push_back(probe->Pass(*pool_, 0, iterations));
      twice.push_back(probe->Pass(*pool_, 0, 2 * iterations));
    }
    // Of the best passes, and roughly: a busy machine interrupts most. A body that was optimised away takes no time.
    const double ratio = *std::ranges::max_element(twice) / *std::ranges::max_element(once);
    EXPECT_GT(ratio, 0.3) << probe->Name(0);
    EXPECT_LT(ratio, 1.7) << probe->Name(0);
    EXPECT_TRUE(RefuseImpossibleRate("rate", *std::ranges::max_element(once), 1, VectorLanes(machine_), 8));
  }
}

TEST_F(ProbeTest, ThreadsComeToABarrierAtDifferentTimes) {
  std::vector<int> cpus = chip::UsableCpus();
  cpus.resize(std::min<std::size_t>(cpus.size(), 2));
  const auto pool = runtime::ThreadPool::Create(cpus);
  ASSERT_TRUE(pool) << pool.error().Message();
  auto probe = StreamProbe::Create(*kernels_, machine_, **pool, 8 << 20);
  ASSERT_TRUE(probe) << probe.error().Message();
  const std::vector<double> spreads = probe->ArrivalSpreads(**pool, 0, 64 << 10, 5);
  ASSERT_EQ(spreads.size(), 5U);
  for (const double ns : spreads) {
    EXPECT_LT(ns, 1e8);
    EXPECT_EQ(ns > 0, cpus.size() > 1);
  }
}

TEST_F(ProbeTest, CostsOfADispatchAndABarrierAreShort) {
  const auto dispatches = DispatchSamples(*kernels_, *pool_, 50);
  ASSERT_TRUE(dispatches);
  EXPECT_LT(Median(*dispatches), 1e6);
  const auto barriers = BarrierSamples(*pool_, 10);
  ASSERT_TRUE(barriers);
  EXPECT_EQ(barriers->size(), 10U);
  EXPECT_LT(Median(*barriers), 1e6);
}

}  // namespace
}  // namespace boltbeam::measure
