#include "fault_system.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

namespace boltbeam {
namespace {

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

[[noreturn]] void TakeMemory(int cpu) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
  constexpr std::size_t kHalf = std::size_t{128} << 20;
  std::vector<char> memory(2 * kHalf, 1);
  for (std::size_t from = 0;; from = kHalf - from)
    std::memcpy(memory.data() + kHalf - from, memory.data() + from, kHalf);
}

}  // namespace

MemoryHog::MemoryHog(int cpu) : process_(fork()) {
  if (process_ == 0) TakeMemory(cpu);
}
MemoryHog::~MemoryHog() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}
void MemoryHog::Stop() const { kill(process_, SIGSTOP); }
void MemoryHog::Continue() const { kill(process_, SIGCONT); }

std::optional<QuotaGroup> QuotaGroup::Create(double cpus) {
  constexpr int kPeriodUs = 20000;
  const int quota_us = static_cast<int>(cpus * kPeriodUs);
  for (const bool first_version : {true, false}) {
    const std::string parent = first_version ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup";
    const std::string folder = fmt::format("{}/boltbeam_faults_{}", parent, getpid());
    std::error_code error;
    if (!std::filesystem::create_directory(folder, error)) continue;
    QuotaGroup group(parent, folder);
    const bool is_set = first_version ? Write(folder + "/cpu.cfs_period_us", std::to_string(kPeriodUs)) &&
                                            Write(folder + "/cpu.cfs_quota_us", std::to_string(quota_us))
                                      : Write(folder + "/cpu.max", fmt::format("{} {}", quota_us, kPeriodUs));
    if (is_set) return group;
  }
  return std::nullopt;
}
QuotaGroup::QuotaGroup(QuotaGroup&& other) noexcept
    : parent_(std::move(other.parent_)), folder_(std::exchange(other.folder_, {})) {}
QuotaGroup::~QuotaGroup() {
  if (folder_.empty()) return;
  Leave();
  std::error_code error;
  std::filesystem::remove(folder_, error);
}
void QuotaGroup::Enter() const { Write(folder_ + "/cgroup.procs", std::to_string(getpid())); }
void QuotaGroup::Leave() const { Write(parent_ + "/cgroup.procs", std::to_string(getpid())); }

NoPriority::NoPriority() : policy_(sched_getscheduler(0)) {
  sched_getparam(0, &parameters_);
  const sched_param none{};
  sched_setscheduler(0, SCHED_OTHER, &none);
}
NoPriority::~NoPriority() { sched_setscheduler(0, policy_, &parameters_); }

}  // namespace boltbeam
