// Pinned threads that run phases of kernels together.
//
// Every thread of the pool runs the same function with its own number; between phases they meet at a barrier. The
// calling thread is number 0. Workers spin for a while before they sleep, because the next token comes at once; a
// sleeping worker costs a futex call to wake.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"

namespace boltbeam::runtime {

/// While one lives, waiting threads of all pools sleep at once: whoever looks at what they use of their CPUs then sees
/// no waiting.
class NoSpinning {
 public:
  NoSpinning();
  ~NoSpinning();
  NoSpinning(const NoSpinning&) = delete;
  NoSpinning& operator=(const NoSpinning&) = delete;
};

/// A sense-reversing barrier: spins, then sleeps.
class Barrier {
 public:
  explicit Barrier(std::uint32_t threads) : threads_(threads) {}
  void Wait();

 private:
  const std::uint32_t threads_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
};

/// Keeps the calling thread on one CPU. Pins nest: inside a longer one on the same CPU a shorter one costs nothing, and
/// the last to end, in whatever order, gives the thread its CPUs back.
class Pin {
 public:
  explicit Pin(int cpu);
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  int outer_cpu_;
  bool failed_ = false;
};

class ThreadPool {
 public:
  /// One thread per entry of cpus, pinned to it; the caller becomes thread 0 and is pinned while Run goes on.
  /// kThreads when a thread can't be started or pinned.
  static Result<std::unique_ptr<ThreadPool>> Create(const std::vector<int>& cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(cpus_.size()); }
  /// Runs task(thread) on every thread and returns when all are done.
  void Run(const std::function<void(std::uint32_t)>& task);
  /// The CPU of thread 0. Pinning the caller for each run costs tens of microseconds: who runs often holds a Pin to it.
  [[nodiscard]] int first_cpu() const { return cpus_.front(); }
  /// For tasks: waits until every thread of the pool is here.
  void Sync() { barrier_.Wait(); }

 private:
  explicit ThreadPool(std::vector<int> cpus);
  void Work(std::uint32_t thread);

  std::vector<int> cpus_;
  Barrier barrier_;
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // counts runs
  alignas(64) std::atomic<std::uint32_t> finished_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> pin_failed_{false};
  const std::function<void(std::uint32_t)>* task_ = nullptr;
  std::vector<std::thread> workers_;
};

/// The part [begin, end) of `items` that a thread owns: contiguous, and equal to within one item.
struct Range {
  std::int64_t begin = 0, end = 0;
};
inline Range Share(std::int64_t items, std::uint32_t thread, std::uint32_t threads) {
  return {items * thread / threads, items * (thread + 1) / threads};
}

}  // namespace boltbeam::runtime
