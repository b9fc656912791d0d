// Turns ticks of the steady counter into nanoseconds.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/ticks.h"

namespace boltbeam::measure {

/// One calibration of the counter against the system's monotonic clock.
struct Clock {
  double ns_per_tick = 1;
  double read_cost_ns = 0;   // of one Ticks()
  double resolution_ns = 1;  // smallest step seen between two reads that differ
  const char* source = "";   // "tsc" or "clock_gettime"

  [[nodiscard]] double ToNs(std::uint64_t ticks) const { return static_cast<double>(ticks) * ns_per_tick; }
};

/// The process's clock: calibrated over at least 20 ms at the first call, the same one afterwards.
/// kClockUnsteady when the counter and the system's clock disagree about the rate.
Result<Clock> GetClock();

/// The rate that two pairs of readings give; kClockUnsteady when either did not advance, or when the counter's rate is
/// not one that a processor can have.
Result<double> NsPerTick(std::uint64_t ticks_before, std::uint64_t ns_before, std::uint64_t ticks_after,
                         std::uint64_t ns_after);

}  // namespace boltbeam::measure
