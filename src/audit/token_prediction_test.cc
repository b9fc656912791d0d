#include "audit/token_prediction.h"

#include <gtest/gtest.h>

#include <vector>

namespace boltbeam::audit {
namespace {

TEST(PredictToken, BytesAtTheBandwidthToTwiceThat) {
  const TokenPrediction prediction = PredictToken(1'000'000'000, 50, {}).value();
  EXPECT_NEAR(prediction.low_ns, 2e7, 1);
  EXPECT_NEAR(prediction.high_ns, 4e7, 1);
  EXPECT_GT(prediction.value_ns, prediction.low_ns);
  EXPECT_LT(prediction.value_ns, prediction.high_ns);
}

TEST(PredictToken, EarlierTokensForetellBetter) {
  const std::vector<double> earlier = {0.024, 0.025, 0.026};
  const TokenPrediction prediction = PredictToken(1'000'000'000, 50, earlier).value();
  EXPECT_NEAR(prediction.value_ns, 2.5e7, 1);
  EXPECT_LT(prediction.low_ns, 2.4e7);
  EXPECT_GT(prediction.high_ns, 2.6e7);
  EXPECT_LT(prediction.high_ns / prediction.low_ns, 1.4);
  EXPECT_EQ(prediction.method, "audit: earlier tokens");
  const std::vector<double> scattered = {0.02, 0.025, 0.03};
  const TokenPrediction wider = PredictToken(1'000'000'000, 50, scattered).value();
  EXPECT_GT(wider.high_ns / wider.low_ns, prediction.high_ns / prediction.low_ns);
}

TEST(PredictToken, NothingToForetellFromIsSaid) {
  EXPECT_EQ(PredictToken(1000, 0, {}).error().code, Code::kUsage);
  const std::vector<double> useless = {0, -1, 0.025};
  EXPECT_EQ(PredictToken(1000, 0, useless).error().code, Code::kUsage);
}

}  // namespace
}  // namespace boltbeam::audit
