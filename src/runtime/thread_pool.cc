#include "runtime/thread_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <system_error>

namespace boltbeam::runtime {
namespace {

// A quarter of a millisecond on current CPUs: longer than any phase's imbalance, shorter than a person notices as load.
constexpr int kMostSpins = 20000;
constexpr int kLeastSpins = 64;

// How many live. Every spin reads it: nothing that anyone writes shares its line.
struct alignas(64) {
  std::atomic<int> count{0};
} no_spinning;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// Waits until value differs from `old`. A wait that outlasts its spins halves the thread's next ones, any other
/// doubles them: where other programs keep the CPUs busy, a thread that burns its share by spinning is run less often.
void AwaitChange(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  thread_local int most = kMostSpins;
  int spin = 0;
  for (; spin < most && no_spinning.count.load(std::memory_order_relaxed) == 0; ++spin) {
    if (value.load(std::memory_order_acquire) != old) {
      most = std::min(kMostSpins, most * 2);
      return;
    }
    Pause();
  }
  if (spin == most) most = std::max(kLeastSpins, most / 2);
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

bool SetCpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

constexpr int kNoCpu = -1;

/// The pins of a thread.
struct Pinned {
  int cpu = kNoCpu;
  int pins = 0;
  bool is_known = false;
  cpu_set_t before = {};  // when is_known
};
thread_local Pinned pinned;

}  // namespace

NoSpinning::NoSpinning() { ++no_spinning.count; }
NoSpinning::~NoSpinning() { --no_spinning.count; }

Pin::Pin(int cpu) : outer_cpu_(pinned.cpu) {
  if (pinned.pins++ == 0) {
    pinned.is_known = pthread_getaffinity_np(pthread_self(), sizeof(pinned.before), &pinned.before) == 0;
  }
  if (pinned.cpu != cpu) failed_ = !SetCpu(cpu);
  pinned.cpu = cpu;
}

Pin::~Pin() {
  if (--pinned.pins == 0) {
    if (pinned.is_known) pthread_setaffinity_np(pthread_self(), sizeof(pinned.before), &pinned.before);
    pinned.cpu = kNoCpu;
  } else if (outer_cpu_ != kNoCpu && outer_cpu_ != pinned.cpu) {
    SetCpu(outer_cpu_);
    pinned.cpu = outer_cpu_;
  }
}

void Barrier::Wait() {
  if (threads_ == 1) return;
  const std::uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    generation_.notify_all();
    return;
  }
  AwaitChange(generation_, generation);
}

ThreadPool::ThreadPool(std::vector<int> cpus)
    : cpus_(std::move(cpus)), barrier_(static_cast<std::uint32_t>(cpus_.size())) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::Create(const std::vector<int>& cpus) {
  if (cpus.empty()) return Fail(Code::kThreads, "threads", "no CPU to run on", "at least one usable CPU");
  std::unique_ptr<ThreadPool> pool(new ThreadPool(cpus));
  try {
    for (std::uint32_t thread = 1; thread < pool->size(); ++thread) {
      pool->workers_.emplace_back([p = pool.get(), thread] { p->Work(thread); });
    }
  } catch (const std::system_error& error) {
    return Fail(Code::kThreads, "threads", error.what(), "fewer threads (-t)");
  }
  pool->Run([](std::uint32_t) {});  // every worker has pinned itself when this returns
  if (pool->pin_failed_.load()) {
    return Fail(Code::kThreads, "threads", fmt::format("a thread can't be pinned to one of {} CPUs", cpus.size()),
                "CPUs of this process's affinity mask");
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Work(std::uint32_t thread) {
  if (!SetCpu(cpus_[thread])) pin_failed_.store(true);
  std::uint32_t seen = 0;
  while (true) {
    AwaitChange(epoch_, seen);
    seen = epoch_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    (*task_)(thread);
    finished_.fetch_add(1, std::memory_order_release);
    finished_.notify_one();
  }
}

void ThreadPool::Run(const std::function<void(std::uint32_t)>& task) {
  const Pin pin(cpus_[0]);
  if (pin.failed()) pin_failed_.store(true);
  task_ = &task;
  finished_.store(0, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  task(0);
  const auto others = static_cast<std::uint32_t>(workers_.size());
  for (std::uint32_t done = finished_.load(std::memory_order_acquire); done != others;
       done = finished_.load(std::memory_order_acquire)) {
    AwaitChange(finished_, done);
  }
}

}  // namespace boltbeam::runtime
