// Measures this machine: read bandwidth against the number of threads, what its caches deliver, sums per second, and
// the cost of a dispatch and of a barrier. A figure that can't be true is refused, not rounded.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "runtime/code.h"

namespace boltbeam::measure {

struct MeasureHooks {
  std::function<void(std::uint32_t done, std::uint32_t total)> progress;
  std::function<bool()> cancelled;
};

/// Facts in the order in which a person reads them; cpus: where threads are pinned, in this order.
Result<std::vector<chip::Fact>> MeasureChip(const chip::Chip& machine, runtime::KernelCache& kernels,
                                            const std::vector<int>& cpus, const MeasureHooks& hooks = {});

// The refusals, as functions of numbers. All give kMeasurementImpossible.

/// A rate above one that bounds it, by more than the band (relative).
Result<void> RefuseAbove(std::string_view what, double rate, std::string_view bound_name, double bound, double band,
                         std::string_view unit);
/// More operations per second than a core could do at 7 GHz with four vector units.
Result<void> RefuseImpossibleRate(std::string_view what, double ops_per_s, std::uint32_t threads, std::uint16_t lanes,
                                  double ops_per_lane);
/// A loop shorter than 50 dispatches: what was timed is the dispatch.
/// A load that takes no longer than one of a cache was one.
Result<void> RefuseCachedLatency(double latency_ns);
Result<void> RefuseShortLoop(std::string_view what, double loop_ns, double dispatch_ns);

/// Thread counts at which the bandwidth is measured: 1, 2, 4, ... and all.
std::vector<std::uint32_t> ThreadCounts(std::uint32_t usable);

}  // namespace boltbeam::measure
