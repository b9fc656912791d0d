// What the machine was doing while something was timed: recorded with every measurement, and judged.
//
// Taken before and after; the differences tell what spoiled a measurement. A sample is never left out because of its
// value, only because of a cause that is named here.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace boltbeam::measure {

/// Counters that only grow. A counter that this machine does not have stays 0.
struct Counters {
  std::uint64_t throttled_periods = 0;  // of the cgroup's quota
  std::uint64_t throttled_us = 0;
  std::uint64_t steal_ticks = 0;           // of all CPUs, in 1/100 s
  std::uint64_t involuntary_switches = 0;  // of this process's threads
  std::uint64_t major_faults = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t migrations = 0;         // of this process's threads, from one CPU to another
  std::uint64_t thermal_throttles = 0;  // of all CPUs
  std::uint64_t waited_ns = 0;          // that this process's threads were ready to run and did not
  bool waits_known = false;             // the kernel keeps waited_ns
  std::uint64_t busy_ticks = 0;         // of all CPUs, computing for whom ever, in 1/100 s
  std::uint64_t own_cpu_us = 0;         // of this process's threads
};

/// What happened between two readings; a counter that went back, as those of threads that ended, gives 0.
Counters operator-(const Counters& after, const Counters& before);
Counters& operator+=(Counters& sum, const Counters& more);
/// CPUs that other processes kept busy between two readings.
double OtherCpus(const Counters& before, const Counters& after, double wall_ns);

/// Looks once where the counters are, so that reading them between windows costs little.
class CounterReader {
 public:
  /// root: "" for this machine; a test puts a folder with proc/ and sys/ there.
  explicit CounterReader(std::string root = {});
  [[nodiscard]] Counters Read() const;

 private:
  std::string root_;
  std::string quota_path_;  // a cpu.stat with nr_throttled; empty when there is none
  std::vector<std::string> thermal_paths_;
};

Counters ReadCounters(const std::string& root = {});

/// What can spoil a sample. The names are those of records.
enum class Cause : std::uint8_t {
  kQuota,        // stopped by the cgroup's quota
  kSteal,        // CPUs taken by the hypervisor
  kInterrupted,  // threads that were ready did not run: other programs had their CPUs
  kDiskReads,    // pages read from disk
  kPageFaults,   // pages that had to be made
  kMigrated,     // threads moved to another CPU
  kThermal,      // clocks lowered because of heat
  kCount,
};
using Causes = std::bitset<static_cast<std::size_t>(Cause::kCount)>;
std::string_view CauseName(Cause cause);
/// One thread that waits counts like all of them: a token ends with its last thread.
Causes CausesBetween(const Counters& before, const Counters& after, double wall_ns);

/// Steal is counted in hundredths of a second, longer than a window: what a tick says is said of the time since the one
/// before it. Begins at the first call.
class StealWatch {
 public:
  /// Whether ticks came since the last call, and make up more than a hundredth of the time in which they gathered.
  bool Took(const Counters& now, double now_ns);

 private:
  std::uint64_t ticks_ = 0;
  double since_ns_ = -1;
};

/// Waits until every other thread of this process sleeps, a few milliseconds at most; false when one did not. A thread
/// that spins for its next work holds a CPU that what is timed next may need.
bool AwaitSleepingThreads(const std::string& root = {});

struct Environment {
  std::string cpu_model;
  std::string kernel;
  std::string governor;  // empty when the machine does not say
  std::string huge_pages;
  std::string boltbeam_version;
  std::vector<int> affinity;
  double quota_cpus = 0;  // 0: no quota
  double load_1m = 0;
  double pressure_percent =
      0;             // of the last 10 s in which some thread waited for a CPU; 0 where the kernel says nothing
  double mhz = 0;    // of the first CPU
  std::string date;  // UTC, ISO 8601
  std::vector<std::string> doubts;  // what speaks against measuring here and now, in words
};

Environment ReadEnvironment(const std::string& root = {});

/// What happened between two readings, by cause, in words fit for a person: "stopped by the CPU quota for 12 ms".
/// Empty when nothing that spoils a measurement did. wall_ns is the time between the readings.
std::vector<std::string> SpoilingCauses(const Counters& before, const Counters& after, double wall_ns);

/// UTC now, as 2026-11-29T13:06:45Z.
std::string UtcNow();

}  // namespace boltbeam::measure
