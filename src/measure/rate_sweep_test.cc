#include "measure/rate_sweep.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <utility>

namespace boltbeam::measure {
namespace {

// With the first number of accumulators two threads are the best; with the winner's four are, which only the second
// sweep of the grid sees.
TEST(RateSweep, TheGridIsSweptAgainWithTheWinner) {
  constexpr std::array<std::array<double, 2>, 3> kRates = {{{10, 14}, {19, 28}, {18, 55}}};  // [grid][shape]
  const RateSweep sweep =
      SweepRates(3, 2, [&](std::size_t grid, std::size_t shape) { return kRates.at(grid).at(shape); });
  EXPECT_EQ(sweep.first, (std::vector<double>{10, 19, 18}));
  EXPECT_EQ(sweep.shapes, (std::vector<double>{19, 28}));
  EXPECT_EQ(sweep.shape, 1U);
  EXPECT_EQ(sweep.grid, 2U);
  EXPECT_EQ(sweep.again[2].size(), 31U);
  EXPECT_EQ(sweep.again[2].front(), 55);
  EXPECT_EQ(sweep.Drift(), 0);
  EXPECT_EQ(
      SweepText(sweep, {1, 2, 4}, {8, 16}),
      "grid 1, 2, 4 thread(s): 10, 19, 18 with 8 accumulators; accumulators 8, 16: 19, 28; grid again with 16: 14, "
      "28, 55; drift 0.0 %");
}

TEST(RateSweep, AMachineThatSlowsDownMeanwhileHasDrifted) {
  std::size_t passes = 0;
  const RateSweep sweep = SweepRates(2, 3, [&](std::size_t grid, std::size_t) {
    const double state = ++passes > 2 * 7 + 3 * 7 ? 0.8 : 1;  // from the second sweep of the grid on
    return static_cast<double>(grid + 1) * state;
  });
  EXPECT_NEAR(sweep.Drift(), 0.2, 1e-12);
  EXPECT_EQ(sweep.first, (std::vector<double>{1, 2}));
  EXPECT_EQ(sweep.first_again, (std::vector<double>{0.8, 1.6}));
}

TEST(RateSweep, AnUnsteadySweepIsDoneAgain) {
  constexpr std::size_t kPasses = 7 + 7 + 31 + 7;  // of a sweep of one grid and one shape
  const auto swept = [&](std::size_t disturbed) {  // so many sweeps meet another load
    std::size_t passes = 0;
    const RateSweep sweep = SweepRates(1, 1, [&](std::size_t, std::size_t) {
      const double taken = passes < disturbed * kPasses ? 1.5 * static_cast<double>(passes % 3) : 0;
      ++passes;
      return 4 - taken;
    });
    return std::pair(sweep.Spread(), passes);
  };
  EXPECT_EQ(swept(0), std::pair(0.0, kPasses));
  EXPECT_EQ(swept(1), std::pair(0.0, 2 * kPasses));
  EXPECT_EQ(swept(2), std::pair(0.0, 3 * kPasses));
  EXPECT_GT(swept(3).first, 0.1);  // said with it
  EXPECT_EQ(swept(3).second, 3 * kPasses);
}

TEST(RateSweep, EveryPlaceIsVisitedAsOftenAsItsSweepSays) {
  std::map<std::pair<std::size_t, std::size_t>, int> visits;
  SweepRates(2, 4,
             [&](std::size_t grid, std::size_t shape) {
               ++visits[{grid, shape}];
               return shape == 2 ? 5.0 : 1.0;
             },
             {.rounds = 3, .samples = 9});
  EXPECT_EQ((visits[{0, 0}]),
            3 + 3 + 3);  // both sweeps of the grid, and that of the accumulators, where it was the best
  EXPECT_EQ((visits[{1, 0}]), 3 + 3);
  EXPECT_EQ((visits[{0, 2}]), 3 + 9);
  EXPECT_EQ((visits[{1, 2}]), 9);
}

}  // namespace
}  // namespace boltbeam::measure
