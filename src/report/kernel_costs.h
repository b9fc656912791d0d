// What a kernel of a plan costs: by its listing, by its bytes, and, when it was timed, by the clock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chip/facts.h"
#include "codegen/codegen.h"
#include "kernel/program.h"
#include "measure/kernel_times.h"

namespace boltbeam::report {

/// One kernel of a plan, with all the steps that run it.
struct PlannedKernel {
  const kernel::Program* program = nullptr;
  std::string id, part, format;
  std::uint64_t steps = 0;         // of one token; 0: only while a prompt is read
  std::uint64_t stored_bytes = 0;  // read of rearranged weights by one token, all steps together
  bool streams = false;            // from the memory: small vectors stay in the caches
};

struct KernelCost {
  std::optional<double> floor_ns;  // of a token: the stored bytes over the memory's bandwidth, or the cache's
  std::optional<double> vector_registers, spills;
  std::optional<double> instructions_per_byte;  // of products: the loop's instructions over the weights it reads
  std::optional<double> now_ns, cycles_per_byte;
};

/// In the order of the kernels. `times` may be empty.
Result<std::vector<KernelCost>> CostsOf(const std::vector<PlannedKernel>& kernels, const chip::Chip& machine,
                                        const codegen::Target& target,
                                        const std::map<std::string, measure::KernelTime>& times);

/// Names as in JSON, and values.
std::vector<std::pair<std::string, std::optional<double>>> CostFields(const KernelCost& cost);

/// A table for a terminal, and what its columns mean.
std::string CostText(const std::vector<PlannedKernel>& kernels, const std::vector<KernelCost>& costs);

}  // namespace boltbeam::report
