#include "search/halving.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

namespace boltbeam::search {
namespace {

/// Candidates of known times on a machine whose memory flips between two rates and which is now and then interrupted.
class Machine final : public Stopwatch {
 public:
  Machine(std::vector<double> ns, std::uint64_t seed) : ns_(std::move(ns)), random_(seed) {}

  Result<double> Window(std::size_t candidate) override {
    ++windows[candidate];
    if (random_() % 40 == 0) rate_ = rate_ == 1 ? 1.6 : 1;  // for some sweeps, not for a window
    double ns = ns_[candidate] * rate_ * std::exp(std::normal_distribution<double>(0, 0.01)(random_));
    if (random_() % 25 == 0) ns *= 1.5;
    return ns;
  }
  void Refresh() override { ++refreshed; }

  std::map<std::size_t, std::size_t> windows;
  int refreshed = 0;

 private:
  std::vector<double> ns_;
  std::mt19937_64 random_;
  double rate_ = 1;
};

std::vector<double> Times(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> times;
  for (int i = 0; i < 12; ++i)
    times.push_back(1000 * std::exp(std::abs(std::normal_distribution<double>(0, 0.2)(random))));
  return times;
}

TEST(HalvingTest, FindsTheFastestWhateverTheMachineDoes) {
  int near = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const std::vector<double> times = Times(seed);
    Machine machine(times, seed);
    const auto result = RunHalving(times.size(), {.seed = seed}, machine);
    ASSERT_TRUE(result) << result.error().Message();
    EXPECT_EQ(machine.refreshed, 1);
    near += times[result->order.front()] <= 1.02 * *std::ranges::min_element(times) ? 1 : 0;
  }
  EXPECT_GE(near, 37);
}

TEST(HalvingTest, SpendsMostOfItsWindowsOnTheBest) {
  std::vector<double> times(12, 1000);
  for (std::size_t i = 0; i < times.size(); ++i) times[i] += 60.0 * static_cast<double>(i);
  Machine machine(times, 5);
  const HalvingResult result = RunHalving(times.size(), {}, machine).value();
  EXPECT_EQ(result.order.front(), 0U);
  EXPECT_GT(machine.windows[0], 4 * machine.windows[11]);
  EXPECT_GT(result.ratio[5].estimate, 1.2);
  EXPECT_GT(result.rounds[0], result.rounds[11]);
}

TEST(HalvingTest, TheControlStaysAndTheGainIsMeasuredOnFreshData) {
  std::vector<double> times(12, 1000);
  times[0] = 2000;  // the control is by far the slowest: it is not dropped as hopeless
  times[7] = 900;
  Machine machine(times, 9);
  const HalvingResult result = RunHalving(times.size(), {}, machine).value();
  EXPECT_EQ(result.order.front(), 7U);
  EXPECT_NEAR(result.ratio[0].estimate, 2000.0 / 900, 0.05);
  EXPECT_GT(result.ratio[0].low, 2);
  EXPECT_LT(machine.windows[0], 60U);
}

TEST(HalvingTest, CompleteRoundsAreNotTimedAgain) {
  const std::vector<double> times = Times(3);
  Machine machine(times, 3);
  std::vector<Sweep> kept;
  HalvingHooks hooks;
  hooks.round_done = [&](std::size_t, const std::vector<Sweep>& sweeps) -> Result<void> {
    kept.insert(kept.end(), sweeps.begin(), sweeps.end());
    return {};
  };
  // Killed in the second round: what the first one took is all that is left.
  std::size_t windows = 0;
  hooks.cancelled = [&] { return ++windows > 70; };
  const auto killed = RunHalving(times.size(), {}, machine, {}, hooks);
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().code, Code::kInterrupted);
  ASSERT_FALSE(kept.empty());
  const std::size_t first_round = kept.size();
  hooks.cancelled = {};
  Machine again(times, 4);
  const auto resumed = RunHalving(times.size(), {}, again, kept, hooks);
  ASSERT_TRUE(resumed);
  for (std::size_t i = 1; i < times.size(); ++i) EXPECT_EQ(again.windows.contains(i), resumed->rounds[i] > 1) << i;
  EXPECT_GT(kept.size(), first_round);

  // All of it is known: the same answer, and nothing is timed.
  Machine idle(times, 5);
  const auto replayed = RunHalving(times.size(), {}, idle, kept);
  ASSERT_TRUE(replayed);
  EXPECT_TRUE(idle.windows.empty());
  EXPECT_EQ(replayed->order, resumed->order);
}

TEST(HalvingTest, ASearchThatIsKilledAfterAnyRoundGoesOnFromThere) {
  std::vector<double> times = Times(6);
  times[4] = times[9] = 3000;             // hopeless: dropped within a round
  std::vector<std::vector<Sweep>> after;  // each round
  HalvingHooks hooks;
  std::vector<Sweep> kept;
  hooks.round_done = [&](std::size_t, const std::vector<Sweep>& sweeps) -> Result<void> {
    kept.insert(kept.end(), sweeps.begin(), sweeps.end());
    after.push_back(kept);
    return {};
  };
  Machine machine(times, 6);
  const HalvingResult whole = RunHalving(times.size(), {}, machine, {}, hooks).value();
  ASSERT_GE(after.size(), 3U);
  for (const std::vector<Sweep>& past : after) {
    Machine resumed(times, 7);
    std::set<std::size_t> rounds;
    HalvingHooks watch;
    watch.round_done = [&](std::size_t round, const std::vector<Sweep>&) -> Result<void> {
      EXPECT_TRUE(rounds.insert(round).second);
      EXPECT_TRUE(std::ranges::none_of(past, [&](const Sweep& sweep) { return sweep.round == round; })) << round;
      return {};
    };
    const HalvingResult result = RunHalving(times.size(), {}, resumed, past, watch).value();
    for (const std::size_t hopeless : {4, 9}) EXPECT_FALSE(resumed.windows.contains(hopeless)) << hopeless;
    EXPECT_LE(times[result.order.front()], 1.03 * times[whole.order.front()]);
    if (&past == &after.back()) {
      EXPECT_TRUE(resumed.windows.empty());
      EXPECT_EQ(result.order, whole.order);
    }
  }
}

TEST(HalvingTest, RefusesWhatMakesNoSense) {
  Machine machine({0}, 1);
  EXPECT_EQ(RunHalving(0, {}, machine).error().code, Code::kInternal);
  EXPECT_EQ(RunHalving(1, {}, machine).error().code, Code::kMeasurementImpossible);
}

}  // namespace
}  // namespace boltbeam::search
