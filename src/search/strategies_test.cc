#include "search/strategies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace boltbeam::search {
namespace {

using kernel::GemvGeometry;

Foresight Foretold(std::initializer_list<std::uint16_t> lanes) {
  Foresight foresight;
  for (const std::uint16_t of : lanes) {
    for (const std::uint16_t unroll : {1, 2, 4, 8}) {
      for (const std::uint32_t prefetch : {0, 1024}) {
        Prediction prediction;
        prediction.geometry.lanes = of;
        prediction.geometry.unroll = unroll;
        prediction.geometry.prefetch_bytes = prefetch;
        prediction.ns = 1000.0 + static_cast<double>(foresight.survivors.size());
        foresight.survivors.push_back(prediction);
      }
    }
  }
  return foresight;
}

TEST(PredictedFirst, EachWidthHasAPlaceBeforeTheSecondOfAny) {
  const Foresight foresight = Foretold({4, 8, 16});
  const std::vector<GemvGeometry> chosen = PredictedFirst(foresight, 7);
  ASSERT_EQ(chosen.size(), 7U);
  EXPECT_EQ(chosen.front(), foresight.survivors.front().geometry);
  std::set<std::uint16_t> lanes;
  for (std::size_t i = 0; i < 3; ++i) lanes.insert(chosen[i].lanes);
  EXPECT_EQ(lanes, (std::set<std::uint16_t>{4, 8, 16}));
  // What is the same but for its prefetches comes last.
  EXPECT_TRUE(std::ranges::all_of(chosen, [](const GemvGeometry& point) { return point.prefetch_bytes == 0; }));
}

TEST(PredictedFirst, AWidthThatIsForetoldToBeFarSlowerHasNone) {
  Foresight foresight = Foretold({4, 8});
  for (Prediction& prediction : foresight.survivors) {
    if (prediction.geometry.lanes == 8) prediction.ns *= 3;
  }
  const std::vector<GemvGeometry> chosen = PredictedFirst(foresight, 4);
  EXPECT_TRUE(std::ranges::all_of(chosen, [](const GemvGeometry& point) { return point.lanes == 4; }));
}

TEST(Neighbours, DifferInOneKnob) {
  const Foresight foresight = Foretold({4, 8});
  std::vector<GemvGeometry> legal;
  for (const Prediction& prediction : foresight.survivors) legal.push_back(prediction.geometry);
  const GemvGeometry point = legal.front();
  const std::vector<GemvGeometry> near = Neighbours(point, legal, 3);
  ASSERT_EQ(near.size(), 3U);
  for (const GemvGeometry& other : near) {
    const int differences = (other.lanes != point.lanes ? 1 : 0) + (other.unroll != point.unroll ? 1 : 0) +
                            (other.prefetch_bytes != point.prefetch_bytes ? 1 : 0);
    EXPECT_EQ(differences, 1);
  }
}

TEST(BeamWalk, GoesDownhillAndTimesNoMoreThanItMay) {
  const Foresight foresight = Foretold({4, 8, 16});
  std::vector<GemvGeometry> legal;
  for (const Prediction& prediction : foresight.survivors) legal.push_back(prediction.geometry);
  const auto ns_of = [](const GemvGeometry& point) { return 100.0 / point.lanes + 10.0 / point.unroll; };
  std::size_t timed = 0;
  const TimePoints time = [&](const std::vector<GemvGeometry>& points) -> Result<std::vector<double>> {
    std::vector<double> all;
    for (const GemvGeometry& point : points) all.push_back(ns_of(point));
    timed += points.size();
    return all;
  };
  const auto walked = BeamWalk(legal, legal.front(), 2, 14, time);
  ASSERT_TRUE(walked) << walked.error().Message();
  EXPECT_LE(timed, 14U);
  EXPECT_LT(ns_of(walked->front()), ns_of(legal.front()));
  EXPECT_TRUE(std::ranges::is_sorted(*walked, {}, ns_of));
}

}  // namespace
}  // namespace boltbeam::search
