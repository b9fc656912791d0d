// Runs a loop program slowly and plainly: the reference of what the machine code must do.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "kernel/program.h"

namespace boltbeam::kernel {

/// A buffer of the program, with its size: every access is checked (kKernelIllegal names the first that is outside).
struct BufferView {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

Result<void> Interpret(const Program& program, std::span<const BufferView> buffers, std::int64_t begin,
                       std::int64_t end);

}  // namespace boltbeam::kernel
