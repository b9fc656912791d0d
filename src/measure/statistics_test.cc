#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace boltbeam::measure {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

TEST(StatisticsTest, OrderStatisticsOfASmallSet) {
  const std::vector<double> values{4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(Median(values), 2.5);
  EXPECT_DOUBLE_EQ(Quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.1), 1.3);
  EXPECT_DOUBLE_EQ(MedianAbsoluteDeviation(values), 1);
  EXPECT_DOUBLE_EQ(StandardDeviation(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
}

TEST(StatisticsTest, OneValueHasNoSpread) {
  const Summary summary = Summarise(std::vector<double>{7});
  EXPECT_EQ(summary.n, 1U);
  EXPECT_EQ(summary.median, 7);
  EXPECT_EQ(summary.p10, 7);
  EXPECT_EQ(summary.mad, 0);
  EXPECT_EQ(summary.RelativeSpread(), 0);
  EXPECT_EQ(StandardDeviation(std::vector<double>{7}), 0);
  const Interval interval = BootstrapMedian(std::vector<double>{7}, 1);
  EXPECT_EQ(interval.low, 7);
  EXPECT_EQ(interval.high, 7);
}

TEST(StatisticsTest, NothingAndNotANumberGiveNotANumber) {
  EXPECT_TRUE(std::isnan(Median({})));
  EXPECT_TRUE(std::isnan(Mean({})));
  const std::vector<double> spoiled{1, kNotANumber, 3};
  EXPECT_TRUE(std::isnan(Median(spoiled)));
  EXPECT_TRUE(std::isnan(MedianAbsoluteDeviation(spoiled)));
  EXPECT_TRUE(std::isnan(Summarise(spoiled).max));
  EXPECT_TRUE(std::isnan(BootstrapMedian(spoiled, 1).low));
  EXPECT_TRUE(std::isnan(PairedRatio(std::vector<double>{1, 0}, std::vector<double>{1, 1}, 1).estimate));
}

TEST(StatisticsTest, StrictWindowDropsOnlyHighSamples) {
  // Median 1e6, MAD 0: the limit is 250 us above, and the low sample stays.
  const StrictWindow window = ApplyStrictWindow(std::vector<double>{1e6, 1e6, 1e6, 1e6, 1, 1.2e6, 1.3e6});
  EXPECT_DOUBLE_EQ(window.limit_ns, 1.25e6);
  EXPECT_EQ(window.rejected, (std::vector<double>{1.3e6}));
  EXPECT_EQ(window.accepted.size(), 6U);
}

TEST(StatisticsTest, StrictWindowUsesSixMadsWhenTheyAreWider) {
  const StrictWindow window = ApplyStrictWindow(std::vector<double>{1e6, 1.1e6, 0.9e6, 1.2e6, 5e6});
  EXPECT_DOUBLE_EQ(window.limit_ns, 1.1e6 + 6e5);
  EXPECT_EQ(window.rejected, (std::vector<double>{5e6}));
  EXPECT_DOUBLE_EQ(window.median_ns, 1.05e6);
}

TEST(StatisticsTest, StrictWindowKeepsAllWhenFewerThanThreeWouldRemain) {
  const StrictWindow window = ApplyStrictWindow(std::vector<double>{1e6, 9e6});
  EXPECT_TRUE(window.rejected.empty());
  EXPECT_EQ(window.accepted.size(), 2U);
  const StrictWindow three = ApplyStrictWindow(std::vector<double>{1e6, 1e6, 9e6});
  EXPECT_TRUE(three.rejected.empty());
}

TEST(StatisticsTest, MiddleHalfIsByRank) {
  EXPECT_EQ(MiddleHalf(std::vector<double>{9, 1, 5, 6, 4, 100, 2, 3}), (std::vector<std::size_t>{2, 3, 4, 7}));
  EXPECT_EQ(MiddleHalf(std::vector<double>{3, 1, 2}).size(), 3U);
  EXPECT_TRUE(MiddleHalf({}).empty());
}

TEST(StatisticsTest, BootstrapIsRepeatableAndCoversTheMedian) {
  std::mt19937_64 random(5);
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back(100 + static_cast<double>(random() % 1000) / 100);
  const Interval first = BootstrapMedian(values, 42);
  const Interval again = BootstrapMedian(values, 42);
  EXPECT_EQ(first.low, again.low);
  EXPECT_EQ(first.high, again.high);
  EXPECT_LT(first.low, first.estimate);
  EXPECT_GT(first.high, first.estimate);
}

// Rounds of A B B A over a machine whose speed drifts by a tenth during the run and jitters by 2 %.
struct Session {
  std::vector<double> a, b;
};
Session SimulateRounds(double true_ratio, double drift, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.02);
  Session session;
  constexpr int kRounds = 60;
  int step = 0;
  const auto time = [&](double base) {
    const double moment = static_cast<double>(step++) / (4 * kRounds);
    return base * (1 + drift * moment) * std::exp(noise(random));
  };
  for (int round = 0; round < kRounds; ++round) {
    const double a1 = time(100), b1 = time(100 * true_ratio), b2 = time(100 * true_ratio), a2 = time(100);
    session.a.push_back((a1 + a2) / 2);
    session.b.push_back((b1 + b2) / 2);
  }
  return session;
}

TEST(StatisticsTest, DriftDoesNotLookLikeADifference) {
  int false_claims = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Session session = SimulateRounds(1, 0.1, seed);
    const Interval ratio = PairedRatio(session.a, session.b, seed, 500);
    if (ratio.low > 1.01 || ratio.high < 0.99) ++false_claims;
  }
  EXPECT_LE(false_claims, 1);
}

TEST(StatisticsTest, AShiftOfTwoPercentIsFoundThroughTheDrift) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Session session = SimulateRounds(1.02, 0.1, seed);
    const Interval ratio = PairedRatio(session.a, session.b, seed, 500);
    EXPECT_NEAR(ratio.estimate, 1.02, 0.016);
    if (ratio.low > 1) ++found;
  }
  EXPECT_GE(found, 95);
}

}  // namespace
}  // namespace boltbeam::measure
