#include "search/refine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "chip/test_facts.h"
#include "search/fit.h"

namespace boltbeam::search {
namespace {

class RefineTest : public testing::Test {
 protected:
  const chip::Chip chip_ = chip::MeasuredTestCpu();
  const codegen::Target target_ = codegen::TargetFor(chip_);
  const Part part_ = *PartOfTable("Q4_K.1024x1024");
};

TEST_F(RefineTest, CodeThatMayBeReorderedIsReadOutOfOrder) {
  CodeReader reader(part_, target_);
  const char* knobs =
      "gemv:lanes=16,scales=bytes,vectors=1,dot=dot4,unroll=1,chains=1,depth=1,order={},prefetch=0,hint=near,every=1";
  const auto with = [&](const char* order) { return *GeometryOfCandidate(fmt::format(fmt::runtime(knobs), order)); };
  const auto ordered = reader.Of(with("ascending")), free = reader.Of(with("free"));
  ASSERT_TRUE(ordered && free);
  EXPECT_EQ(ordered->disorder, 0);
  EXPECT_GT(free->disorder, 0);
  EXPECT_GE(ordered->unevenness, 1);
  EXPECT_EQ(reader.known().size(), 2U);

  Counter counter(part_, chip_, 2);
  const Coefficients coefficients;
  EXPECT_GT(
      TimeOf(*counter.Count(with("free"), free), coefficients).memory_ns,
      TimeOf(*counter.Count(with("ascending"), codegen::StreamFacts{0, free->unevenness}), coefficients).memory_ns);
  // No line out of order and all reads at even distances: nothing is added for either.
  const Work plain = *counter.Count(with("free"), codegen::StreamFacts{});
  EXPECT_EQ(plain.disorder, 0);
  EXPECT_EQ(plain.uneven, 0);
}

TEST_F(RefineTest, WhoeverIsReadOutOfOrderFallsBehind) {
  const Proposal proposal = ProposeProduct(part_, chip_);
  Foresight foresight = *PredictProduct(proposal, chip_, 2);
  const std::vector<kernel::GemvGeometry> points = FirstSurvivors(foresight, 3);
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0], foresight.survivors[0].geometry);
  const std::size_t all = foresight.survivors.size();
  CodeReader reader(part_, target_);
  reader.Know(CandidateName(points[0]), codegen::StreamFacts{30, 4});
  reader.Know(CandidateName(points[1]), codegen::StreamFacts{});
  reader.Know(CandidateName(points[2]), std::nullopt);  // not seen: as before
  const double before = foresight.survivors[0].ns, third = foresight.survivors[2].ns;
  ASSERT_TRUE(Refine(foresight, part_, chip_, 2, {}, reader, points, 1));
  EXPECT_EQ(foresight.survivors.size(), all);
  EXPECT_TRUE(std::ranges::is_sorted(foresight.survivors, {}, &Prediction::ns));
  const auto of = [&](std::size_t i) {
    return *std::ranges::find(foresight.survivors, points[i], &Prediction::geometry);
  };
  EXPECT_GT(of(0).ns, before);
  EXPECT_LT(of(0).low_ns, of(0).ns);
  EXPECT_EQ(of(2).ns, third);
  EXPECT_FALSE(foresight.survivors[0].geometry == points[0]);
}

TEST_F(RefineTest, LedgersKeepWhatWasSeen) {
  nlohmann::json environment;
  AddStream(environment, std::nullopt);
  EXPECT_FALSE(StreamFrom(environment));
  const codegen::StreamFacts stream{0.75, 1.5};
  AddStream(environment, stream);
  EXPECT_EQ(StreamFrom(environment), stream);
  environment["stream_unevenness"] = 0.5;  // no root mean square is below its mean
  EXPECT_FALSE(StreamFrom(environment));
  environment["stream_unevenness"] = "much";
  EXPECT_FALSE(StreamFrom(environment));
}

}  // namespace
}  // namespace boltbeam::search
