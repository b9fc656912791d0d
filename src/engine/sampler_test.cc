#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace boltbeam::engine {
namespace {

const std::vector<float> kLogits = {std::log(0.1F), std::log(0.5F), std::log(0.3F), std::log(0.07F), std::log(0.03F)};

std::map<std::int32_t, int> Count(const SamplerOptions& options, int draws = 20000) {
  auto sampler = Sampler::Make(options);
  EXPECT_TRUE(sampler);
  std::map<std::int32_t, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[*sampler->Sample(kLogits)];
  return counts;
}

TEST(Sampler, GreedyTakesTheLargestAndOfEqualOnesTheLowestId) {
  auto sampler = Sampler::Make({});
  EXPECT_EQ(sampler->Sample(kLogits), 1);
  EXPECT_EQ(sampler->Sample(std::vector<float>{1, 3, 3, 2}), 1);
}

TEST(Sampler, DrawsInProportionToTheProbabilities) {
  const auto counts = Count({.temperature = 1, .seed = 7});
  EXPECT_NEAR(counts.at(1), 10000, 300);
  EXPECT_NEAR(counts.at(2), 6000, 300);
  EXPECT_NEAR(counts.at(4), 600, 120);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  // At 0.5 the probabilities are squared: 0.25 of 0.3558.
  EXPECT_NEAR(Count({.temperature = 0.5}).at(1), 20000 * 0.25 / 0.3558, 300);
  EXPECT_NEAR(Count({.temperature = 1e6}).at(4), 4000, 300);
}

TEST(Sampler, LimitsLeaveOnlyTheirTokens) {
  EXPECT_EQ(Count({.temperature = 1, .top_k = 2}).size(), 2U);
  EXPECT_EQ(Count({.temperature = 1, .top_k = 1}).size(), 1U);
  EXPECT_EQ(Count({.temperature = 1, .top_k = 99}).size(), 5U);
  EXPECT_EQ(Count({.temperature = 1, .top_p = 0.75}).size(), 2U);
  EXPECT_EQ(Count({.temperature = 1, .top_p = 0.81}).size(), 3U);
  EXPECT_EQ(Count({.temperature = 1, .top_p = 1e-9}).size(), 1U);
  EXPECT_EQ(Count({.temperature = 1, .min_p = 0.15}).size(), 3U);
  EXPECT_EQ(Count({.temperature = 9, .min_p = 0.5}).size(), 2U);
  EXPECT_EQ(Count({.temperature = 9, .min_p = 1}).size(), 1U);
}

TEST(Sampler, TheSameSeedGivesTheSameTokens) {
  auto a = Sampler::Make({.temperature = 2, .seed = 42}), b = Sampler::Make({.temperature = 2, .seed = 42}),
       other = Sampler::Make({.temperature = 2, .seed = 43});
  int different = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto token = a->Sample(kLogits);
    ASSERT_EQ(*token, *b->Sample(kLogits));
    different += *token != *other->Sample(kLogits) ? 1 : 0;
  }
  EXPECT_GT(different, 100);
}

TEST(Sampler, RefusesOptionsOutsideTheirRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const SamplerOptions& options :
       {SamplerOptions{.temperature = -1}, SamplerOptions{.temperature = nan}, SamplerOptions{.top_p = 0},
        SamplerOptions{.top_p = 1.5}, SamplerOptions{.min_p = -0.1}, SamplerOptions{.min_p = nan}}) {
    auto sampler = Sampler::Make(options);
    ASSERT_FALSE(sampler);
    EXPECT_EQ(sampler.error().code, Code::kUsage);
  }
}

TEST(Sampler, RefusesLogitsThatAreNotNumbers) {
  auto sampler = Sampler::Make({});
  const std::vector<float> broken = {1, std::numeric_limits<float>::quiet_NaN()},
                           infinite = {1, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(sampler->Sample(broken).error().code, Code::kLogits);
  EXPECT_EQ(sampler->Sample(infinite).error().code, Code::kLogits);
  EXPECT_EQ(sampler->Sample({}).error().code, Code::kLogits);
}

}  // namespace
}  // namespace boltbeam::engine
