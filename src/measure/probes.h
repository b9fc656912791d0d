// Measures what a chip can do, with generated kernels on pinned threads. One pass is one sample; whoever compares
// interleaves passes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "measure/clock.h"
#include "measure/probe_programs.h"
#include "runtime/code.h"
#include "runtime/memory.h"
#include "runtime/thread_pool.h"

namespace boltbeam::measure {

/// Bytes that are cold when they are read again: sixteen times the last-level caches, of an eighth of the memory at
/// most, and four times one of them at least. A cache that keeps a part of what streams through it (an insertion policy
/// against thrashing) holds a quarter of a buffer of four times its size: on a Zen 5 such a buffer read 8 to 25 %
/// faster than the memory.
std::uint64_t ColdBytes(const chip::Chip& machine);

/// Reads a buffer of data that can't be compressed, each thread its own contiguous share.
class StreamProbe {
 public:
  /// A buffer of at least `bytes` (rounded up), filled by the pool's threads; a kernel for every shape that suits the
  /// machine's vectors.
  static Result<StreamProbe> Create(runtime::KernelCache& kernels, const chip::Chip& machine, runtime::ThreadPool& pool,
                                    std::uint64_t bytes);

  [[nodiscard]] const std::vector<StreamShape>& shapes() const { return shapes_; }
  [[nodiscard]] std::uint64_t bytes() const { return buffer_.bytes(); }

  /// One pass over the first `bytes` of the buffer, `repeats` times, by every thread of the pool: GB/s. 0: over the
  /// next piece of the buffer, 128 MiB or 16 a thread at most, from where the last such pass ended; after the last
  /// piece comes the first.
  double Pass(runtime::ThreadPool& pool, std::size_t shape, std::uint64_t bytes = 0, std::uint32_t repeats = 1);

  /// Nanoseconds from the first thread's coming to the last one's at a barrier, where each has read `bytes` of its own
  /// before it: each sample the mean of a hundred barriers.
  std::vector<double> ArrivalSpreads(runtime::ThreadPool& pool, std::size_t shape, std::uint64_t bytes,
                                     std::uint32_t samples);

  /// One thread's share of the buffer with the first shape, untimed: a load on the memory, and a sweep of the caches.
  void ReadGrains(std::uint32_t thread, std::uint32_t threads);

  /// All shapes, the one with the highest median over `rounds` interleaved passes first.
  std::vector<std::size_t> FastestShapes(runtime::ThreadPool& pool, std::uint32_t rounds, std::uint64_t bytes = 0,
                                         std::uint32_t repeats = 1);

 private:
  StreamProbe() = default;
  Clock clock_;
  std::vector<StreamShape> shapes_;
  std::vector<runtime::KernelFunction> functions_;
  runtime::HugeBuffer buffer_;
  runtime::HugeBuffer out_;  // one line a thread
  std::uint32_t piece_ = 0;  // that the next pass reads
};

/// Arithmetic in registers.
class RateProbe {
 public:
  enum class Kind : std::uint8_t { kFma, kDot, kSimple, kMaddBytes, kMaddHalves, kSignedDot };
  /// lanes: of the vectors, in 32 bits; 0: the widest.
  static Result<RateProbe> Create(runtime::KernelCache& kernels, const chip::Chip& machine, Kind kind,
                                  std::uint16_t lanes = 0);

  /// Shapes differ in their number of accumulators, chains of sums that do not wait for each other.
  [[nodiscard]] std::size_t shapes() const { return functions_.size(); }
  [[nodiscard]] std::uint32_t Accumulators(std::size_t shape) const { return accumulators_[shape]; }
  [[nodiscard]] std::string Name(std::size_t shape) const;
  /// Of one thread; a multiply-add counts as two. Of kSimple: instructions.
  [[nodiscard]] double OperationsPerIteration(std::size_t shape) const;
  /// Operations per second of all threads of the pool over `iterations` of the loop on each.
  double Pass(runtime::ThreadPool& pool, std::size_t shape, std::int64_t iterations);
  /// Iterations that take at least this long on the fastest core there is. Not found by trying: on a busy machine an
  /// interrupted try seems long enough.
  [[nodiscard]] std::int64_t IterationsFor(std::size_t shape, double ns) const;

 private:
  RateProbe() = default;
  Clock clock_;
  Kind kind_ = Kind::kFma;
  std::uint16_t lanes_ = 8;
  std::vector<std::uint32_t> accumulators_;
  std::vector<runtime::KernelFunction> functions_;
  runtime::HugeBuffer in_, out_;
};

/// Nanoseconds of one dispatch of an empty kernel to all threads of the pool and back; of `count`, each a sample.
Result<std::vector<double>> DispatchSamples(runtime::KernelCache& kernels, runtime::ThreadPool& pool,
                                            std::uint32_t count);
/// Nanoseconds of one barrier among all threads of the pool, each sample the mean of a hundred.
Result<std::vector<double>> BarrierSamples(runtime::ThreadPool& pool, std::uint32_t count);

/// The widest vectors that the chip declares, in 32-bit lanes.
std::uint16_t VectorLanes(const chip::Chip& machine);
/// The last-level cache, or what a chip that does not say is taken to have: 32 MiB.
std::uint64_t LastLevelCacheBytes(const chip::Chip& machine);

/// A loop must last at least this many dispatches, or what is timed is the dispatch.
inline constexpr double kLeastDispatches = 50;

}  // namespace boltbeam::measure
