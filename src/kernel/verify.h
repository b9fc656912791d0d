// Is a program well formed? Checked before it is interpreted or lowered, so that neither has to.
#pragma once

#include "base/error.h"
#include "kernel/program.h"

namespace boltbeam::kernel {

/// Types, operands, single definition before use, scopes, buffers and tables; kKernelIllegal names the instruction.
/// What depends on values (bounds of an access, a division by 0) is the interpreter's to find.
Result<void> Verify(const Program& program);

}  // namespace boltbeam::kernel
