// The kernels of a plan that read no table of weights: their machine code against the interpreter, bit for bit.
#pragma once

#include "base/error.h"
#include "kernel/program.h"
#include "runtime/code.h"

namespace boltbeam::engine {

/// Runs the first work item of a program both ways on the same buffers, with one token at position 3 as the pass; the
/// share of written 32-bit words that differ. What the interpreter refuses comes back as its error.
Result<double> DifferingShare(const kernel::Program& program, runtime::KernelFunction function);

}  // namespace boltbeam::engine
