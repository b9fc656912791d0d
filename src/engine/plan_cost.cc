#include <algorithm>

#include "engine/plan.h"
#include "kernel/program_cost.h"
#include "runtime/thread_pool.h"

namespace boltbeam::engine {
namespace {

/// Work items of all threads.
double ItemsOf(const Step& step, std::uint32_t threads) {
  std::int64_t items = 0;
  for (const runtime::Range& share : step.shares) items += share.end - share.begin;
  if (step.shares.empty()) items = step.work.Count({}) * (step.work.local ? threads : 1);
  return static_cast<double>(std::max<std::int64_t>(1, items));
}

/// One phase of one thread.
PlanCost CostOfPhase(const Plan& plan, std::uint32_t first, std::uint32_t last, std::uint32_t thread,
                     std::uint32_t threads) {
  PlanCost cost;
  for (std::uint32_t index = first; index < last; ++index) {
    const Step& step = plan.steps[index];
    const runtime::Range range =
        step.shares.empty() ? step.work.RangeOf(step.work.Count({}), thread, threads) : step.shares[thread];
    if (range.begin == range.end) continue;
    ++cost.calls;
    if (step.info.streams) {
      const double items = ItemsOf(step, threads);
      cost.streamed +=
          static_cast<double>(step.info.stored_bytes) * static_cast<double>(range.end - range.begin) / items;
      continue;
    }
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
      most.streamed = std::max(most.streamed, one.streamed);
    }
    total.calls += most.calls;
    total.bytes += most.bytes;
    total.instructions += most.instructions;
    total.streamed += most.streamed;
    first = last;
  }
  return total;
}

}  // namespace boltbeam::engine
