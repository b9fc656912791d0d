// GEMV and its form for several columns: a rearranged table of weights times activations.
//
// Work items are row groups. For every group the activation columns are taken in tiles of geometry.columns, so that the
// weights of a group are unpacked once per tile and read from memory once for all tiles.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "kernel/families/gate.h"
#include "kernel/families/gemv_epilogue.h"
#include "kernel/program.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

struct GemvShape {
  std::uint64_t rows = 0, cols = 0;
  Epilogue epilogue = Epilogue::kStore;
  /// For the account's own tests: turns of a useless loop before every row group. 0 in every plan.
  std::uint32_t delay_turns = 0;
  /// Bytes from one row group to the next; 0: they lie one behind the other.
  std::uint64_t group_bytes = 0;
  /// Every work item is a group of one table with the group of another behind it: function(first) * second is stored.
  std::optional<GateFunction> gate = {};
  /// The largest result of all work items, and its row (the first of equals), take the place of what `best` holds (f32,
  /// i32) where they are better; the results themselves are stored only where kStateKeepLogits says so. For one column.
  bool best = false;
};

/// f32 of one output column lie `OutputStride(rows)` bytes apart: rows padded to whole cache lines.
inline std::uint64_t OutputStride(std::uint64_t rows) { return (rows + 15) / 16 * 64; }

/// Whether what the last group writes beyond the rows stays within that padding: results of columns lie side by side.
inline bool HasRoomForGroups(std::uint64_t rows, std::uint64_t group_rows) {
  return (rows + group_rows - 1) / group_rows * group_rows * sizeof(float) <= OutputStride(rows);
}

/// Buffers: weights, activations, output (written), bias (kBias only), best (shape.best only, read and written), state
/// (several columns: kStateTiles; shape.best: kStateKeepLogits).
Result<Program> BuildGemv(const WeightLayout& layout, const GemvGeometry& geometry, const GemvShape& shape);

}  // namespace boltbeam::kernel
