// Measures memory beyond its reading rate: copying, writing, and the latency of one load, alone and while other threads
// read as fast as they can.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "measure/clock.h"
#include "measure/probes.h"
#include "runtime/code.h"
#include "runtime/memory.h"
#include "runtime/thread_pool.h"

namespace boltbeam::measure {

class MemoryProbe {
 public:
  /// Works in `bytes` of memory of its own (rounded up; at least four times the last-level cache for figures of
  /// memory).
  static Result<MemoryProbe> Create(runtime::KernelCache& kernels, const chip::Chip& machine, runtime::ThreadPool& pool,
                                    std::uint64_t bytes);

  /// GB/s of one half of the memory copied to the other: bytes read plus bytes written, as STREAM counts.
  double Copy(runtime::ThreadPool& pool);
  /// GB/s written. The stores go through the caches, which read a line before they change it: that traffic is not
  /// counted.
  double Write(runtime::ThreadPool& pool);
  /// Nanoseconds of one load, each of which needs the one before: along a random cycle through all cache lines, from
  /// where the last call ended. With a
  /// load the pool's other threads stream `stream` meanwhile. Needs PrepareChase; Copy and Write destroy the cycle.
  double Latency(runtime::ThreadPool& pool, StreamProbe* stream = nullptr);
  /// Lays out the cycle (Sattolo, 1986).
  void PrepareChase(std::uint64_t seed);

 private:
  MemoryProbe() = default;
  double Pass(runtime::ThreadPool& pool, runtime::KernelFunction function, std::uint64_t bytes, double counted);

  Clock clock_;
  runtime::KernelFunction copy_ = nullptr, write_ = nullptr, chase_ = nullptr;
  runtime::HugeBuffer memory_;
  std::uint64_t place_ = 0;  // on the cycle, where the last chase ended: what it walked may still lie in a cache
};

}  // namespace boltbeam::measure
