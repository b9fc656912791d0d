// Loop program -> LLVM -> machine code.
//
// LLVM costs a process 15 to 23 ms and 50 MB, so it lives in a plugin of its own (libboltbeam-llvm.so,
// src/codegen/llvm) that is opened the first time something has to be compiled. No header of this module shows a type
// of LLVM's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "kernel/program.h"

namespace boltbeam::codegen {

/// What machine code is generated for: chosen by declared facts, never by a chip's name.
struct Target {
  std::string triple;                 // "x86_64-unknown-linux-gnu"
  std::vector<std::string> features;  // LLVM's names: avx2, fma, f16c, avx512f, avx512vnni, ...
};

/// The target that a chip's declared features describe; a chip without any gives the plain one of its architecture.
Target TargetFor(const chip::Chip& chip);

/// A relocatable ELF object with one function `kernel`: void(void* const* buffers, int64 begin, int64 end).
Result<std::string> Compile(const kernel::Program& program, const Target& target);

enum class Listing : std::uint8_t { kLlvmIr, kAssembly };
Result<std::string> EmitListing(const kernel::Program& program, const Target& target, Listing listing);

/// Opens the plugin now; kCodegenMissing says why it can't be.
Result<void> LoadPlugin();

/// The LLVM release of the plugin, part of every cache key ("19.1.7"); does not open the plugin.
std::string CompilerVersion();

}  // namespace boltbeam::codegen
