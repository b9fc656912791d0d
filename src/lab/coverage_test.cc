// Whether the intervals hold what they promise: 2,000 ladders drawn with known numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "lab/fit.h"
#include "lab/predict.h"

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

/// The share of ladders in which every model, left out, lies inside its interval.
double AllInside(std::size_t models, double confidence, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 0.01);
  const std::vector<double> sizes = {0.39e9, 0.67e9, 1.1e9, 1.9e9, 2.5e9, 3.3e9, 4.7e9, 1.4e9};
  double all = 0;
  for (int ladder = 0; ladder < kLadders; ++ladder) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < models; ++i)
      points.push_back({sizes[i], (kFixed + sizes[i] / kBandwidth) * (1 + normal(random))});
    const auto left = LeaveOneOut(points, confidence, Noise::kRelative);
    all += std::ranges::all_of(left, [](const auto& one) { return one && one->is_inside; }) ? 1.0 / kLadders : 0;
  }
  return all;
}

TEST(Coverage, OfAllModelsLeftOutTogether) {
  std::uint64_t seed = 400;
  for (const std::size_t models : {4, 6, 7, 8}) {
    for (const double confidence : {0.9, 0.95}) {
      const double share = AllInside(models, confidence, seed++);
      EXPECT_GT(share, confidence - kTolerance) << models;
      EXPECT_LT(share, confidence + 2 * kTolerance) << models;  // Bonferroni's bound errs on this side
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

// Several sessions, each with its own factor on all times: what is foretold from them must hold for the next one.
struct Machine {
  double between = 0.03, of_model = 0.006, of_cell = 0.004;  // standard deviations, as parts of a time
  std::size_t sessions = 3, models = 6;
};

Row RowAt(double bytes, std::size_t session, double seconds) {
  Row row{.model = std::to_string(bytes), .alias = "a", .device = "d", .weight_bytes_per_token = bytes};
  row.generation_tps = 1 / seconds;
  row.date = "2026-11-30T" + std::to_string(10 + session) + ":00:00Z";
  return row;
}

/// The share of machines whose next session's time of a model that is on no ladder lies inside its interval.
double HeldInTheNextSession(const Machine& machine, double assumed, double confidence, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1);
  const std::vector<double> sizes = {0.39e9, 1.0e9, 2.3e9, 2.5e9, 3.6e9, 4.7e9};
  constexpr double kFurther = 3.0e9;
  const auto time = [&](double bytes, double model, double session) {
    const double parts = 1 + machine.of_model * model + session + machine.of_cell * normal(random);
    return (kFixed + bytes / kBandwidth) * parts;
  };
  FitOptions options;
  options.noise = Noise::kRelative;
  options.between = assumed;
  options.confidence = confidence;
  double held = 0;
  for (int draw = 0; draw < kLadders; ++draw) {
    std::vector<double> of_model(machine.models);
    for (double& model : of_model) model = normal(random);
    std::vector<Row> rows;
    // The spread of one session is its difference's over the root of two.
    const auto session_factor = [&] { return machine.between / std::sqrt(2.0) * normal(random); };
    for (std::size_t session = 0; session < machine.sessions; ++session) {
      const double factor = session_factor();
      for (std::size_t i = 0; i < machine.models; ++i) {
        rows.push_back(RowAt(sizes[i], session, time(sizes[i], of_model[i], factor)));
      }
    }
    const auto fits = FitMachines(rows, options);
    EXPECT_TRUE(fits) << fits.error().Message();
    if (!fits) return 0;
    EXPECT_EQ(fits->front().sessions.factors.size(), machine.sessions);
    ForecastOptions asked;
    asked.depths = {0};
    asked.confidence = confidence;
    const Forecast next = Predict(fits->front(), StatedFacts(kFurther), asked)->front();
    const double seconds = time(kFurther, normal(random), session_factor());
    held += next.seconds.low <= seconds && seconds <= next.seconds.high ? 1.0 / kLadders : 0;
  }
  return held;
}

TEST(Coverage, TheNextSessionIsHeldByIntervalsOfSeveral) {
  std::uint64_t seed = 200;
  for (const std::size_t sessions : {3, 4, 6}) {
    for (const double between : {0.06, 0.02, 0.0}) {
      const Machine machine{.between = between, .sessions = sessions};
      EXPECT_NEAR(HeldInTheNextSession(machine, 0, 0.95, seed++), 0.95, kTolerance)
          << sessions << " sessions that differ by " << between;
    }
  }
  EXPECT_NEAR(HeldInTheNextSession({.sessions = 5}, 0, 0.8, seed++), 0.8, kTolerance);
}

TEST(Coverage, OfOneSessionTheStatedDifferenceHoldsAndNoneDoesNot) {
  const Machine machine{.between = 0.05, .sessions = 1};
  EXPECT_NEAR(HeldInTheNextSession(machine, 0.05, 0.95, 300), 0.95, kTolerance);
  // What the intervals of one session promised before: far less than they say.
  EXPECT_LT(HeldInTheNextSession(machine, 0, 0.95, 301), 0.6);
}

}  // namespace
}  // namespace boltbeam::lab
