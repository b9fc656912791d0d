#include "search/survey.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "chip/test_facts.h"
#include "report/search.h"
#include "report/table.h"
#include "test_model.h"

namespace boltbeam::search {
namespace {

chip::Chip FindRow(const char* id) {
  const auto chips = chip::LoadRegistry("");
  EXPECT_TRUE(chips);
  return *std::ranges::find(*chips, id, &chip::Chip::id);
}

const model::Model& EightB() {
  static const model::Model kModel = model::Model::Load(model::Qwen3EightB().Write()).value();
  return kModel;
}

Survey SurveyOn(const chip::Chip& chip, bool predict = true) {
  SurveyOptions options;
  options.predict = predict;
  const auto survey = SurveyModel(EightB(), chip, options);
  EXPECT_TRUE(survey) << survey.error().Message();
  return *survey;
}

std::uint64_t RejectedFor(const FamilySurvey& row, const std::string& reason) {
  std::uint64_t points = 0;
  for (const Rejected& one : row.rejected) points += one.reason == reason ? one.points : 0;
  return points;
}

void ExpectEveryPointAccounted(const Survey& survey) {
  for (const FamilySurvey& row : survey.families) {
    EXPECT_EQ(row.legal + row.RejectedPoints(), row.free_product) << row.family << " " << row.table;
  }
}

TEST(SurveyTest, KnowsThePartsOfAModelByShapeNotByLayer) {
  const std::vector<Part> parts = PartsOf(EightB());
  std::uint32_t calls = 0;
  std::uint64_t bytes = 0;
  for (const Part& part : parts) {
    calls += part.calls;
    bytes += part.calls * part.bytes;
  }
  EXPECT_EQ(parts.size(), 7U);  // golden: kv, qo, gate_up in one format, kv and down in two, the head
  EXPECT_EQ(calls, 36U * 7 + 1);
  EXPECT_EQ(bytes, 4670533632U);
}

TEST(SurveyTest, ProposesAndForetellsForAGpuThatIsNotHere) {
  const Survey survey = SurveyOn(FindRow("rtx-5090"));
  ExpectEveryPointAccounted(survey);
  for (const FamilySurvey& row : survey.families) {
    EXPECT_GT(row.legal, 200U) << row.table;
    if (row.family != "gpu-product") continue;
    ASSERT_TRUE(row.best) << row.table;
    EXPECT_GE(row.best->ns, row.floor_ns);
    EXPECT_LT(row.best->ns, 3 * row.floor_ns) << row.table;
    EXPECT_TRUE(!row.usual || row.best->ns <= row.usual->ns);
  }
  EXPECT_GT(survey.token_log10, 300);  // the product of 253 kernels' spaces
  // A token's gain is of all its products: what runs now has a time though nobody would time it.
  double usual_ns = 0;
  for (const FamilySurvey& row : survey.families) {
    if (row.family != "gpu-product") continue;
    ASSERT_TRUE(row.usual) << row.table;
    usual_ns += row.calls * row.usual->ns;
  }
  EXPECT_DOUBLE_EQ(survey.token_ns, usual_ns);
}

/// Small tables take little more than a dispatch whatever is done: that turns nobody away.
TEST(SurveyTest, WhatEveryKernelWaitsForIsNoReason) {
  chip::Chip chip = FindRow("rtx-5090");
  chip::AddMeasured(chip, {{"dispatch_ns", 20000}});
  for (const FamilySurvey& row : SurveyOn(chip).families) {
    EXPECT_EQ(row.predicted > 0, row.family == "gpu-product") << row.table;
  }
}

TEST(SurveyTest, AMissingFactTurnsAwayWhatNeedsItByName) {
  const Survey survey = SurveyOn(FindRow("apple-m3-10c"));
  ExpectEveryPointAccounted(survey);
  for (const FamilySurvey& row : survey.families) {
    EXPECT_GT(RejectedFor(row, "missing-fact:lanes_per_workgroup_max"), 0U) << row.family;
    EXPECT_EQ(row.legal > 0, row.family == "gpu-product");  // a workgroup of one subgroup asks for less
  }
}

/// The recorded case: a chip that was not said to run its lanes in groups of 32 took every slow route.
TEST(SurveyTest, WithoutTheSubgroupNothingIsLegalAndWithItTheFastRouteIs) {
  chip::Chip chip = FindRow("rtx-5090");
  std::erase_if(chip.facts, [](const chip::Fact& fact) { return fact.name == "subgroup_lanes"; });
  for (const FamilySurvey& row : SurveyOn(chip).families) {
    EXPECT_EQ(row.legal, 0U) << row.family;
    EXPECT_GT(RejectedFor(row, "missing-fact:subgroup_lanes"), 0U) << row.family;
  }
  for (const FamilySurvey& row : SurveyOn(FindRow("rtx-5090")).families) EXPECT_GT(row.legal, 0U);
}

TEST(SurveyTest, AChipsRowAloneGetsItsProposals) {
  const auto chip = chip::ChipFromJson(R"({
    "schema": "boltbeam.chip.v1", "id": "new", "name": "New", "backend": "cuda", "facts": [
    {"name": "read_bandwidth_gb_s", "value": 500, "unit": "GB/s", "provenance": "measured"},
    {"name": "subgroup_lanes", "value": 64, "provenance": "vendor"},
    {"name": "lanes_per_workgroup_max", "value": 256, "provenance": "vendor"},
    {"name": "workgroup_memory_bytes", "value": 32768, "provenance": "vendor"},
    {"name": "vector_load_bits", "value": 64, "provenance": "vendor"}]})",
                                       "test");
  ASSERT_TRUE(chip) << chip.error().Message();
  const Survey survey = SurveyOn(*chip);
  ExpectEveryPointAccounted(survey);
  for (const FamilySurvey& row : survey.families) {
    EXPECT_GT(row.legal, 0U) << row.family;
    if (row.family == "flash-tile") continue;
    EXPECT_GT(RejectedFor(row, "load-width"), 0U);  // of 128 bits
    EXPECT_GT(RejectedFor(row, "over-threads"), 0U);
  }
}

TEST(SurveyTest, ProposesForACpuOfDeclaredInstructionSetsOnly) {
  chip::Chip chip;
  chip.id = "cpu";
  chip.backend = "cpu";
  const Survey nothing = SurveyOn(chip, false);
  ExpectEveryPointAccounted(nothing);
  for (const FamilySurvey& row : nothing.families) EXPECT_EQ(row.legal, 0U) << row.family;
  chip.features = {"avx2", "fma", "f16c"};
  chip::Fact cache;
  cache.name = "l1d_bytes";
  cache.value = 32768;
  cache.provenance = chip::Provenance::kDetected;
  chip.facts.push_back(cache);
  const Survey survey = SurveyOn(chip, false);
  ExpectEveryPointAccounted(survey);
  for (const FamilySurvey& row : survey.families) EXPECT_GT(row.legal, 0U) << row.family;
}

TEST(SurveyTest, APredictionNeedsTheMemorysRate) {
  chip::Chip chip;
  chip.backend = "cpu";
  const auto survey = SurveyModel(EightB(), chip, {});
  ASSERT_FALSE(survey);
  EXPECT_EQ(survey.error().code, Code::kBoundNoBandwidth);
}

TEST(SurveyTest, WhatPromisesLessThanTheSmallestClaimIsClosed) {
  SurveyOptions options;
  options.smallest_claim = 10;  // ten times the token
  const auto survey = SurveyModel(EightB(), FindRow("rtx-5090"), options);
  ASSERT_TRUE(survey);
  for (const FamilySurvey& row : survey->families) {
    if (!row.gain_bound) continue;
    EXPECT_TRUE(row.verdict.starts_with("closed: at most ")) << row.verdict;
  }
}

TEST(SurveyTest, TextFitsATerminal) {
  for (const char* id : {"rtx-5090", "apple-m3-10c"}) {
    const chip::Chip chip = FindRow(id);
    const std::string text = report::SurveyReport(EightB(), chip, SurveyOn(chip), true, report::Form::kText);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      EXPECT_LE(report::DisplayWidth(std::string_view(text).substr(at, end - at)), 80U) << text.substr(at, end - at);
      at = end + 1;
    }
  }
}

}  // namespace
}  // namespace boltbeam::search
