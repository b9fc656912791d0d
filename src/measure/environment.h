// What the machine was doing while something was timed: recorded with every measurement, and judged.
//
// Taken before and after; the differences tell what spoiled a measurement. A sample is never left out because of its
// value, only because of a cause that is named here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace boltbeam::measure {

/// Counters that only grow. A counter that this machine does not have stays 0.
struct Counters {
  std::uint64_t throttled_periods = 0;  // of the cgroup's quota
  std::uint64_t throttled_us = 0;
  std::uint64_t steal_ticks = 0;           // of all CPUs, in 1/100 s
  std::uint64_t involuntary_switches = 0;  // of this process's threads
  std::uint64_t major_faults = 0;
};

/// root: "" for this machine; a test puts a folder with proc/ and sys/ there.
Counters ReadCounters(const std::string& root = {});

struct Environment {
  std::string cpu_model;
  std::string kernel;
  std::string governor;  // empty when the machine does not say
  std::string huge_pages;
  std::string boltbeam_version;
  std::vector<int> affinity;
  double quota_cpus = 0;  // 0: no quota
  double load_1m = 0;
  std::string date;  // UTC, ISO 8601
};

Environment ReadEnvironment(const std::string& root = {});

/// What happened between two readings, by cause, in words fit for a person: "stopped by the CPU quota for 12 ms".
/// Empty when nothing that spoils a measurement did. wall_ns is the time between the readings.
std::vector<std::string> SpoilingCauses(const Counters& before, const Counters& after, double wall_ns);

/// UTC now, as 2026-11-29T13:06:45Z.
std::string UtcNow();

}  // namespace boltbeam::measure
