// GEMV and its form for several columns: a rearranged table of weights times activations.
//
// Work items are row groups. For every group the activation columns are taken in tiles of geometry.columns, so that the
// weights of a group are unpacked once per tile and read from memory once for all tiles.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "kernel/families/gemv_epilogue.h"
#include "kernel/program.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

struct GemvShape {
  std::uint64_t rows = 0, cols = 0;
  Epilogue epilogue = Epilogue::kStore;
  /// For the account's own tests: turns of a useless loop before every row group. 0 in every plan.
  std::uint32_t delay_turns = 0;
};

/// f32 of one output column lie `OutputStride(rows)` bytes apart: rows padded to whole cache lines.
inline std::uint64_t OutputStride(std::uint64_t rows) { return (rows + 15) / 16 * 64; }

/// Whether what the last group writes beyond the rows stays within that padding: results of columns lie side by side.
inline bool HasRoomForGroups(std::uint64_t rows, std::uint64_t group_rows) {
  return (rows + group_rows - 1) / group_rows * group_rows * sizeof(float) <= OutputStride(rows);
}

/// Buffers: weights, activations, output (written), bias (kBias only), state (columns > 1 only: kStateTiles).
Result<Program> BuildGemv(const WeightLayout& layout, const GemvGeometry& geometry, const GemvShape& shape);

}  // namespace boltbeam::kernel
