#include "engine/routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace boltbeam::engine {
namespace {

constexpr std::array kKnown = {kNormInConsumer,   kAttentionByHeads,   kGateByRows,
                               kGateInRegisters,  kQkvOneSpace,        kArgmaxInVocabulary,
                               kQuantiseByBlocks, kResidualInEpilogue, kSharedTails};

TEST(RoutesTest, TheRegistryAndTheCodeKnowTheSameRoutes) {
  EXPECT_EQ(Routes().size(), kKnown.size());
  for (const std::string_view name : kKnown) EXPECT_NE(FindRoute(name), nullptr) << name;
  EXPECT_EQ(FindRoute("none"), nullptr);
}

TEST(RoutesTest, EveryRowSaysWhatItDoesAndWhyItIsOff) {
  for (const Route& route : Routes()) {
    EXPECT_FALSE(route.does.empty()) << route.name;
    EXPECT_FALSE(route.needs.empty()) << route.name;
    EXPECT_EQ(route.on, route.refuted.empty()) << route.name;
  }
}

TEST(RoutesTest, WhatIsAskedForComesBeforeTheRowAndOffBeforeOn) {
  EXPECT_TRUE(IsRouteOn(kGateByRows, {}, {}));
  EXPECT_FALSE(IsRouteOn(kGateByRows, {}, {"gate-by-rows"}));
  EXPECT_FALSE(IsRouteOn(kGateByRows, {"gate-by-rows"}, {"gate-by-rows"}));
  EXPECT_FALSE(IsRouteOn("none", {}, {}));
  EXPECT_TRUE(IsRouteOn("none", {"none"}, {}));
}

}  // namespace
}  // namespace boltbeam::engine
