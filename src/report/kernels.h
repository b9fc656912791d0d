// What `kernel list`, `kernel show` and `kernel check` show.
#pragma once

#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "engine/engine.h"
#include "engine/kernel_check.h"
#include "engine/route_bounds.h"
#include "report/form.h"

namespace boltbeam::report {

/// One kernel of a plan, with all the steps that run it.
struct PlannedKernel {
  const kernel::Program* program = nullptr;
  std::string id, part, format;
  std::uint64_t steps = 0;         // of one token; 0: only while a prompt is read
  std::uint64_t stored_bytes = 0;  // read of rearranged weights by one token, all steps together
};

/// The kernels in the order in which a token meets them; those of prompts alone come last.
std::vector<PlannedKernel> KernelsOf(const engine::Engine& engine);

/// The kernels, and the fusions that a plan may use with what each can save at most.
std::string KernelListReport(const engine::Engine& engine, const std::vector<engine::RouteBound>& routes, Form form);
std::string KernelCheckReport(const std::vector<engine::KernelCheck>& checks, Form form);

enum class Stage { kProgram, kIr, kAssembly, kAll };

/// A kernel's description, its loop program, LLVM IR and machine code.
Result<std::string> KernelText(const PlannedKernel& kernel, const codegen::Target& target, Stage stage);

}  // namespace boltbeam::report
