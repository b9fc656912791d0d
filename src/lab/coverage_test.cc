// Whether the intervals hold what they promise: 2,000 ladders drawn with known numbers.
#include <gtest/gtest.h>

#include <random>

#include "lab/fit.h"

namespace boltbeam::lab {
namespace {

constexpr int kLadders = 2000;
constexpr double kTolerance = 0.02;
constexpr double kFixed = 1.1e-3, kBandwidth = 40e9;

struct Coverage {
  double fixed = 0, bandwidth = 0, further = 0;
};

/// The share of ladders whose intervals hold the true fixed cost, the true bandwidth and one further model's time.
Coverage Draw(std::size_t models, Noise truth, Noise assumed, double spread, double confidence, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, spread);
  const std::vector<double> sizes = {0.39e9, 1.0e9, 2.3e9, 2.5e9, 3.6e9, 4.7e9, 0.7e9, 1.6e9};
  const auto drawn = [&](double bytes) {
    const double seconds = kFixed + bytes / kBandwidth;
    return truth == Noise::kRelative ? seconds * (1 + normal(random)) : seconds + normal(random);
  };
  Coverage coverage;
  for (int ladder = 0; ladder < kLadders; ++ladder) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < models; ++i) points.push_back({sizes[i], drawn(sizes[i])});
    const auto line = Line::Fit(points, assumed);
    EXPECT_TRUE(line);
    if (!line) continue;
    const auto holds = [](const measure::Interval& interval, double value) {
      return interval.low <= value && value <= interval.high ? 1.0 / kLadders : 0.0;
    };
    coverage.fixed += holds(line->Fixed(confidence), kFixed);
    coverage.bandwidth += holds(line->Bandwidth(confidence), kBandwidth);
    constexpr double kFurther = 6.5e9;  // beyond the ladder
    coverage.further += holds(line->Predict(kFurther, confidence), drawn(kFurther));
  }
  return coverage;
}

void ExpectNear(const Coverage& coverage, double confidence, const std::string& what) {
  EXPECT_NEAR(coverage.fixed, confidence, kTolerance) << what;
  EXPECT_NEAR(coverage.bandwidth, confidence, kTolerance) << what;
  EXPECT_NEAR(coverage.further, confidence, kTolerance) << what;
}

TEST(Coverage, ConstantNoise) {
  std::uint64_t seed = 1;
  for (const std::size_t models : {3, 4, 6, 8}) {
    for (const double confidence : {0.8, 0.9, 0.95}) {
      const Coverage coverage = Draw(models, Noise::kConstant, Noise::kConstant, 3e-4, confidence, seed++);
      ExpectNear(coverage, confidence, std::to_string(models) + " models at " + std::to_string(confidence));
    }
  }
}

TEST(Coverage, RelativeNoise) {
  std::uint64_t seed = 100;
  for (const std::size_t models : {4, 6, 8}) {
    for (const double confidence : {0.9, 0.95}) {
      const Coverage coverage = Draw(models, Noise::kRelative, Noise::kRelative, 0.01, confidence, seed++);
      ExpectNear(coverage, confidence, std::to_string(models) + " models at " + std::to_string(confidence));
    }
  }
}

// What the assumption is for: the lab's constant noise promises too much far up a ladder whose errors grow with time.
TEST(Coverage, TheWrongAssumptionShows) {
  const Coverage coverage = Draw(6, Noise::kRelative, Noise::kConstant, 0.01, 0.95, 7);
  EXPECT_LT(coverage.further, 0.95 - kTolerance);
}

// The whole way from rows: visits in windows whose memory jumps between two speeds, brought to one.
TEST(Coverage, ThroughAJumpingMemory) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> model_noise(0, 0.01), window_noise(0, 0.004);
  std::bernoulli_distribution slow(0.4);
  const std::vector<double> sizes = {0.39e9, 1.0e9, 2.3e9, 2.5e9, 3.6e9, 4.7e9};
  constexpr double kSlowness = 1.06;
  double fixed = 0, further = 0;
  for (int ladder = 0; ladder < kLadders; ++ladder) {
    std::vector<Row> rows;
    for (const double bytes : sizes) {
      Row row{.model = std::to_string(bytes), .alias = "a", .device = "d", .weight_bytes_per_token = bytes};
      const double own = model_noise(random);
      for (int window = 0; window < 9; ++window) {
        const double streamed = slow(random) ? 38 : 58;
        const double seconds = kFixed + kSlowness * bytes / (streamed * 1e9);
        row.token_s.push_back(seconds * (1 + own) * (1 + window_noise(random)));
        row.streamed_gb_s.push_back(streamed);
      }
      row.generation_tps = 1 / measure::Median(row.token_s);
      rows.push_back(row);
    }
    const auto fits = FitMachines(rows, {});
    ASSERT_TRUE(fits) << fits.error().Message();
    const MachineFit& fit = fits->front();
    ASSERT_TRUE(fit.is_scaled);
    fixed += fit.fixed_s.low <= kFixed && kFixed <= fit.fixed_s.high ? 1.0 / kLadders : 0;
    constexpr double kFurther = 3.0e9;
    const double time = (kFixed + kSlowness * kFurther / (*fit.reference_gb_s * 1e9)) * (1 + model_noise(random));
    const measure::Interval next = fit.line.Predict(kFurther, 0.95);
    further += next.low <= time && time <= next.high ? 1.0 / kLadders : 0;
  }
  EXPECT_NEAR(fixed, 0.95, kTolerance);
  EXPECT_NEAR(further, 0.95, kTolerance);
}

}  // namespace
}  // namespace boltbeam::lab
