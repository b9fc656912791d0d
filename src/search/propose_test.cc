#include "search/propose.h"

#include <gtest/gtest.h>

#include "search/predict.h"

namespace boltbeam::search {
namespace {

chip::Chip Zen4() {
  chip::Chip chip;
  chip.id = "test-cpu";
  chip.backend = "cpu";
  chip.features = {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"};
  const auto add = [&](const char* name, double value) {
    chip::Fact fact;
    fact.name = name;
    fact.value = value;
    fact.provenance = chip::Provenance::kMeasured;
    chip.facts.push_back(fact);
  };
  add("read_bandwidth_gb_s", 40);
  add("vector_instructions_s", 1.2e10);
  add("cores", 2);
  return chip;
}

Part Q4() {
  const formats::Format* format = formats::FindFormat("Q4_K");
  return {"Q4_K.4096x4096", "attn_qo", format, 4096, 4096, 1, std::uint64_t{4096} * 4096 / 256 * 144};
}

TEST(ProposeTest, AccountsForEveryPointOfTheFreeProduct) {
  const Proposal proposal = ProposeProduct(Q4(), Zen4());
  std::uint64_t rejected = 0;
  for (const Rejected& one : proposal.rejected) rejected += one.points;
  EXPECT_GT(proposal.points.size(), 200U);
  EXPECT_EQ(proposal.points.size() + rejected, proposal.free_product);
}

TEST(ProposeTest, LeavesOutWhatTheLedgerHasRefuted) {
  const Proposal all = ProposeProduct(Q4(), Zen4());
  const std::string refuted = CandidateName(all.points[3]);
  const Proposal rest =
      ProposeProduct(Q4(), Zen4(), [&](const ledger::Subject& subject) { return subject.candidate == refuted; });
  EXPECT_EQ(rest.refuted, 1U);
  EXPECT_EQ(rest.points.size() + 1, all.points.size());
  EXPECT_EQ(rest.legal(), all.legal());
}

TEST(PredictTest, OrdersByTimeAndHasAFloor) {
  const auto foresight = PredictProduct(ProposeProduct(Q4(), Zen4()), Zen4(), 2);
  ASSERT_TRUE(foresight);
  ASSERT_FALSE(foresight->survivors.empty());
  for (std::size_t i = 1; i < foresight->survivors.size(); ++i) {
    EXPECT_LE(foresight->survivors[i - 1].ns, foresight->survivors[i].ns);
  }
  EXPECT_NEAR(foresight->floor_ns, 4096.0 * 4096 * 4.5 / 8 / 40, 1);
}

}  // namespace
}  // namespace boltbeam::search
