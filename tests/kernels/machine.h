// Where the kernel tests run machine code. Each test program links one of: this machine (native_machine.cc), or arm64
// under an emulator (arm64_machine.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "codegen/codegen.h"

namespace boltbeam::kernel_tests {

using Bytes = std::vector<std::byte>;

/// Bytes before and behind every buffer that a kernel must leave alone.
inline constexpr std::size_t kGuardBytes = 256;

/// One lowering: a chip with no more than the features of an instruction set.
struct Way {
  std::string name;  // of the instruction set
  chip::Chip chip;
  codegen::Target target;
  bool has_fma = false;
};

/// Every instruction set that code can be run for here, least first.
const std::vector<Way>& AllWays();

/// Loads an object and calls its kernel with pointers to the buffers behind their guards.
Result<void> Execute(const Way& way, const std::string& object, std::vector<Bytes>& guarded, std::int64_t begin,
                     std::int64_t end);

}  // namespace boltbeam::kernel_tests
