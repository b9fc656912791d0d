#include <algorithm>

#include "engine/plan.h"
#include "kernel/program_cost.h"
#include "runtime/thread_pool.h"

namespace boltbeam::engine {
namespace {

/// One phase of one thread, without what its steps stream.
PlanCost CostOfPhase(const Plan& plan, std::uint32_t first, std::uint32_t last, std::uint32_t thread,
                     std::uint32_t threads) {
  PlanCost cost;
  for (std::uint32_t index = first; index < last; ++index) {
    const Step& step = plan.steps[index];
    const runtime::Range range =
        step.shares.empty() ? step.work.RangeOf(step.work.Count({}), thread, threads) : step.shares[thread];
    if (range.begin == range.end) continue;
    ++cost.calls;
    if (step.info.streams) continue;
    const kernel::ProgramCost program = kernel::CostOf(*step.program, range.begin, range.end);
    cost.bytes += program.bytes;
    cost.instructions += program.instructions;
  }
  return cost;
}

}  // namespace

PlanCost CostOf(const Plan& plan, std::uint32_t threads) {
  PlanCost total;
  total.barriers = threads > 1 ? static_cast<double>(plan.phase_end.size()) : 0;
  std::uint32_t first = 0;
  for (const std::uint32_t last : plan.phase_end) {
    PlanCost most;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      const PlanCost one = CostOfPhase(plan, first, last, thread, threads);
      most.calls = std::max(most.calls, one.calls);
      most.bytes = std::max(most.bytes, one.bytes);
      most.instructions = std::max(most.instructions, one.instructions);
    }
    total.calls += most.calls;
    total.bytes += most.bytes;
    total.instructions += most.instructions;
    first = last;
  }
  return total;
}

}  // namespace boltbeam::engine
