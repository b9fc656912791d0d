#include "search/flash_tile.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace boltbeam::search {
namespace {

using nlohmann::json;

/// The recorded geometry search: facts, knobs, examples and refusals (tests/data/search/flash-geometry.json).
const json& Golden() {
  static const json kGolden = json::parse(std::ifstream(BOLTBEAM_TEST_DATA "/search/flash-geometry.json"));
  return kGolden;
}

FlashShape Shape() {
  const json& shape = Golden().at("shape");
  return {shape.at("Hq").get<std::uint32_t>(), shape.at("Hkv").get<std::uint32_t>(),
          shape.at("Hd").get<std::uint32_t>(), shape.at("MAXC").get<std::uint64_t>()};
}

chip::Chip ChipWith(const std::string& without = "") {
  const json& facts = Golden().at("facts");
  chip::Chip chip;
  chip.id = "a-gpu";
  chip.backend = "cuda";
  const auto add = [&](const char* name, const char* recorded) {
    chip::Fact fact;
    fact.name = name;
    fact.value = facts.at(recorded).get<double>();
    fact.provenance = chip::Provenance::kDetected;
    if (without != recorded) chip.facts.push_back(fact);
  };
  add("subgroup_lanes", "subgroup");
  add("lanes_per_workgroup_max", "max_threads");
  add("workgroup_memory_optin_bytes", "max_local_bytes");
  add("workgroup_memory_reserved_bytes", "reserved_local_bytes");
  return chip;
}

FlashTile TileFrom(const json& knobs) {
  FlashTile tile;
  tile.split_count = knobs.value("split_count", tile.split_count);
  tile.lane_width = knobs.value("lane_width", tile.lane_width);
  tile.token_block = knobs.value("token_block", tile.token_block);
  tile.stage_width = knobs.value("stage_width", tile.stage_width);
  tile.dot_pair_width = knobs.value("dot_pair_width", tile.dot_pair_width);
  tile.reduce_inline = knobs.value("reduce_structure", "staged") == "inline";
  tile.warps = knobs.value("warps", std::int64_t{0});
  return tile;
}

TEST(FlashTileTest, HasTheRecordedSpace) {
  const KnobSpace space = FlashSpace(Shape(), ChipWith());
  EXPECT_EQ(space.free_product, Golden().at("product").get<std::uint64_t>());
  EXPECT_EQ(space.points.size(), Golden().at("counts").at("legal").get<std::size_t>());
  for (const auto& [name, values] : Golden().at("knobs").items()) {
    const auto knob = std::ranges::find(space.knobs, name, &SpaceKnob::name);
    ASSERT_NE(knob, space.knobs.end()) << name;
    json have = json::array();
    for (const std::int64_t value : knob->values) {
      have.push_back(knob->words.empty() ? json(value) : json(knob->ValueText(value)));
    }
    EXPECT_EQ(have, values) << name;
  }
}

TEST(FlashTileTest, DerivesWhatWasRecorded) {
  for (const json& example : Golden().at("examples")) {
    const FlashTile tile = TileFrom(example.at("knobs"));
    const json& expected = example.at("expected");
    EXPECT_TRUE(FlashReasons(tile, Shape(), ChipWith()).empty());
    EXPECT_EQ(tile.Threads(Shape()), expected.at("threads").get<std::int64_t>());
    EXPECT_EQ(tile.Stages(Shape()), expected.at("stages").get<std::int64_t>());
    EXPECT_EQ(tile.ReduceStages(), expected.at("reduce_stages").get<std::int64_t>());
    EXPECT_EQ(tile.TileBytes(Shape()), expected.at("tile_local_bytes").get<std::int64_t>());
    EXPECT_EQ(tile.CombineBytes(), expected.at("combine_local_bytes").get<std::int64_t>());
    EXPECT_EQ(RecordedFlashScore(tile, Shape(), ChipWith()), expected.at("static_score").get<std::int64_t>());
  }
}

TEST(FlashTileTest, RefusesWhatWasRecordedAsIllegal) {
  for (const json& example : Golden().at("negative_examples")) {
    const json& change = example.at("change");
    const std::vector<Rejected> reasons =
        FlashReasons(TileFrom(change), Shape(), ChipWith(change.value("remove_fact", "")));
    ASSERT_FALSE(reasons.empty()) << example.at("name");
    std::string name = reasons.front().reason;
    std::string expected = example.at("expected_reject").get<std::string>();
    std::ranges::replace(expected, '_', '-');
    if (expected == "missing-fact:subgroup") expected = "missing-fact:subgroup_lanes";
    EXPECT_EQ(name, expected) << example.at("name");
  }
}

TEST(FlashTileTest, AMissingFactTurnsEveryTileAwayByItsName) {
  const KnobSpace space = FlashSpace(Shape(), ChipWith("max_threads"));
  EXPECT_TRUE(space.points.empty());
  std::uint64_t rejected = 0;
  for (const Rejected& one : space.rejected) {
    EXPECT_EQ(one.reason, "missing-fact:lanes_per_workgroup_max");
    rejected += one.points;
  }
  EXPECT_EQ(rejected, space.free_product);
}

}  // namespace
}  // namespace boltbeam::search
