#include "measure/environment.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <string_view>

#include "base/paths.h"
#include "measure/clock.h"

namespace boltbeam::measure {
namespace {

// A machine in a folder.
class FakeMachine {
 public:
  explicit FakeMachine(const std::string& name)
      : root_(std::filesystem::path(testing::TempDir()) / ("machine_" + name)) {
    std::filesystem::remove_all(root_);
  }
  ~FakeMachine() { std::filesystem::remove_all(root_); }
  void Put(const std::string& path, std::string_view text) const {
    ASSERT_TRUE(base::WriteFileAtomically(root_ / path, text));
  }
  [[nodiscard]] std::string root() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

TEST(EnvironmentTest, QuotaAndThrottlingOfCgroupVersion2) {
  const FakeMachine machine("v2");
  machine.Put("proc/self/cgroup", "0::/box\n");
  machine.Put("sys/fs/cgroup/box/cpu.max", "150000 100000\n");
  machine.Put("sys/fs/cgroup/box/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec 4500\n");
  machine.Put("proc/stat", "cpu  1 2 3 4 5 6 7 88 0 0\n");
  machine.Put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\n");
  EXPECT_DOUBLE_EQ(ReadEnvironment(machine.root()).quota_cpus, 1.5);
  EXPECT_EQ(ReadEnvironment(machine.root()).cpu_model, "Some CPU");
  const Counters counters = ReadCounters(machine.root());
  EXPECT_EQ(counters.throttled_periods, 3U);
  EXPECT_EQ(counters.throttled_us, 4500U);
  EXPECT_EQ(counters.steal_ticks, 88U);
}

TEST(EnvironmentTest, QuotaAndThrottlingOfCgroupVersion1) {
  const FakeMachine machine("v1");
  machine.Put("proc/self/cgroup", "4:memory:/a\n1:cpu,cpuacct:/gone\n0::/\n");
  machine.Put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  machine.Put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  machine.Put("sys/fs/cgroup/cpu/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 7000000\n");
  EXPECT_DOUBLE_EQ(ReadEnvironment(machine.root()).quota_cpus, 2);
  EXPECT_EQ(ReadCounters(machine.root()).throttled_us, 7000U);
}

TEST(EnvironmentTest, NoQuotaIsZero) {
  const FakeMachine machine("none");
  machine.Put("proc/self/cgroup", "0::/\n");
  machine.Put("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(ReadEnvironment(machine.root()).quota_cpus, 0);
}

TEST(EnvironmentTest, TheStopOfRealTimeThreadsIsADoubt) {
  const FakeMachine machine("real_time");
  machine.Put("proc/sys/kernel/sched_rt_period_us", "1000000\n");
  machine.Put("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
  const auto doubts = [&] { return ReadEnvironment(machine.root()).doubts; };
  const sched_param none{}, least{.sched_priority = 1};
  ASSERT_EQ(sched_setscheduler(0, SCHED_OTHER, &none), 0);
  EXPECT_TRUE(doubts().empty());
  if (sched_setscheduler(0, SCHED_FIFO, &least) != 0) GTEST_SKIP() << "real-time priority is not allowed here";
  ASSERT_EQ(doubts().size(), 1U);
  EXPECT_NE(doubts()[0].find("5 % of the time"), std::string::npos) << doubts()[0];
  machine.Put("proc/sys/kernel/sched_rt_runtime_us", "-1\n");
  EXPECT_TRUE(doubts().empty());
  sched_setscheduler(0, SCHED_OTHER, &none);
}

TEST(EnvironmentTest, CausesAreNamedAndQuietIsSilent) {
  const Counters before;
  EXPECT_TRUE(SpoilingCauses(before, before, 1e9).empty());
  Counters after;
  after.throttled_us = 12'000;
  ASSERT_EQ(SpoilingCauses(before, after, 1e9).size(), 1U);
  EXPECT_EQ(SpoilingCauses(before, after, 1e9)[0], "stopped by the CPU quota for 12.0 ms");
  after.steal_ticks = 50;
  after.involuntary_switches = 1000;
  after.major_faults = 1;
  EXPECT_EQ(SpoilingCauses(before, after, 1e9).size(), 4U);
  after = {};
  after.steal_ticks = 1;           // one tick can be chance
  after.involuntary_switches = 5;  // as many happen on a quiet machine
  EXPECT_TRUE(SpoilingCauses(before, after, 1e9).empty());
}

TEST(EnvironmentTest, EveryCauseHasItsCounter) {
  const std::vector<std::pair<std::uint64_t Counters::*, Cause>> counters = {
      {&Counters::throttled_periods, Cause::kQuota}, {&Counters::throttled_us, Cause::kQuota},
      {&Counters::steal_ticks, Cause::kSteal},       {&Counters::involuntary_switches, Cause::kInterrupted},
      {&Counters::major_faults, Cause::kDiskReads},  {&Counters::minor_faults, Cause::kPageFaults},
      {&Counters::migrations, Cause::kMigrated},     {&Counters::thermal_throttles, Cause::kThermal}};
  for (const auto& [counter, cause] : counters) {
    Counters after;
    after.*counter = 1'000'000;
    const Causes causes = CausesBetween({}, after, 1e9);
    EXPECT_EQ(causes.count(), 1U);
    EXPECT_TRUE(causes.test(static_cast<std::size_t>(cause))) << CauseName(cause);
    EXPECT_EQ(SpoilingCauses({}, after, 1e9).size(), 1U);
    EXPECT_TRUE(CausesBetween(after, {}, 1e9).none()) << "a counter that went back";
  }
}

TEST(EnvironmentTest, AnInterruptionIsTimeThatWasLost) {
  constexpr auto kBit = static_cast<std::size_t>(Cause::kInterrupted);
  Counters before, after;
  before.waits_known = after.waits_known = true;
  after.involuntary_switches = 1000;  // of threads that had nothing to do
  after.waited_ns = 100'000;
  EXPECT_FALSE(CausesBetween(before, after, 5e6).test(kBit));
  after.waited_ns = 100'001;
  EXPECT_TRUE(CausesBetween(before, after, 5e6).test(kBit));
  EXPECT_EQ(SpoilingCauses(before, after, 5e6).at(0), "threads kept waiting by other programs for 0.1 ms");
}

TEST(EnvironmentTest, StealIsJudgedOverTheTimeInWhichItGathered) {
  StealWatch watch;
  Counters now;
  now.steal_ticks = 500;  // of the time before
  EXPECT_FALSE(watch.Took(now, 0));
  EXPECT_FALSE(watch.Took(now, 4e9));
  now.steal_ticks = 501;
  EXPECT_FALSE(watch.Took(now, 5e9)) << "10 ms of 5 s";
  now.steal_ticks = 502;
  EXPECT_TRUE(watch.Took(now, 5.5e9)) << "10 ms of half a second";
  EXPECT_FALSE(watch.Took(now, 5.51e9));
}

TEST(EnvironmentTest, WaitsOfAllThreadsAndWhetherTheySleep) {
  const FakeMachine machine("waits");
  machine.Put("proc/self/task/1/schedstat", "100 30 2\n");
  machine.Put("proc/self/task/2/schedstat", "100 12 2\n");
  machine.Put("proc/self/task/1/stat", "1 (a) R (b) S 0 0\n");
  machine.Put("proc/self/task/2/stat", "2 (c) S 0 0\n");
  EXPECT_EQ(ReadCounters(machine.root()).waited_ns, 42U);
  EXPECT_TRUE(ReadCounters(machine.root()).waits_known);
  EXPECT_TRUE(AwaitSleepingThreads(machine.root()));
  machine.Put("proc/self/task/2/stat", "2 (c) R 0 0\n");
  EXPECT_FALSE(AwaitSleepingThreads(machine.root()));
}

TEST(EnvironmentTest, MigrationsOfAllThreads) {
  const FakeMachine machine("threads");
  machine.Put("proc/self/task/1/sched", "program (1, #threads: 2)\n-----\nse.nr_migrations     :     3\n");
  machine.Put("proc/self/task/2/sched", "program (2, #threads: 2)\n-----\nse.nr_migrations     :     4\n");
  EXPECT_EQ(ReadCounters(machine.root()).migrations, 7U);
}

TEST(ClockTest, TicksMeasureTheSystemsTime) {
  const auto clock = GetClock();
  ASSERT_TRUE(clock) << clock.error().Message();
  const std::uint64_t ns_before = base::MonotonicNs(), before = base::Ticks();
  while (base::MonotonicNs() < ns_before + 5'000'000) {
  }
  const double ns = clock->ToNs(base::Ticks() - before);
  EXPECT_NEAR(ns, static_cast<double>(base::MonotonicNs() - ns_before), 1e6);
  EXPECT_GT(clock->resolution_ns, 0);
}

TEST(ClockTest, AClockThatStandsStillIsRefused) {
  EXPECT_EQ(NsPerTick(5, 0, 5, 100).error().code, Code::kClockUnsteady);
  EXPECT_EQ(NsPerTick(5, 0, 6, 1'000'000).error().code, Code::kClockUnsteady);
  EXPECT_DOUBLE_EQ(NsPerTick(0, 0, 200, 100).value(), 0.5);
}

TEST(OtherCpusTest, WhatIsBusyAndNotOurs) {
  Counters before, after;
  before.busy_ticks = 1000;
  after.busy_ticks = 1300;  // 3 s of all CPUs
  before.own_cpu_us = 5'000'000;
  after.own_cpu_us = 7'000'000;
  EXPECT_DOUBLE_EQ(OtherCpus(before, after, 2e9), 0.5);
  after.own_cpu_us = 9'000'000;  // the ticks are coarse: never less than nothing
  EXPECT_EQ(OtherCpus(before, after, 2e9), 0);
  EXPECT_GT(ReadCounters().busy_ticks, 0U);
  EXPECT_GT(ReadCounters().own_cpu_us, 0U);
}

}  // namespace
}  // namespace boltbeam::measure
