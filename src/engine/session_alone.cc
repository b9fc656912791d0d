// A step by itself: what it takes apart from the token that it belongs to.
#include <fmt/format.h>

#include <algorithm>

#include "base/ticks.h"
#include "engine/session.h"

namespace boltbeam::engine {

Result<AloneTimes> MachineSession::RunAlone(const Alone& alone) {
  const Plan& plan = m_.decode;
  if (alone.step >= plan.steps.size()) {
    return Fail(Code::kUsage, "step", fmt::format("{}", alone.step),
                fmt::format("0 to {}: those of the token", plan.steps.size() - 1));
  }
  const std::uint32_t threads = m_.pool->size();
  AloneTimes times;
  times.ticks.assign(alone.runs, std::vector<std::uint64_t>(threads));
  times.shares.assign(threads, 1);
  m_.pool->Run([&](std::uint32_t thread) {
    const Call& call = plan.calls[thread][alone.step];
    const runtime::Range own = call.RangeOf(pass_, thread, threads);
    runtime::Range range = own;
    if (alone.most_items > 0) range.end = std::min(range.end, range.begin + alone.most_items);
    if (own.end > own.begin) {
      times.shares[thread] = static_cast<double>(range.end - range.begin) / static_cast<double>(own.end - own.begin);
    }
    for (std::vector<std::uint64_t>& run : times.ticks) {
      if (alone.before) alone.before(thread);
      m_.pool->Sync();
      const std::uint64_t begin = base::Ticks();
      RunRange(call, range);
      run[thread] = base::Ticks() - begin;
      m_.pool->Sync();
    }
  });
  return times;
}

}  // namespace boltbeam::engine
