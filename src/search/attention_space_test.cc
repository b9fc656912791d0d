#include "search/attention_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "chip/test_facts.h"
#include "engine/attention_choice.h"
#include "kernel/geometry.h"

namespace boltbeam::search {
namespace {

chip::Chip CpuWith(std::vector<std::string> features) {
  chip::Chip chip = chip::MeasuredTestCpu();
  chip.features = std::move(features);
  chip::AddMeasured(chip, {{"l1d_bytes", 32768}});
  return chip;
}

AttentionPart PartOf(std::uint32_t head_dim, bool is_coded) {
  AttentionPart part;
  part.heads = 16;
  part.kv_heads = 8;
  part.head_dim = head_dim;
  part.has_key_codes = part.has_value_codes = is_coded;
  return part;
}

/// Of every point of the free product the engine says the same as the space, but for what only the search leaves out:
/// points that are another's, and scores beyond the cache.
TEST(AttentionSpaceTest, WhatItProposesIsWhatTheEngineRuns) {
  for (const chip::Chip& chip : {CpuWith({"avx2", "fma", "f16c"}), CpuWith(chip::MeasuredTestCpu().features)}) {
    const kernel::VectorFacts facts = kernel::VectorFactsOf(chip);
    for (const AttentionPart& part : {PartOf(64, false), PartOf(64, true), PartOf(36, false)}) {
      const KnobSpace space = AttentionSpace(part, chip);
      std::set<std::string> legal;
      for (const KnobPoint& point : space.points) legal.insert(space.Text(point));
      EXPECT_FALSE(legal.empty());
      kernel::AttentionShape shape;
      shape.head_dim = part.head_dim;
      if (part.has_key_codes) shape.key = shape.value = {kernel::Memory::kU8, part.head_dim};
      for (const std::int64_t lanes : space.knobs[0].values) {
        for (const std::int64_t chunk : space.knobs[1].values) {
          for (const std::int64_t dot : space.knobs[2].values) {
            const std::string text = space.Text({{lanes, chunk, dot}});
            const std::string fault = engine::AttentionFault(*engine::TurnAttention(text, shape), facts);
            const bool is_searched = dot == 0 || part.has_key_codes;
            EXPECT_EQ(legal.contains(text), fault.empty() && is_searched) << text << ": " << fault;
          }
        }
      }
    }
  }
}

TEST(AttentionSpaceTest, EveryBranchIsTurnedAwayByItsReason) {
  const KnobSpace space = AttentionSpace(PartOf(64, true), CpuWith({"avx2", "fma", "f16c"}));
  const auto points = [&](const std::string& reason) {
    std::uint64_t sum = 0;
    for (const Rejected& one : space.rejected) sum += one.reason == reason ? one.points : 0;
    return sum;
  };
  EXPECT_EQ(points("instruction"), 14U + 2 * 6);  // registers of 16 lanes; dot4 with the six chunks of either width
  EXPECT_EQ(points("overflow"), 2U * 2);          // chunks of 1024
  EXPECT_EQ(space.points.size(), 2U * 6);
  EXPECT_EQ(AttentionSpace(PartOf(64, false), CpuWith({})).points.size(), 0U);
}

}  // namespace
}  // namespace boltbeam::search
