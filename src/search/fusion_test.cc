#include "search/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "chip/facts.h"

namespace boltbeam::search {
namespace {

using Names = std::vector<std::string>;

/// A layer of 40 query heads over 8 KV heads of 128 dims, at 512 positions cut into 32 parts.
std::vector<FusionNode> RecordedLayer() {
  const double kv_bytes = 512.0 * 8 * 128 * 2 * 2;
  return {
      {"rope", 48, 0, 48 * 512, {}},
      {"attention", 8 * 32, kv_bytes, 40 * 32 * 520, {{0, Need::kPieces}}},
      {"combine", 40, 0, 40 * 512, {{1, Need::kPieces}}},
      {"attn_output", 1280, 14.7e6, 5120 * 4, {{2, Need::kAll}}},
      {"attn_residual", 1280, 0, 5120 * 4, {{3, Need::kPiece}}},
      {"ffn_norm", 1, 0, 5120 * 4, {{4, Need::kAll}}},
  };
}

chip::Chip FindRow(const char* id) {
  const auto chips = chip::LoadRegistry("");
  EXPECT_TRUE(chips);
  return *std::ranges::find(*chips, id, &chip::Chip::id);
}

const FusionIdea& IdeaOf(const std::vector<FusionIdea>& ideas, const Names& steps) {
  const auto found = std::ranges::find(ideas, steps, &FusionIdea::steps);
  EXPECT_NE(found, ideas.end());
  return *found;
}

TEST(FusionTest, GroupsAreConnectedAndHaveOneOutput) {
  const std::vector<FusionNode> nodes = {
      {"a", 1, 0, 4, {}}, {"b", 1, 0, 4, {{0}}}, {"c", 1, 0, 4, {{0}}}, {"d", 1, 0, 4, {{1}, {2}}}};
  const auto groups = FusionGroups(nodes);
  const std::vector<std::vector<std::size_t>> expected = {{0, 1, 2, 3}, {1, 2, 3}, {1, 3}, {2, 3}};
  EXPECT_EQ(groups, expected);  // {a, b} has two outputs: c reads a as well
}

TEST(FusionTest, UnderstandsWhyMergedAttentionLost) {
  // Recorded on this chip: merged with its combination, attention took the token from 50.2 to 6.2 tok/s.
  const auto machine = FusionMachineOf(FindRow("rx-7900-xtx"), 1);
  ASSERT_TRUE(machine) << machine.error().Message();
  const std::vector<FusionIdea> ideas = FusionIdeas(RecordedLayer(), *machine, 40, 2e7, 0.001);
  const FusionIdea& merged = IdeaOf(ideas, {"attention", "combine"});
  EXPECT_EQ(merged.pieces_before, 256);
  EXPECT_EQ(merged.pieces_after, 40);
  EXPECT_LT(merged.gb_s_after, merged.gb_s_before / 2);
  EXPECT_GT(merged.bound_ns, 0);
  EXPECT_LT(merged.predicted_ns, 0);
  EXPECT_TRUE(merged.closed.starts_with("less concurrency: 40 pieces instead of 256")) << merged.closed;
}

TEST(FusionTest, AnEpilogueOfAProductLosesNothing) {
  const auto machine = FusionMachineOf(FindRow("rx-7900-xtx"), 1);
  ASSERT_TRUE(machine);
  const std::vector<FusionIdea> ideas = FusionIdeas(RecordedLayer(), *machine, 40, 2e7, 0.001);
  const FusionIdea& epilogue = IdeaOf(ideas, {"attn_output", "attn_residual"});
  EXPECT_EQ(epilogue.closed, "");
  EXPECT_NEAR(epilogue.predicted_ns, epilogue.bound_ns, 1);
}

TEST(FusionTest, WhatNeedsAllOfAStreamIsNotPossible) {
  const auto machine = FusionMachineOf(FindRow("rx-7900-xtx"), 1);
  ASSERT_TRUE(machine);
  const std::vector<FusionNode> nodes = {{"gate", 100, 1e6, 400, {}}, {"down", 100, 1e6, 400, {{0, Need::kAll}}}};
  const std::vector<FusionIdea> ideas = FusionIdeas(nodes, *machine, 1, 1e3, 0.01);
  ASSERT_EQ(ideas.size(), 1U);
  EXPECT_EQ(ideas[0].closed, "down needs all of gate: a barrier across the chip");
}

TEST(FusionTest, ClosesWhatCantReachTheSmallestClaim) {
  const auto machine = FusionMachineOf(FindRow("rx-7900-xtx"), 1);
  ASSERT_TRUE(machine);
  const std::vector<FusionIdea> ideas = FusionIdeas(RecordedLayer(), *machine, 40, 1e9, 0.01);
  for (const FusionIdea& idea : ideas) EXPECT_FALSE(idea.closed.empty());
  EXPECT_TRUE(IdeaOf(ideas, {"attn_output", "attn_residual"}).closed.starts_with("at most "));
}

TEST(FusionTest, AChipWithoutAMemoryRateIsRefused) {
  chip::Chip chip;
  chip.backend = "cpu";
  const auto machine = FusionMachineOf(chip, 2);
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kBoundNoBandwidth);
}

}  // namespace
}  // namespace boltbeam::search
