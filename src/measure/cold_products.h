// Times single products as a token runs them: weights from memory and never from a cache, every thread reading its own
// stream upwards, a barrier after each product.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "measure/clock.h"
#include "runtime/code.h"
#include "runtime/memory.h"
#include "runtime/thread_pool.h"

namespace boltbeam::measure {

/// A kernel that multiplies a rearranged table, and the table's size.
struct ColdProduct {
  runtime::KernelFunction function = nullptr;
  std::uint64_t group_bytes = 0;  // of a group of rows
  std::int64_t groups = 0;        // of the table

  [[nodiscard]] std::uint64_t bytes() const { return group_bytes * static_cast<std::uint64_t>(groups); }
};

/// Memory that tables of any layout are taken from in turn, more than four times the last-level cache of it: less than
/// ColdBytes, for it is written anew between measurements; what a cache keeps of it is the same for all. What it
/// holds is no table's weights: bits at random in which every encoding of a scale is an ordinary number. How long a
/// product takes does not hang on them.
class ColdProducts {
 public:
  /// For tables of at most so many rows and columns.
  static Result<ColdProducts> Create(const chip::Chip& machine, std::uint64_t most_rows, std::uint64_t most_cols);

  /// Nanoseconds of one product of the whole table, from products one after another that read about `bytes` together
  /// (at least one, of a large table a part). The next call reads on where this one ended.
  double Time(runtime::ThreadPool& pool, const ColdProduct& product, std::uint64_t bytes);

  /// Nanoseconds of one product of the whole table by one thread if its weights came from a cache, from products of the
  /// same few groups of rows again and again that read `bytes` together: what it computes, and no more.
  double TimeCached(const ColdProduct& product, std::uint64_t bytes);

  /// Other bits in other places from now on.
  void Refill(std::uint64_t seed);

  [[nodiscard]] std::uint64_t bytes() const { return memory_.bytes(); }

 private:
  ColdProducts() = default;

  Clock clock_;
  runtime::HugeBuffer memory_, input_, output_;
  std::vector<std::uint64_t> next_;  // [thread]: where its stream goes on, from the beginning of its part
};

}  // namespace boltbeam::measure
