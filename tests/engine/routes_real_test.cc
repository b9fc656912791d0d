// Real models: the same logits to the last bit at one thread and at two, and with every route of the registry switched
// the other way; nearly the same with a cache in 8-bit codes.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/tokenizer.h"
#include "real_model.h"
#include "route_walks.h"

namespace boltbeam::engine {
namespace {

class RoutesReal : public testing::TestWithParam<const char*> {
 protected:
  RouteWalks Walks() {
    model_ = std::make_unique<model::Model>(model::Model::Load(RealModelPath(GetParam())).value());
    const model::Tokenizer tokenizer = model::Tokenizer::Make(model_->file()).value();
    return {*model_, tokenizer.Encode("The history of the city begins with", {}).value()};
  }

 private:
  std::unique_ptr<model::Model> model_;
};

const std::map<std::string, std::vector<ClosedRoute>> kClosed = {
    {"smollm2", {{kSharedTails, "no other thread", 1}, {kAttentionByHeads, "3 KV heads for 2 threads", 2}}},
    {"gemma3",
     {{kSharedTails, "no other thread", 1},
      {kAttentionByHeads, "1 KV head for 2 threads", 2},
      {kResidualInEpilogue, "norms between the products and the stream"}}}};

TEST_P(RoutesReal, TheSameLogitsAtAnyNumberOfThreadsAndWithEveryRouteTheOtherWay) {
  BOLTBEAM_NEED_REAL_MODEL(GetParam());
  Walks().ExpectTheSameOnEveryRoute(kClosed.at(GetParam()));
}

TEST_P(RoutesReal, ACacheInCodesGivesTheSameLogitsAtTwoThreadsAndNearlyThoseOfFloats) {
  BOLTBEAM_NEED_REAL_MODEL(GetParam());
  const RouteWalks walks = Walks();
  Options options;
  options.threads = 1;
  const Walk floats = walks.Run(options);
  options.cache = {formats::FindFormat("Q8_0"), formats::FindFormat("Q8_0")};
  const Walk codes = walks.Run(options, floats.tokens);
  const double divergence = MeanDivergence(floats, codes);
  EXPECT_GT(divergence, 1e-9) << "the cache in codes was not used";
  EXPECT_LE(divergence, kMostDivergence);
  if (chip::UsableCpus().size() < 2) GTEST_SKIP() << "one usable CPU";
  options.threads = 2;
  EXPECT_EQ(FirstDifference(codes, walks.Run(options, floats.tokens)), kTokens);
}

INSTANTIATE_TEST_SUITE_P(Models, RoutesReal, testing::Values("smollm2", "gemma3"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace boltbeam::engine
