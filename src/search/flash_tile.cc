#include "search/flash_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

namespace boltbeam::search {
namespace {

constexpr std::int64_t kHalfBytes = 2;  // of a staged key or value
constexpr std::string_view kInvalid = "invalid-flash-geometry";

bool IsPowerOfTwo(std::int64_t value) { return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value)); }

FlashTile TileOf(const Setting& setting) {
  return {.split_count = setting["split_count"],
          .lane_width = setting["lane_width"],
          .token_block = setting["token_block"],
          .stage_width = setting["stage_width"],
          .reduce_inline = setting["reduce_structure"] == 1,
          .dot_pair_width = setting["dot_pair_width"]};
}

/// What the description alone forbids, in the order in which it is asked.
std::string Shapeless(const FlashTile& tile, const FlashShape& shape) {
  if (!IsPowerOfTwo(tile.lane_width)) return fmt::format("{} lanes are no power of two", tile.lane_width);
  if (const std::int64_t pairs = tile.lane_width * tile.dot_pair_width; pairs < 1 || shape.head_dim % pairs != 0) {
    return fmt::format("heads of {} are not whole in {} lanes of {}", shape.head_dim, tile.lane_width,
                       tile.dot_pair_width);
  }
  if (tile.score_group != 0 && tile.score_group != tile.lane_width) {
    return fmt::format("{} lanes share a score, of {}", tile.score_group, tile.lane_width);
  }
  const std::int64_t queries = tile.QueryGroup(shape);
  if (queries < 1 || queries > shape.Group()) {
    return fmt::format("{} query heads together, a KV head has {}", queries, shape.Group());
  }
  if (tile.Warps(shape) < queries) return fmt::format("{} subgroups for {} heads", tile.Warps(shape), queries);
  if (!IsPowerOfTwo(tile.stage_width) || tile.stage_width > 8) {
    return fmt::format("{} values staged at once: 1, 2, 4 or 8", tile.stage_width);
  }
  // Else another way of staging would be taken in silence.
  const std::int64_t values = tile.token_block * shape.head_dim / std::max<std::int64_t>(1, tile.Threads(shape));
  if (values % tile.stage_width != 0) {
    return fmt::format("{} values of a lane, staged by {}", values, tile.stage_width);
  }
  return "";
}

std::string MemoryFact(const chip::Chip& chip) {
  return chip.Get("workgroup_memory_optin_bytes") ? "workgroup_memory_optin_bytes" : "workgroup_memory_bytes";
}

/// Rules over a tile that `tile_of` makes of a setting.
std::vector<SpaceRule> Rules(const FlashShape& shape, const chip::Chip& chip,
                             const std::function<FlashTile(const Setting&)>& tile_of) {
  const std::vector<std::string> all{"lane_width", "token_block", "stage_width", "dot_pair_width"};
  const std::string limit = MemoryFact(chip);
  const std::string reserved = "workgroup_memory_reserved_bytes";
  std::vector<std::string> memory_facts{limit};
  if (chip.Get(reserved)) memory_facts.push_back(reserved);
  return {
      {std::string(kInvalid), all, {}, [=](const Setting& s) { return Shapeless(tile_of(s), shape); }, {}},
      {"lane-width-not-in-subgroup",
       {"lane_width"},
       {"subgroup_lanes"},
       [=](const Setting& s) {
         const auto subgroup = static_cast<std::int64_t>(s.Fact("subgroup_lanes"));
         const std::int64_t lanes = tile_of(s).lane_width;
         return lanes > 0 && subgroup % lanes == 0 ? "" : fmt::format("{} lanes in subgroups of {}", lanes, subgroup);
       },
       {}},
      {"over-threads",
       {"lane_width"},
       {"lanes_per_workgroup_max"},
       [=](const Setting& s) {
         const std::int64_t threads = tile_of(s).Threads(shape);
         const auto most = static_cast<std::int64_t>(s.Fact("lanes_per_workgroup_max"));
         return threads <= most ? "" : fmt::format("{} lanes in a workgroup, {} allowed", threads, most);
       },
       {}},
      {"over-local-memory",
       {"token_block", "split_count"},
       memory_facts,
       [=](const Setting& s) {
         const FlashTile tile = tile_of(s);
         const std::int64_t bytes = std::max(tile.TileBytes(shape), tile.CombineBytes());  // launches of their own
         const auto kept = static_cast<std::int64_t>(s.Fact(reserved));
         const auto most = static_cast<std::int64_t>(s.Fact(limit));
         return bytes + kept <= most ? "" : fmt::format("{} bytes and {} kept, {} there", bytes, kept, most);
       },
       {}},
  };
}

std::vector<std::int64_t> PowersOfTwo(std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = least; value <= most; value *= 2) values.push_back(value);
  return values;
}

}  // namespace

std::int64_t FlashTile::QueryGroup(const FlashShape& shape) const {
  return query_group != 0 ? query_group : shape.Group();
}

std::int64_t FlashTile::Warps(const FlashShape& shape) const { return warps != 0 ? warps : QueryGroup(shape); }

std::int64_t FlashTile::Threads(const FlashShape& shape) const { return lane_width * Warps(shape); }

std::int64_t FlashTile::Stages(const FlashShape& shape) const {
  const std::int64_t threads = Threads(shape);
  return (token_block * shape.head_dim + threads - 1) / threads;
}

std::int64_t FlashTile::ReduceStages() const {
  if (reduce_inline) return 1;
  const std::int64_t group = score_group != 0 ? score_group : lane_width;
  return std::max<std::int64_t>(1, std::bit_width(static_cast<std::uint64_t>(group - 1)));
}

std::int64_t FlashTile::TileBytes(const FlashShape& shape) const {
  return token_block * shape.head_dim * kHalfBytes * (stages_keys_and_values ? 2 : 1);
}

std::vector<Rejected> FlashReasons(const FlashTile& tile, const FlashShape& shape, const chip::Chip& chip) {
  return ReasonsAgainst({}, {}, Rules(shape, chip, [&](const Setting&) { return tile; }), chip);
}

KnobSpace FlashSpace(const FlashShape& shape, const chip::Chip& chip) {
  // A subgroup or a part of it scores a head: as wide as one load of every lane fills a head, and halves of that. An
  // undeclared subgroup leaves the widest to be turned away by that fact's name.
  const auto subgroup = static_cast<std::int64_t>(chip.Get("subgroup_lanes").value_or(32));
  const std::vector<SpaceKnob> knobs = {
      {"lane_width", "lanes that score a position of a head", {subgroup / 4, subgroup / 2, subgroup}, {}},
      {"token_block", "positions staged together", PowersOfTwo(8, 32), {}},
      {"stage_width", "values that a lane stages at once", PowersOfTwo(1, 8), {}},
      {"dot_pair_width", "halves multiplied by one instruction", {2, 4}, {}},
      {"reduce_structure", "scores reduced in stages, or in place", {0, 1}, {"staged", "inline"}},
      {"split_count", "parts of the context that run side by side", {32, 48, 64}, {}},
  };
  return BuildSpace(knobs, Rules(shape, chip, TileOf), chip);
}

FlashTile FlashTileOf(const KnobSpace& space, const KnobPoint& point) {
  return {.split_count = space.ValueOf(point, "split_count"),
          .lane_width = space.ValueOf(point, "lane_width"),
          .token_block = space.ValueOf(point, "token_block"),
          .stage_width = space.ValueOf(point, "stage_width"),
          .reduce_inline = space.ValueOf(point, "reduce_structure") == 1,
          .dot_pair_width = space.ValueOf(point, "dot_pair_width")};
}

FlashShape FlashShapeOf(const model::Model& model, std::uint64_t context) {
  const model::HyperParameters& hyper = model.hyper();
  return {hyper.heads, hyper.kv_heads, hyper.head_dim, context};
}

std::int64_t RecordedFlashScore(const FlashTile& tile, const FlashShape& shape, const chip::Chip& chip) {
  const std::int64_t group = tile.score_group != 0 ? tile.score_group : tile.lane_width;
  const auto subgroup = static_cast<std::int64_t>(chip.Get("subgroup_lanes").value_or(0));
  const auto memory = static_cast<std::int64_t>(chip.Get(MemoryFact(chip)).value_or(0));
  const std::int64_t turns = tile.Threads(shape) / tile.stage_width;
  return std::min(group, subgroup) - tile.ReduceStages() + (2 * tile.TileBytes(shape) <= memory ? 2 : 1) +
         (tile.stages_keys_and_values ? 1 : 0) -
         std::max<std::int64_t>(0, std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(0, turns - 1))));
}

}  // namespace boltbeam::search
