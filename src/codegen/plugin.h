// The seam between the program and the plugin that knows LLVM: one function, no type of LLVM's. Both sides are built
// by the same compiler in one build, so they may share the standard library's types.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/codegen.h"
#include "kernel/program.h"

namespace boltbeam::codegen {

enum class Output : std::uint8_t { kObject, kLlvmIr, kAssembly };

/// True: `text` is the output; false: `text` says why not.
using PluginFunction = bool (*)(const kernel::Program* program, const Target* target, Output output, std::string* text);

inline constexpr char kPluginFunctionName[] = "boltbeam_llvm_generate_v1";
inline constexpr char kPluginFileName[] = "libboltbeam-llvm.so";

}  // namespace boltbeam::codegen
