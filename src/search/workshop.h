// Candidates made ready to be timed: compiled, checked, and told apart by their machine code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "measure/cold_products.h"
#include "measure/probes.h"
#include "runtime/code.h"
#include "runtime/thread_pool.h"
#include "search/candidate.h"
#include "search/halving.h"
#include "search/product_gate.h"

namespace boltbeam::search {

/// A candidate whose kernel is right.
struct Contender {
  kernel::GemvGeometry geometry;
  std::string name;                                 // CandidateName
  std::string code;                                 // hash of its machine code
  std::optional<codegen::StreamFacts> stream = {};  // how it reads the table; where somebody looked
  measure::ColdProduct product;
};

/// One point on its way: a contender, or why it is none.
struct Made {
  Contender contender;
  enum class State : std::uint8_t { kReady, kDuplicate, kWrong, kFailed } state = State::kReady;
  std::string why;  // of a duplicate the name of the one that it equals
};

/// Compiles the points in parallel and checks those whose machine code is no other's, of `known` neither. A point of
/// `known` itself is ready. rows are of the part's table.
Result<std::vector<Made>> MakeContenders(const Part& part, const std::vector<kernel::GemvGeometry>& points,
                                         ProductGate& gate, runtime::KernelCache& kernels, unsigned threads,
                                         const std::vector<Contender>& known = {});

/// The machine that candidates are timed on: threads, cold memory, a probe of the memory's rate.
class TimingBench {
 public:
  /// For tables of at most so many rows and columns, with so many threads.
  static Result<std::unique_ptr<TimingBench>> Create(const chip::Chip& machine, runtime::KernelCache& kernels,
                                                     std::uint32_t threads, std::uint64_t most_rows,
                                                     std::uint64_t most_cols);

  /// Nanoseconds of one product by all threads, its weights from memory.
  double Window(const Contender& contender);
  /// By one thread, its weights from a cache.
  double CachedWindow(const Contender& contender);
  /// GB/s that a probe reads now, by all threads.
  double ReadRate();
  /// The median of several such readings, before each of which other memory is written: what a reading leaves in caches
  /// makes the next one in a row a quarter too fast.
  double ColdReadRate();
  /// Vector instructions a second of all threads together, registers alone.
  Result<double> InstructionRate(const chip::Chip& machine, runtime::KernelCache& kernels);
  void Refresh(std::uint64_t seed) { products_->Refill(seed); }

  [[nodiscard]] std::uint64_t cold_bytes() const { return products_->bytes(); }
  [[nodiscard]] std::uint32_t threads() const { return pool_->size(); }
  [[nodiscard]] std::uint64_t windows() const { return windows_; }
  /// The calling thread stays on the CPU of thread 0 as long as this lives: nothing else costs so much per window.
  [[nodiscard]] int first_cpu() const { return pool_->first_cpu(); }

 private:
  TimingBench() = default;
  std::unique_ptr<runtime::ThreadPool> pool_;
  std::unique_ptr<measure::ColdProducts> products_;
  std::unique_ptr<measure::StreamProbe> probe_;
  std::size_t fastest_ = 0;
  std::uint64_t windows_ = 0;
};

/// The stopwatch of a halving on such a bench.
class BenchStopwatch final : public Stopwatch {
 public:
  BenchStopwatch(TimingBench& bench, const std::vector<Contender>& contenders)
      : bench_(bench), contenders_(contenders) {}
  Result<double> Window(std::size_t candidate) override { return bench_.Window(contenders_[candidate]); }
  void Refresh() override { bench_.Refresh(++seed_); }

 private:
  TimingBench& bench_;
  const std::vector<Contender>& contenders_;
  std::uint64_t seed_ = 1;
};

}  // namespace boltbeam::search
