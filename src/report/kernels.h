// What `kernel list`, `kernel show` and `kernel check` show.
#pragma once

#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "engine/engine.h"
#include "engine/kernel_check.h"
#include "engine/route_bounds.h"
#include "report/form.h"
#include "report/kernel_costs.h"

namespace boltbeam::report {

/// The kernels in the order in which a token meets them; those of prompts alone come last.
std::vector<PlannedKernel> KernelsOf(const engine::Engine& engine);

/// The kernels, and the fusions that a plan may use.
std::string KernelListReport(const engine::Engine& engine, const measure::RouteList& routes,
                             const std::vector<KernelCost>& costs, Form form);
std::string KernelCheckReport(const std::vector<engine::KernelCheck>& checks, Form form);

enum class Stage { kProgram, kIr, kAssembly, kAll };

/// A kernel's description, its loop program, LLVM IR and machine code.
Result<std::string> KernelText(const PlannedKernel& kernel, const codegen::Target& target, Stage stage);

}  // namespace boltbeam::report
