#include "measure/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace boltbeam::measure {
namespace {

constexpr std::uint64_t kCalibrationNs = 20'000'000;
// Two halves of the calibration must agree this well; the counters of a machine that was paused in between do not.
constexpr double kRateTolerance = 1e-3;
constexpr int kAttempts = 5;

struct Reading {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0;
};

// The counter read between two counter reads: of several attempts the tightest bracket, so that being descheduled in
// the middle does no harm.
Reading ReadBoth() {
  Reading best;
  std::uint64_t width = std::numeric_limits<std::uint64_t>::max();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t before = base::Ticks();
    const std::uint64_t ns = base::MonotonicNs();
    const std::uint64_t after = base::Ticks();
    if (after - before < width) {
      width = after - before;
      best = {before + width / 2, ns};
    }
  }
  return best;
}

Reading WaitUntil(std::uint64_t ns) {
  while (base::MonotonicNs() < ns) {
  }
  return ReadBoth();
}

void MeasureReads(Clock& clock) {
  constexpr int kReads = 2000;
  std::uint64_t step = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t begin = base::Ticks();
  std::uint64_t last = begin;
  for (int i = 0; i < kReads; ++i) {
    const std::uint64_t now = base::Ticks();
    if (now > last) step = std::min(step, now - last);
    last = now;
  }
  clock.read_cost_ns = clock.ToNs(last - begin) / kReads;
  clock.resolution_ns = clock.ToNs(step);
}

Result<Clock> Calibrate() {
  Clock clock;
  clock.source = base::TicksAreCounter() ? "tsc" : "clock_gettime";
  if (base::TicksAreCounter()) {
    const Reading first = ReadBoth();
    const Reading middle = WaitUntil(first.ns + kCalibrationNs / 2);
    const Reading last = WaitUntil(first.ns + kCalibrationNs);
    BOLTBEAM_ASSIGN(const double half, NsPerTick(first.ticks, first.ns, middle.ticks, middle.ns));
    BOLTBEAM_ASSIGN(clock.ns_per_tick, NsPerTick(first.ticks, first.ns, last.ticks, last.ns));
    if (std::abs(half / clock.ns_per_tick - 1) > kRateTolerance) {
      return Fail(Code::kClockUnsteady, "time stamp counter",
                  fmt::format("{:.6f} ns per tick, then {:.6f}", half, clock.ns_per_tick),
                  "one rate; run again when the machine is quieter");
    }
  }
  MeasureReads(clock);
  return clock;
}

}  // namespace

Result<double> NsPerTick(std::uint64_t ticks_before, std::uint64_t ns_before, std::uint64_t ticks_after,
                         std::uint64_t ns_after) {
  constexpr double kFastest = 0.05, kSlowest = 100;  // ns per tick: 20 GHz to 10 MHz
  if (ticks_after <= ticks_before || ns_after <= ns_before) {
    return Fail(Code::kClockUnsteady, "time stamp counter", "a clock stood still or ran backwards",
                "two clocks that both advance");
  }
  const double rate = static_cast<double>(ns_after - ns_before) / static_cast<double>(ticks_after - ticks_before);
  if (rate < kFastest || rate > kSlowest) {
    return Fail(Code::kClockUnsteady, "time stamp counter", fmt::format("{:g} ns per tick", rate),
                fmt::format("{} to {} ns per tick", kFastest, kSlowest));
  }
  return rate;
}

Result<Clock> GetClock() {
  static const Result<Clock> kClock = Calibrate();
  return kClock;
}

}  // namespace boltbeam::measure
