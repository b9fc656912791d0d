// What unpacking costs a CPU beside the bytes: instructions of the default product, counted in its own loop program.
#pragma once

#include "base/error.h"
#include "formats/format.h"
#include "kernel/geometry.h"

namespace boltbeam::kernel {

/// Vector instructions that the default product of one column (decoding) spends on one weight: every operation on lanes
/// in the innermost loop, but no loads, which have units of their own and are often operands of what uses them.
/// kKernelIllegal when no product of this format is generated.
Result<double> InstructionsPerWeight(const formats::Format& format, const VectorFacts& facts);
/// The same for a geometry of one column.
Result<double> InstructionsPerWeight(const formats::Format& format, const GemvGeometry& geometry);

}  // namespace boltbeam::kernel
