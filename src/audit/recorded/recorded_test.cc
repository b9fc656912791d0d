// The published ledgers of tests/data/golden: what follows from their figures, and what they say of themselves.
#include "audit/recorded/recorded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/paths.h"

namespace boltbeam::audit {
namespace {

nlohmann::json Document(const std::string& file) {
  const auto text = base::ReadWholeFile(std::string(BOLTBEAM_TEST_DATA) + "/golden/" + file);
  EXPECT_TRUE(text);
  return nlohmann::json::parse(text ? *text : "null");
}

RecordedAccount Derive(const std::string& file) {
  auto account = DeriveRecorded(file, Document(file));
  EXPECT_TRUE(account) << (account ? "" : account.error().Message());
  return account ? std::move(*account) : RecordedAccount{};
}

double Line(const RecordedAccount& account, const std::string& line) {
  const auto found = std::ranges::find(account.lines, line, &DerivedLine::line);
  EXPECT_NE(found, account.lines.end()) << line;
  return found == account.lines.end() ? NAN : found->derived;
}

bool Says(const RecordedAccount& account, std::string_view text) {
  return std::ranges::any_of(account.findings,
                             [&](const std::string& one) { return one.find(text) != std::string::npos; });
}

// Explained means: the file's own check names the difference.
const DerivedLine* Differs(const RecordedAccount& account, const std::string& line) {
  for (const DerivedLine& one : account.lines) {
    if (one.line == line && !one.Agrees()) return &one;
  }
  return nullptr;
}

void ExpectClosed(const RecordedAccount& account) {
  for (const DerivedLine* line : account.Open()) {
    ADD_FAILURE() << line->section << " " << line->line << ": recorded " << *line->recorded << ", derived "
                  << line->derived;
  }
}

TEST(Recorded, TieOutOfFastMemory) {
  const RecordedAccount account = Derive("seed-tie-outs.json");
  ExpectClosed(account);
  EXPECT_NEAR(Line(account, "floor_us"), 2747.4, 0.05);
  EXPECT_NEAR(Line(account, "lost_in_weight_kernels_us"), 547.6, 0.05);
  EXPECT_NEAR(Line(account, "gaps_us"), 143.5, 0.11);
  EXPECT_NEAR(Line(account, "token_us"), 4021.7, 0.11);
  EXPECT_NEAR(Line(account, "gate and up share_of_rate"), 0.9287, 1e-4);
  EXPECT_NEAR(Line(account, "down share_of_rate"), 0.8365, 1e-4);
  EXPECT_NEAR(Line(account, "query, key, value share_of_rate"), 0.5803, 1e-4);
  EXPECT_NEAR(Line(account, "attention output share_of_rate"), 0.7012, 1e-4);
  EXPECT_NEAR(Line(account, "vocabulary share_of_rate"), 0.9957, 1e-4);
  EXPECT_NEAR(Line(account, "gate and up excess_per_launch_us"), 1.278, 1e-3);
  EXPECT_NEAR(Line(account, "vocabulary excess_per_launch_us"), 1.305, 1e-3);
  EXPECT_TRUE(Says(account, "toll per launch"));
  EXPECT_TRUE(Says(account, "18 times apart in size and lose 1.278 and 1.305 µs"));
  EXPECT_TRUE(Says(account, "the gap is -2.3 ms"));
  EXPECT_NEAR(Line(account, "gap_us"), -2300, 1);
}

TEST(Recorded, OtherKernelsAndGapsFollowFromTheNodeSum) {
  const RecordedAccount parts = Derive("seed-tie-outs.json");
  const nlohmann::json lifecycle = Document("lifecycle-ledger.json");
  const double node_sum = lifecycle["node_sum"]["llama_us"],
               token = 1e3 * lifecycle["endpoint"]["llama_token_ms"].get<double>();
  const double weights = Line(parts, "floor_us") + Line(parts, "lost_in_weight_kernels_us");
  EXPECT_NEAR(node_sum - weights, 583.3, 0.06);
  EXPECT_NEAR(token - node_sum, 143.5, 0.06);
  EXPECT_NEAR(token, 4021.7, 0.06);
}

TEST(Recorded, SlowMemoryLosesARateAndItsNeighboursOverlap) {
  const RecordedAccount account = Derive("m3-parts.json");
  ExpectClosed(account);
  ASSERT_EQ(account.fits.size(), 1U);
  EXPECT_EQ(account.fits[0].loss, Loss::kRate) << DescribeToll(account.fits[0]);
  EXPECT_EQ(std::ranges::count(account.fits[0].launches, true, &LaunchLoss::cached), 2);
  EXPECT_TRUE(Says(account, "steady rate"));
  EXPECT_TRUE(Says(account, "key and value, Q4_K (2.4 MB) looks faster than the memory"));
  EXPECT_TRUE(Says(account, "key and value, Q6_K (3.4 MB) looks faster than the memory"));
  EXPECT_NEAR(Line(account, "gap_us"), -2300, 100);
  EXPECT_NEAR(Line(account, "parts_us"), 61100, 100);
}

TEST(Recorded, DecodeLedger) {
  const RecordedAccount account = Derive("decode-ledger.json");
  ExpectClosed(account);
  EXPECT_NEAR(Line(account, "net_fork_advantage_us"), 169.896, 1e-6);
  EXPECT_NEAR(Line(account, "fork_ahead_us"), 22.796, 1e-6);
  EXPECT_NEAR(Line(account, "unexplained_us"), 147.1, 1e-6);
  EXPECT_NEAR(Line(account, "floor_implied_gb_s"), 1701.3203, 1e-3);
  const DerivedLine* lead = Differs(account, "fork_ahead_tok_s");
  ASSERT_NE(lead, nullptr);
  EXPECT_NE(lead->explained.find("difference of rounded rates"), std::string::npos);
}

TEST(Recorded, ActiveBodies) {
  const RecordedAccount account = Derive("active-body-ledger.json");
  ExpectClosed(account);
  EXPECT_NEAR(Line(account, "fork_us"), 3494.138, 1e-6);
  EXPECT_NEAR(Line(account, "llama_us"), 3656.606, 1e-6);
  EXPECT_NEAR(Line(account, "boundary_residual_us"), 215.194, 1e-6);
  EXPECT_NEAR(Line(account, "projection_tok_s"), 247.236, 1e-3);
  EXPECT_EQ(account.checks.size(), 1U);
}

TEST(Recorded, LifecycleRegionsDoNotSum) {
  const RecordedAccount account = Derive("lifecycle-ledger.json");
  ExpectClosed(account);
  for (const char* line : {"wins_us", "net_us"}) {
    const DerivedLine* differs = Differs(account, line);
    ASSERT_NE(differs, nullptr) << line;
    EXPECT_NE(differs->explained.find("The negative rows sum to 105.271, not about 80"), std::string::npos);
  }
  EXPECT_NE(Differs(account, "llama_rate_tok_s"), nullptr);
  EXPECT_NEAR(Line(account, "fork_rows_minus_node_sum_us"), -23.52, 1e-6);
  EXPECT_NEAR(Line(account, "llama_rows_minus_node_sum_us"), -30.766, 1e-6);
  EXPECT_TRUE(Says(account, "the rows do not sum to their node sums"));
}

TEST(Recorded, WallAccountClosesToZero) {
  const RecordedAccount account = Derive("wall-account.json");
  ExpectClosed(account);
  EXPECT_NEAR(Line(account, "fork residual_us"), 0, 0.001);
  EXPECT_NEAR(Line(account, "llama residual_us"), 0, 0.001);
  EXPECT_TRUE(Says(account, "fork: the residual is zero"));
  EXPECT_TRUE(Says(account, "llama: the residual is zero"));
  EXPECT_TRUE(Says(account, "submit-ahead: -3.690 µs with controls 7.357 µs apart: neutral"));
  EXPECT_TRUE(Says(account, "norm-boundary fold: +59.602 µs"));
  EXPECT_NEAR(Line(account, "weight_kernels_us"), 3291.6, 0.1);
  const DerivedLine* sweep = Differs(account, "isolated, read sweep less the empty kernel, ms");
  ASSERT_NE(sweep, nullptr);
  EXPECT_NE(sweep->explained.find("3.9 us floor"), std::string::npos);
}

TEST(Recorded, CensusNamesTheAddingMistake) {
  const RecordedAccount account = Derive("kernel-census.json");
  ExpectClosed(account);
  const DerivedLine* group = Differs(account, "anchor launches");
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->derived, 217);
  EXPECT_NE(group->explained.find("213"), std::string::npos);
  const DerivedLine* total = Differs(account, "launches");
  ASSERT_NE(total, nullptr);
  EXPECT_EQ(total->derived, 596);
  EXPECT_TRUE(Says(account, "the group anchor is printed with 213 launches; its rows sum to 217"));
  EXPECT_NEAR(Line(account, "node_sum_us (medians times launches)"), 4999.57, 0.01);
}

// A wrong figure that no check explains stays open.
TEST(Recorded, AnUnexplainedDifferenceIsOpen) {
  nlohmann::json document = Document("decode-ledger.json");
  document["net_fork_advantage_us"]["recorded"] = 170.9;
  const auto account = DeriveRecorded("x", document);
  ASSERT_TRUE(account);
  ASSERT_EQ(account->Open().size(), 1U);
  EXPECT_EQ(account->Open().front()->line, "net_fork_advantage_us");
}

// A file's own check excuses the difference that it is of, and no other one beside it.
TEST(Recorded, ACheckExcusesOnlyItsOwnFigure) {
  nlohmann::json census = Document("kernel-census.json");
  ASSERT_TRUE(DeriveRecorded("x", census)->Open().empty());
  census["rows"][0]["count"] = 50;
  EXPECT_FALSE(DeriveRecorded("x", census)->Open().empty());
  nlohmann::json lifecycle = Document("lifecycle-ledger.json");
  ASSERT_TRUE(DeriveRecorded("x", lifecycle)->Open().empty());
  lifecycle["totals"]["recorded"]["net_us"] = 90;
  EXPECT_FALSE(DeriveRecorded("x", lifecycle)->Open().empty());
}

TEST(Recorded, RefusesWhatIsNone) {
  EXPECT_FALSE(IsRecorded(nlohmann::json::parse("[1]")));
  const auto none = DeriveRecorded("x", nlohmann::json::parse(R"({"schema": "golden.other.v1"})"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kStoredAccount);
  const auto empty =
      DeriveRecorded("x", nlohmann::json::parse(R"({"schema": "golden.wall_account.v1", "accounts": [3]})"));
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().found.find("without figures"), std::string::npos);
}

}  // namespace
}  // namespace boltbeam::audit
