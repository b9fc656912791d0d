// Test support: a pool of two threads whose second one waits, and what that costs.
#pragma once

#include <pthread.h>

#include <ctime>
#include <memory>
#include <vector>

#include "runtime/thread_pool.h"

namespace boltbeam::runtime {

class WaitingWorker {
 public:
  explicit WaitingWorker(const std::vector<int>& cpus)
      : pool_(ThreadPool::Create({cpus.front(), cpus.back()}).value()) {
    pool_->Run([this](std::uint32_t thread) {
      if (thread == 1) pthread_getcpuclockid(pthread_self(), &clock_);
    });
  }
  /// It has work, and waits from now on: with all its spins, because runs that follow at once are worth them.
  void Begin() {
    constexpr int kRuns = 12;
    for (int i = 0; i < kRuns; ++i) pool_->Run([](std::uint32_t) {});
    begin_ns_ = CpuNs();
  }
  /// What it has used of its CPU since then.
  [[nodiscard]] double UsedNs() const { return CpuNs() - begin_ns_; }
  /// The same of a while in which nothing came.
  double UsedNsInANap() const {
    constexpr timespec kNap{0, 2'000'000};
    nanosleep(&kNap, nullptr);
    return UsedNs();
  }

 private:
  [[nodiscard]] double CpuNs() const {
    timespec time{};
    clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  }
  std::unique_ptr<ThreadPool> pool_;
  clockid_t clock_{};
  double begin_ns_ = 0;
};

}  // namespace boltbeam::runtime
