// Two layers of Qwen3 0.6B, whose eight KV heads two threads can share out: every route is open to it, the same logits
// to the last bit with each switched the other way.
#include <gtest/gtest.h>

#include <string>

#include "loaded.h"
#include "route_walks.h"

namespace boltbeam::engine {
namespace {

/// A small vocabulary: it is most of the file otherwise.
std::string TwoLayers() {
  model::Shape shape = *model::LoadShapes().value().Find("qwen3-0.6b").value();
  shape.hyper.layers = 2;
  shape.hyper.vocab = 8192;
  const model::SynthPlan plan = model::PlanShape(shape, *model::LoadMixtures().value().Find("Q4_K_M").value()).value();
  const std::string path = (Folder() / "two-layers.gguf").string();
  EXPECT_TRUE(model::WriteSynth(plan, path, {}));
  return path;
}

TEST(RoutesSlow, TheSameLogitsAtAnyNumberOfThreadsAndWithEveryRouteTheOtherWay) {
  const model::Model model = model::Model::Load(TwoLayers()).value();
  RouteWalks(model, Tokens(20, model.hyper().vocab)).ExpectTheSameOnEveryRoute({{kSharedTails, "no other thread", 1}});
}

}  // namespace
}  // namespace boltbeam::engine
