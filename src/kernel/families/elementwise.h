// Small kernels over activation columns: normalisation, quantisation, the gate, a dequantised row, the largest logit.
//
// Work items are columns unless said otherwise. Columns of f32 lie `stride` bytes apart. `lanes` is the widest vector;
// a length that it does not divide gets a narrower one.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "formats/format.h"
#include "kernel/families/gate.h"
#include "kernel/program.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

struct VectorShape {
  std::uint64_t elements = 0;
  std::uint64_t in_stride = 0, out_stride = 0;  // bytes from column to column
  std::uint16_t lanes = 8;
  std::uint32_t delay_turns = 0;  // of a norm, for the judge's own tests: LateZero. 0 in every plan
};

/// y = x / sqrt(mean(x^2) + epsilon) * w. Buffers: input, weight, output.
Program BuildRmsNorm(const VectorShape& shape, float epsilon);

/// Symmetric 8-bit codes with one f32 scale a block (largest magnitude / 127), rounded to nearest even, and the sums
/// that the layout asks for. Buffers: input, output.
Program BuildQuantize(const VectorShape& shape, const ActivationLayout& layout);

/// stream += x / sqrt(mean(x^2) + epsilon) * w. in_stride is of the input, out_stride of the stream. Buffers: input,
/// weight, stream (read and written).
Program BuildRmsNormAdd(const VectorShape& shape, float epsilon);

/// stream += x. in_stride is of the input, out_stride of the stream. Buffers: input, stream (read and written).
Program BuildAdd(const VectorShape& shape);

/// function(gate) * up. Buffers: gate, up, output.
Program BuildGate(const VectorShape& shape, GateFunction function);

/// One row of a table as it lies in the file, as f32, times `scale`. Buffers: source (rows of the file's row bytes),
/// output.
Result<Program> BuildDequantizeRow(const formats::Format& coded, const VectorShape& shape, float scale = 1);

/// The largest logit of each run of kArgmaxChunk, the first of equals. Work items are runs. Buffers: logits, partial
/// (8 bytes a run: value, index).
inline constexpr std::uint64_t kArgmaxChunk = 2048;
Program BuildArgmaxPartial(std::uint64_t elements, std::uint16_t lanes);
/// One work item: the best of the runs, the lowest of equals. Buffers: partial, result (i32). With `resets` the runs
/// are as if nothing had been found yet afterwards.
Program BuildArgmaxFinal(std::uint64_t runs, bool resets = false);

}  // namespace boltbeam::kernel
