// Faults that the system makes: a process that takes the memory's rate, a control group with a quota of CPU time.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <optional>
#include <string>

namespace boltbeam {

/// A process on one CPU that copies more memory than caches hold, from its construction on.
class MemoryHog {
 public:
  explicit MemoryHog(int cpu);
  ~MemoryHog();
  MemoryHog(const MemoryHog&) = delete;
  MemoryHog& operator=(const MemoryHog&) = delete;
  void Stop() const;
  void Continue() const;

 private:
  pid_t process_ = -1;
};

/// A control group (version 1 or 2) of this process's own that allows so many CPUs.
class QuotaGroup {
 public:
  /// nullopt where no group can be made.
  static std::optional<QuotaGroup> Create(double cpus);
  QuotaGroup(QuotaGroup&& other) noexcept;
  QuotaGroup& operator=(QuotaGroup&&) = delete;
  ~QuotaGroup();
  void Enter() const;
  void Leave() const;

 private:
  QuotaGroup(std::string parent, std::string folder) : parent_(std::move(parent)), folder_(std::move(folder)) {}
  std::string parent_, folder_;
};

/// The calling thread, and those that it starts, without real-time priority while the object lives.
class NoPriority {
 public:
  NoPriority();
  ~NoPriority();
  NoPriority(const NoPriority&) = delete;
  NoPriority& operator=(const NoPriority&) = delete;

 private:
  int policy_;
  sched_param parameters_{};
};

}  // namespace boltbeam
