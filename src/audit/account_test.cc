#include "audit/account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "audit/causes.h"

namespace boltbeam::audit {
namespace {

measure::Clock NanosecondTicks() {
  measure::Clock clock;
  clock.ns_per_tick = 1;
  return clock;
}

engine::StepInfo Step(const std::string& role, const std::string& format, std::uint32_t phase) {
  engine::StepInfo step;
  step.role = role;
  step.format = format;
  step.phase = phase;
  return step;
}

// Two threads, three steps in two phases.
struct Plan {
  std::vector<engine::StepInfo> steps{Step("norm", "F32", 0), Step("ffn_down", "Q4_K", 0), Step("lm_head", "Q6_K", 1)};
  engine::Trace trace{.step_begin = {{110, 200, 500}, {105, 210, 505}},
                      .step_end = {{190, 400, 900}, {200, 450, 930}},
                      .barrier_begin = {{402, 901}, {455, 932}},
                      .barrier_end = {{460, 940}, {470, 941}},
                      .token_begin = 100,
                      .token_end = 1000};
};

TEST(TraceTest, WorkWaitingAndHostAreTheToken) {
  const Plan plan;
  const auto times = ReadTrace(plan.trace, plan.steps, 2, NanosecondTicks());
  ASSERT_TRUE(times) << times.error().Message();
  EXPECT_DOUBLE_EQ(times->work[0], (80 + 95) / 2.0);
  EXPECT_DOUBLE_EQ(times->slowest[1], 240);
  EXPECT_DOUBLE_EQ(times->wait, (58 + 39 + 15 + 9) / 2.0);
  EXPECT_DOUBLE_EQ(times->release[0], 15);
  EXPECT_DOUBLE_EQ(times->release[1], 9);
  EXPECT_DOUBLE_EQ(times->total, 900);
  EXPECT_DOUBLE_EQ(times->work[0] + times->work[1] + times->work[2] + times->wait + times->host, times->total);
}

TEST(TraceTest, TheWallIsAUnionAndEachThreadAddsUp) {
  const Plan plan;
  const auto times = ReadTrace(plan.trace, plan.steps, 2, NanosecondTicks());
  ASSERT_TRUE(times) << times.error().Message();
  // Kernels: 110-190, 105-200; 200-400, 210-450; 500-900, 505-930.
  EXPECT_DOUBLE_EQ(times->busy, (200 - 105) + (450 - 200) + (930 - 500));
  EXPECT_DOUBLE_EQ(times->thread_work[0], 80 + 200 + 400);
  EXPECT_DOUBLE_EQ(times->thread_work[1], 95 + 240 + 425);
  for (std::size_t thread = 0; thread < 2; ++thread) {
    EXPECT_DOUBLE_EQ(times->thread_work[thread] + times->thread_wait[thread] + times->thread_host[thread],
                     times->total);
  }
  EXPECT_DOUBLE_EQ(times->by_thread[1 * 2 + 1], 240);
}

TEST(TraceTest, StampsOutOfOrderAreAnInstrumentFault) {
  Plan plan;
  plan.trace.step_end[1][1] = 209;
  EXPECT_EQ(ReadTrace(plan.trace, plan.steps, 2, NanosecondTicks()).error().code, Code::kMeasurementImpossible);
  plan = {};
  plan.trace.token_end = 935;
  EXPECT_EQ(ReadTrace(plan.trace, plan.steps, 2, NanosecondTicks()).error().code, Code::kMeasurementImpossible);
  plan = {};
  plan.trace.token_end = 50;
  EXPECT_EQ(ReadTrace(plan.trace, plan.steps, 2, NanosecondTicks()).error().where, "token");
}

TEST(TraceTest, ATraceOfAnotherPlanIsRefused) {
  Plan plan;
  plan.trace.step_begin[0].pop_back();
  EXPECT_EQ(ReadTrace(plan.trace, plan.steps, 2, NanosecondTicks()).error().code, Code::kAccountOpen);
  EXPECT_EQ(ReadTrace({}, plan.steps, 2, NanosecondTicks()).error().code, Code::kAccountOpen);
}

// Ten pairs of windows of a machine that reads 10 GB/s, whose speed wanders from pair to pair.
struct Pairs {
  std::vector<engine::StepInfo> steps{Step("norm", "F32", 0), Step("ffn_down", "Q4_K", 0), Step("lm_head", "Q6_K", 1)};
  std::vector<PartFloor> floors{
      {"norm", "F32", 1, 0, 1000}, {"ffn_down", "Q4_K", 1, 1'000'000, 0}, {"lm_head", "Q6_K", 1, 2'000'000, 0}};
  std::vector<Pair> pairs;

  explicit Pairs(double down_us = 120, double head_us = 210, double unaccounted_us = 2) {
    for (int i = 0; i < 10; ++i) {
      const double wander = 1 + 0.001 * i;
      Pair pair;
      pair.traced.work = {500 * wander, down_us * 1e3 * wander, head_us * 1e3 * wander};
      pair.traced.slowest = pair.traced.work;
      pair.traced.release = {100, 100};
      pair.traced.wait = 3000 * wander;
      pair.traced.host = 400 * wander;
      pair.traced.total = 500 * wander + (down_us + head_us) * 1e3 * wander + 3400 * wander;
      pair.token_ns = pair.traced.total + unaccounted_us * 1e3;
      pair.read_gb_s = {9.5, 10 + 0.001 * i};
      pairs.push_back(pair);
    }
  }
  [[nodiscard]] Result<Account> Build() const {
    return BuildAccount({.depth = 0,
                         .floors = floors,
                         .steps = steps,
                         .pairs = pairs,
                         .cache_gb_s = 100,
                         .cache_bytes = cache_bytes,
                         .seed = 1});
  }
  std::uint64_t cache_bytes = 0;
};

const Part& Find(const Account& account, const std::string& role) {
  return *std::ranges::find_if(account.parts, [&](const Part& part) { return part.role == role; });
}

TEST(AccountTest, TheLinesAddUpToTheToken) {
  const Result<Account> account = Pairs().Build();
  ASSERT_TRUE(account) << account.error().Message();
  const Token& token = account->token;
  EXPECT_NEAR(token.floor_ns + token.lost_ns + token.gaps_ns + token.unaccounted_ns, token.now_ns, 1e-6);
  EXPECT_NEAR(token.unaccounted_ns, 2000, 1e-6);
  EXPECT_NEAR(account->read_bandwidth_gb_s, 10.0045, 1e-6);  // of the faster shape, over the pairs used
  EXPECT_NEAR(Find(*account, "lm_head").floor_ns, 2e6 / 10.0045, 0.1);
  EXPECT_NEAR(Find(*account, "norm").floor_ns, 10, 1e-9);  // from the cache
  EXPECT_EQ(account->parts.front().role, "lm_head");
  EXPECT_EQ(account->pairs, 10U);
  EXPECT_EQ(account->pairs_used, 6U);
  EXPECT_TRUE(account->TiesOut());
}

TEST(AccountTest, KernelsThatTheGraphDoesNotNameHaveOperationsToo) {
  Pairs session;
  session.steps.insert(session.steps.begin(), Step("quantize", "F32", 0));
  session.steps.front().stored_bytes = 4096;
  for (Pair& pair : session.pairs) {
    pair.traced.work.insert(pair.traced.work.begin(), 200);
    pair.traced.slowest = pair.traced.work;
  }
  const Result<Account> account = session.Build();
  ASSERT_TRUE(account) << account.error().Message();
  EXPECT_EQ(Find(*account, "quantize").flops, 1024U);
  EXPECT_EQ(Find(*account, "quantize").bytes, 4096U);
}

TEST(AccountTest, AResidualAboveTheBudgetDoesNotTieOut) {
  const Result<Account> account = Pairs(120, 210, 10).Build();
  ASSERT_TRUE(account);
  EXPECT_FALSE(account->TiesOut());
}

// The table takes 100 us: 70 are in the kernel, the rest came in while its barrier held the threads.
TEST(AccountTest, BytesComeInWhileThreadsWaitAtThePartsBarriers) {
  Pairs session(70);
  EXPECT_FALSE(session.Build());
  for (Pair& pair : session.pairs) pair.traced.release[0] = 40e3;
  const auto account = session.Build();
  EXPECT_TRUE(account) << account.error().Message();
}

TEST(AccountTest, APartFasterThanItsFloorIsAnInstrumentFault) {
  Pairs session;
  for (Pair& pair : session.pairs) pair.read_gb_s = {8, 8.5};  // a probe that reads too slowly
  const Result<Account> account = session.Build();
  ASSERT_FALSE(account);
  EXPECT_EQ(account.error().code, Code::kMeasurementImpossible);
  EXPECT_EQ(CodeGroup(account.error().code), Group::kMeasurement);
  EXPECT_EQ(account.error().where, "lm_head Q6_K");
}

TEST(AccountTest, PairsDuringWhichTheMemoryChangedItsSpeedAreLeftOut) {
  Pairs session;
  Pairs other;
  session.pairs.insert(session.pairs.end(), other.pairs.begin(), other.pairs.end());
  for (std::size_t i = 10; i < 20; ++i) {
    session.pairs[i].memory_moved = true;
    session.pairs[i].read_gb_s = {6, 7};
  }
  const Result<Account> account = session.Build();
  ASSERT_TRUE(account) << account.error().Message();
  EXPECT_NEAR(account->read_bandwidth_gb_s, 10.0045, 1e-6);
  EXPECT_EQ(account->pairs, 20U);
  EXPECT_EQ(account->pairs_used, 6U);
  for (Pair& pair : session.pairs) pair.memory_moved = true;  // nothing else is left: then they have to do
  EXPECT_LT(session.Build()->read_bandwidth_gb_s, 10);
}

TEST(AccountTest, PairsBetweenWhoseWindowsTheMemoryChangedItsSpeedAreLeftOut) {
  Pairs session;
  Pairs other;
  session.pairs.insert(session.pairs.end(), other.pairs.begin(), other.pairs.end());
  for (std::size_t i = 13; i < 20; ++i) session.pairs[i].token_ns *= 1.3;
  const Result<Account> account = session.Build();
  ASSERT_TRUE(account) << account.error().Message();
  EXPECT_NEAR(account->token.unaccounted_ns, 2000, 1e-6);
}

TEST(AccountTest, TheErrorOfTheResidualFallsAsPairsAreAdded) {
  std::vector<Pair> pairs(64);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].traced.total = 1e6;
    pairs[i].token_ns = 1e6 * (i % 2 == 0 ? 1.02 : 0.98);
  }
  const double error = ResidualError(pairs);  // of 32 that lie 2 % to both sides
  EXPECT_NEAR(error, 0.02 / std::sqrt(32.0), 4e-4);
  const std::vector<Pair> once = pairs;
  for (int i = 0; i < 3; ++i) pairs.insert(pairs.end(), once.begin(), once.end());
  EXPECT_NEAR(ResidualError(pairs), error / 2, 2e-4);
}

TEST(AccountTest, ASmallModelsPartMayBeFasterByWhatACacheCanHold) {
  Pairs session;
  for (Pair& pair : session.pairs) pair.read_gb_s = {8, 8.5};
  session.cache_bytes = 1'000'000;  // of the 3,000,000 that a token streams
  const Result<Account> account = session.Build();
  ASSERT_TRUE(account) << account.error().Message();
  EXPECT_GT(account->cached_share, 0.2);
  EXPECT_EQ(Find(*account, "lm_head").cause, "cached");
  session.cache_bytes = 1000;
  EXPECT_EQ(session.Build().error().code, Code::kMeasurementImpossible);
}

TEST(AccountTest, ASlowedPartShowsOnItsOwnRowOnly) {
  const Result<Account> plain = Pairs().Build(), slowed = Pairs(120 * 1.05, 210).Build();
  ASSERT_TRUE(plain && slowed);
  EXPECT_NEAR(Find(*slowed, "ffn_down").now_ns / Find(*plain, "ffn_down").now_ns, 1.05, 1e-9);
  EXPECT_NEAR(Find(*slowed, "lm_head").now_ns, Find(*plain, "lm_head").now_ns, 1e-6);
}

TEST(AccountTest, ATableThatNoKernelReadsKeepsTheAccountOpen) {
  Pairs session;
  session.floors.push_back({"attn_qo", "Q4_K", 1, 500'000, 0});
  EXPECT_EQ(session.Build().error().code, Code::kAccountOpen);
  session.floors.back() = {"gate", "F32", 1, 0, 500};  // done inside another kernel: no row of its own
  const Result<Account> account = session.Build();
  ASSERT_TRUE(account);
  EXPECT_EQ(account->parts.size(), 3U);
}

TEST(AccountTest, TooFewPairsAreUnstable) {
  Pairs session;
  session.pairs.resize(4);
  EXPECT_EQ(session.Build().error().code, Code::kMeasurementUnstable);
}

TEST(CauseTest, OneWordFromTheEvidence) {
  Part part{.role = "ffn_down", .format = "Q4_K", .cause = {}};
  part.calls = 10;
  part.floor_ns = 1e6;
  const auto cause = [&](double now_ns) {
    part.now_ns = now_ns;
    part.excess_ns = now_ns - part.floor_ns;
    return CauseOf(part, 0.05);
  };
  EXPECT_EQ(cause(1.04e6), "none");
  EXPECT_EQ(cause(1.2e6), "memory");
  EXPECT_EQ(cause(2e6), "compute");
  part.imbalance_ns = 0.6e6;
  EXPECT_EQ(cause(2e6), "imbalance");
  part.imbalance_ns = 0;
  // Instructions and bytes one after the other, or the bytes alone slower than they need be.
  part.cold_ns = 1.8e6;
  part.hot_ns = 0.85e6;
  EXPECT_EQ(cause(1.8e6), "compute");
  part.hot_ns = 0.4e6;
  EXPECT_EQ(cause(1.8e6), "rate");
  part.cold_ns = part.hot_ns = 0;
  part.floor_ns = 1e4;
  EXPECT_EQ(cause(2e4), "small");
  part.release_ns = 2e4;
  EXPECT_EQ(cause(2e4), "barrier");
}

}  // namespace
}  // namespace boltbeam::audit
