#include "judge/thread_meter.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace boltbeam::judge {
namespace {

// What a thread uses between the end of a timer and its sleep, or before it finds that it was woken for nothing.
constexpr double kFallsAsleepNs = 20'000;
constexpr std::uint32_t kSpans = 2;  // in which a side's thread works: one that belongs to nobody may wake in one

double CpuNs(clockid_t clock, double otherwise = 0) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return otherwise;
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// A thread's own clock, because the process's is only brought up to date at a tick for threads that are running.
clockid_t ClockOf(int thread) {
  constexpr int kOfThread = 6;  // the kernel's CPUCLOCK_SCHED of one thread, as pthread_getcpuclockid makes it
  return (~static_cast<clockid_t>(thread)) * 8 + kOfThread;
}

// CPU time of each other thread so far, by its number.
std::map<int, double> OtherThreadsNs() {
  constexpr double kGone = -1;
  std::map<int, double> times;
  const int own = gettid();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const int thread = std::atoi(entry.path().filename().c_str());
    const double ns = thread == own ? kGone : CpuNs(ClockOf(thread), kGone);
    if (ns >= 0) times[thread] = ns;
  }
  return times;
}

}  // namespace

ThreadMeter::ThreadMeter() { Skip(); }

double ThreadMeter::Thread::Charge(std::size_t side) {
  if (!IsChargedTo(side)) return 0;
  const double owed = ns - timed_ns - charged_ns[side];
  charged_ns[side] += owed;
  return std::max(0.0, owed);
}

// What it used after the last reading is in the process's clock alone.
void ThreadMeter::Bury(const Thread& thread) {
  for (std::size_t side = 0; side < 2; ++side) ended_charge_ns_[side] += Thread(thread).Charge(side);
}

void ThreadMeter::Read(std::optional<std::size_t> newcomers) {
  const std::map<int, double> alive = OtherThreadsNs();
  double alive_ns = 0, known_ns = 0;
  std::array<bool, 2> lost{};
  for (auto it = threads_.begin(); it != threads_.end();) {
    if (alive.contains(it->first)) {
      ++it;
      continue;
    }
    known_ns += it->second.ns;
    for (std::size_t side = 0; side < 2; ++side) lost[side] = lost[side] || it->second.IsChargedTo(side);
    Bury(it->second);
    it = threads_.erase(it);
  }
  for (const auto& [number, ns] : alive) {
    alive_ns += ns;
    const auto [it, is_new] = threads_.try_emplace(number);
    it->second.ns = ns;
    if (is_new && newcomers) it->second.works_for[*newcomers] = true;
  }
  const double ended_ns = CpuNs(CLOCK_PROCESS_CPUTIME_ID) - CpuNs(CLOCK_THREAD_CPUTIME_ID) - alive_ns;
  const double last_ns = std::max(0.0, ended_ns - ended_ns_ - known_ns);
  ended_ns_ = std::max(ended_ns_, ended_ns);
  // Of threads that nobody saw alive, those who were asked about last are the side's.
  if (newcomers && !lost[0] && !lost[1]) lost[*newcomers] = true;
  for (std::size_t side = 0; side < 2; ++side) ended_charge_ns_[side] += lost[side] ? last_ns : 0;
}

void ThreadMeter::Learn(bool is_b) {
  const std::size_t side = is_b ? 1 : 0;
  const std::map<int, Thread> before = threads_;
  Read(side);
  for (auto& [number, thread] : threads_) {
    const auto found = before.find(number);
    const double last_ns = found == before.end() ? 0 : found->second.ns;
    if (thread.ns - last_ns > kFallsAsleepNs && ++thread.spans[side] == kSpans) thread.works_for[side] = true;
    thread.charged_ns.fill(thread.ns - thread.timed_ns);
  }
  ended_charge_ns_ = {};
}

void ThreadMeter::Skip() {
  Read(std::nullopt);
  for (auto& [number, thread] : threads_) {
    if (!thread.works_for[0] && !thread.works_for[1]) thread.charged_ns.fill(thread.ns - thread.timed_ns);
  }
}

void ThreadMeter::BeginTimer(bool is_b) {
  for (auto& [number, thread] : threads_) {
    if (thread.works_for[is_b ? 1 : 0]) thread.begin_ns = CpuNs(ClockOf(number), thread.ns);
  }
}

void ThreadMeter::EndTimer(bool is_b) {
  for (auto& [number, thread] : threads_) {
    if (thread.works_for[is_b ? 1 : 0]) thread.timed_ns += CpuNs(ClockOf(number), thread.begin_ns) - thread.begin_ns;
  }
}

double ThreadMeter::Outside(bool is_b) {
  const std::size_t side = is_b ? 1 : 0;
  Read(side);
  double outside_ns = std::exchange(ended_charge_ns_[side], 0);
  for (auto& [number, thread] : threads_) outside_ns += std::max(0.0, thread.Charge(side) - kFallsAsleepNs);
  return outside_ns;
}

}  // namespace boltbeam::judge
