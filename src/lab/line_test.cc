#include "lab/line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace boltbeam::lab {
namespace {

constexpr double kGb = 1e9;

/// Points of a line with a millisecond a token and 100 GB/s.
std::vector<Point> OnTheLine(std::initializer_list<double> gigabytes) {
  std::vector<Point> points;
  for (const double size : gigabytes) points.push_back({size * kGb, 1e-3 + size / 100});
  return points;
}

TEST(Line, ExactPointsGiveTheNumbersBack) {
  const Line line = Line::Fit(OnTheLine({0.5, 1, 2.5, 5})).value();
  EXPECT_NEAR(line.fixed_s(), 1e-3, 1e-12);
  EXPECT_NEAR(line.bandwidth_bytes_s() / kGb, 100, 1e-9);
  EXPECT_NEAR(line.sigma(), 0, 1e-12);
  EXPECT_NEAR(line.SecondsAt(10 * kGb), 0.101, 1e-12);
  double sum = 0;
  for (const double leverage : line.leverage()) sum += leverage;
  EXPECT_NEAR(sum, 2, 1e-9);
}

// A worked example by hand: x = 1, 2, 3, 4 GB and y = 2, 3, 5, 6 ms: slope 1.4 ms a GB, intercept 0.5 ms, residuals
// 0.1, -0.3, 0.3, -0.1: their squares sum to 0.20, sigma^2 = 0.1; Sxx = 5, so that the slope's error is
// sqrt(0.1 / 5) = 0.14142 and t(2, 97.5 %) = 4.30265.
TEST(Line, IntervalsOfAnExampleByHand) {
  const std::vector<Point> points = {{1 * kGb, 2e-3}, {2 * kGb, 3e-3}, {3 * kGb, 5e-3}, {4 * kGb, 6e-3}};
  const Line line = Line::Fit(points).value();
  EXPECT_NEAR(line.fixed_s(), 0.5e-3, 1e-9);
  EXPECT_NEAR(line.bandwidth_bytes_s(), kGb / 1.4e-3, 1);
  EXPECT_NEAR(line.sigma(), std::sqrt(0.1) * 1e-3, 1e-9);
  const double half = 4.30265 * std::sqrt(0.1 / 5) * 1e-3;
  const measure::Interval bandwidth = line.Bandwidth(0.95);
  EXPECT_NEAR(bandwidth.low, kGb / (1.4e-3 + half), kGb / 1.4e-3 * 1e-5);
  EXPECT_NEAR(bandwidth.high, kGb / (1.4e-3 - half), kGb / 1.4e-3 * 1e-5);
  const measure::Interval fixed = line.Fixed(0.95);  // sqrt(sigma^2 (1 / 4 + 2.5^2 / 5)) = 0.38730
  EXPECT_NEAR(fixed.high - fixed.estimate, 4.30265 * 0.387298e-3, 1e-8);
  const measure::Interval next = line.Predict(5 * kGb, 0.95);  // sqrt(sigma^2 (1 + 1 / 4 + 2.5^2 / 5)) = 0.5
  EXPECT_NEAR(next.estimate, 7.5e-3, 1e-9);
  EXPECT_NEAR(next.high - next.estimate, 4.30265 * 0.5e-3, 1e-8);
}

TEST(Line, RelativeNoiseWeighsSmallTimesMore) {
  std::vector<Point> points = OnTheLine({0.5, 1, 2, 4, 8});
  points.back().seconds *= 1.05;
  const Line constant = Line::Fit(points).value(), relative = Line::Fit(points, Noise::kRelative).value();
  EXPECT_LT(std::abs(relative.fixed_s() - 1e-3), std::abs(constant.fixed_s() - 1e-3));
  EXPECT_LT(relative.sigma(), 0.1);  // a part, not seconds
  const measure::Interval small = relative.Predict(0.5 * kGb, 0.95), large = relative.Predict(8 * kGb, 0.95);
  EXPECT_LT(5 * (small.high - small.low), large.high - large.low);
}

TEST(Line, RobustLineIgnoresAnOutlier) {
  std::vector<Point> points = OnTheLine({0.5, 1, 2, 3, 4, 5});
  points[2].seconds += 0.02;
  const RobustLine robust = FitRobust(points).value();
  EXPECT_NEAR(robust.fixed_s, 1e-3, 1e-9);
  EXPECT_NEAR(robust.bandwidth_bytes_s / kGb, 100, 1e-6);
  EXPECT_GT(std::abs(Line::Fit(points).value().fixed_s() - 1e-3), 1e-4);
}

TEST(Line, OnlyTheOutlierIsOffTheLine) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 5e-5);
  std::vector<Point> points = OnTheLine({0.5, 1, 2, 3, 4, 5, 6});
  for (Point& point : points) point.seconds += noise(random);
  const std::vector<double> before = OffTheLine(points);
  for (const double chance : before) EXPECT_GT(chance, 0.05);
  points[3].seconds += 3e-3;
  const std::vector<double> after = OffTheLine(points);
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(after[i] < 0.05, i == 3) << i << " " << after[i];
}

TEST(Line, EachModelLeftOutIsForetoldByTheOthers) {
  const std::vector<Point> points = OnTheLine({0.5, 1, 2, 4});
  for (const std::optional<LeftOut>& left : LeaveOneOut(points, 0.95)) {
    ASSERT_TRUE(left);
    EXPECT_NEAR(left->miss_s, 0, 1e-9);
    EXPECT_NEAR(left->bandwidth_bytes_s / kGb, 100, 1e-6);
  }
  for (const std::optional<LeftOut>& left : LeaveOneOut(OnTheLine({1, 2, 3}), 0.95)) EXPECT_FALSE(left);
}

TEST(Line, WhatGivesNoLineIsToldApart) {
  const auto found = [](const std::vector<Point>& points) {
    const auto line = Line::Fit(points);
    EXPECT_FALSE(line);
    EXPECT_EQ(line.error().code, Code::kLabLine);
    return line ? std::string() : line.error().found;
  };
  EXPECT_NE(found({}).find("0 dense models"), std::string::npos);
  EXPECT_NE(found(OnTheLine({1})).find("1 dense model"), std::string::npos);
  EXPECT_NE(found(OnTheLine({2, 2, 2})).find("3 models of one size"), std::string::npos);
  EXPECT_NE(found({{1 * kGb, 0.02}, {2 * kGb, 0.01}}).find("not slower"), std::string::npos);
  EXPECT_NE(found({{1 * kGb, 0}, {2 * kGb, 0.01}}).find("in 0 s"), std::string::npos);
  EXPECT_NE(found({{1 * kGb, std::nan("")}, {2 * kGb, 0.01}}).find("nan"), std::string::npos);
  EXPECT_FALSE(FitRobust(OnTheLine({2, 2})));
}

TEST(Line, TwoPointsHaveNoInterval) {
  const Line line = Line::Fit(OnTheLine({1, 2})).value();
  EXPECT_FALSE(line.HasIntervals());
  EXPECT_TRUE(std::isinf(line.Fixed(0.95).high));
  EXPECT_TRUE(std::isinf(line.Bandwidth(0.95).high));
  EXPECT_TRUE(std::isinf(line.Predict(kGb, 0.95).high));
}

}  // namespace
}  // namespace boltbeam::lab
