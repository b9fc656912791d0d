// The tile of a split flash-decode kernel on a GPU: workgroups of lanes score a block of cached positions, a second
// kernel combines the splits. Its geometry, what makes one legal, and what follows from it. Nothing here runs: the
// space is reproduced for chips that this build has no kernels for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chip/facts.h"
#include "model/model.h"
#include "search/knob_space.h"

namespace boltbeam::search {

struct FlashShape {
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  std::uint64_t context = 0;  // positions cached

  [[nodiscard]] std::uint32_t Group() const { return heads / kv_heads; }  // query heads of a KV head
};

/// A tile: the six searched knobs and what an installed kernel fixes.
struct FlashTile {
  std::int64_t split_count = 48, lane_width = 32, token_block = 16, stage_width = 1;
  bool reduce_inline = false;  // the scores are reduced lane by lane where they are, not in stages
  std::int64_t dot_pair_width = 2;
  std::int64_t query_group = 0;  // query heads of a workgroup; 0: all of a KV head
  std::int64_t warps = 0;        // subgroups of lane_width lanes; 0: one for each query head
  std::int64_t score_group = 0;  // lanes that share a score; 0: lane_width. Nothing else is generated
  bool stages_keys_and_values = true;

  // What follows, for a shape. Bytes are of a workgroup's local memory.
  [[nodiscard]] std::int64_t QueryGroup(const FlashShape& shape) const;
  [[nodiscard]] std::int64_t Warps(const FlashShape& shape) const;
  [[nodiscard]] std::int64_t Threads(const FlashShape& shape) const;
  [[nodiscard]] std::int64_t Stages(const FlashShape& shape) const;
  [[nodiscard]] std::int64_t ReduceStages() const;
  [[nodiscard]] std::int64_t TileBytes(const FlashShape& shape) const;
  [[nodiscard]] std::int64_t CombineBytes() const { return 4 * split_count; }
};

/// Why a tile is not legal on a chip, the first reason first; none: it is. The chip's facts are subgroup_lanes,
/// lanes_per_workgroup_max, workgroup_memory_optin_bytes (else workgroup_memory_bytes) and, of those, what the system
/// keeps: workgroup_memory_reserved_bytes.
std::vector<Rejected> FlashReasons(const FlashTile& tile, const FlashShape& shape, const chip::Chip& chip);

/// Every tile of the six knobs that is legal, and why the others are not.
KnobSpace FlashSpace(const FlashShape& shape, const chip::Chip& chip);
FlashTile FlashTileOf(const KnobSpace& space, const KnobPoint& point);

FlashShape FlashShapeOf(const model::Model& model, std::uint64_t context);

/// The recorded static score, which carries no order among the tiles that were timed: kept to show that.
std::int64_t RecordedFlashScore(const FlashTile& tile, const FlashShape& shape, const chip::Chip& chip);

}  // namespace boltbeam::search
