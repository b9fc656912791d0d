// The weights of a model as the kernels read them: every table rearranged, norms and biases as f32.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/arena.h"
#include "engine/row_space.h"
#include "kernel/geometry.h"
#include "kernel/weight_layout.h"
#include "model/model.h"
#include "runtime/code.h"
#include "runtime/thread_pool.h"

namespace boltbeam::engine {

/// One rearranged table. Every thread has its share of the groups where its stream passes: see Weights.
struct Table {
  const model::Tensor* tensor = nullptr;
  kernel::GemvGeometry geometry;  // while decoding
  kernel::WeightLayout layout;
  std::uint64_t bytes = 0;
  std::uint64_t group_stride = 0;      // bytes from group to group: those of another table may lie between
  std::vector<runtime::Range> shares;  // [thread]
  std::vector<std::byte*> base;        // [thread]: group g of the thread's share lies at base + g * group_stride

  [[nodiscard]] std::int64_t groups() const {
    return static_cast<std::int64_t>((tensor->rows() + layout.lanes - 1) / layout.lanes);
  }
  [[nodiscard]] std::uint64_t GroupBytes() const { return layout.GroupBytes(tensor->cols()); }
};

struct LoadCallbacks {
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
  std::function<bool()> cancelled;
};

/// A thread reads its shares of all tables in the order of the token graph, and so they lie in memory, one behind the
/// other, the threads' streams apart: what follows a table's end is what the thread reads next, and the hardware's
/// prefetchers, which know nothing of tables, are right there too. On a machine with several memories each share is
/// first touched by the thread that reads it.
class Weights {
 public:
  /// Decides every table's layout; kModelUnsupportedType or kKernelIllegal names the first tensor that no kernel can
  /// run.
  static Result<Weights> Plan(const model::Model& model, const kernel::VectorFacts& facts, const Options& options);

  /// Bytes of all tables together, rearranged.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// Reads the file and rearranges it, in parallel.
  Result<void> Load(const model::Model& model, runtime::KernelCache& kernels, runtime::ThreadPool& pool,
                    const LoadCallbacks& callbacks);

  [[nodiscard]] const Table& table(const model::Tensor& tensor) const { return tables_.at(&tensor); }
  /// The tables that are computed together with this one.
  [[nodiscard]] const RowSpace& space(const model::Tensor& tensor) const { return spaces_[space_of_.at(&tensor)]; }
  /// A vector's elements as f32, padded with zeros to whole cache lines; nullptr before Load.
  [[nodiscard]] std::byte* vector(const model::Tensor& tensor) const {
    const auto place = vectors_.find(&tensor);
    return place == vectors_.end() ? nullptr : place->second;
  }
  [[nodiscard]] std::uint64_t HugePageBytes() const { return memory_.HugePageBytes(); }

 private:
  Result<void> LoadVectors(const model::Model& model);
  /// Which tables are computed together, and which groups of them each thread has.
  void Divide(const model::Model& model, const Options& options);
  /// Allocates the threads' streams and gives every table its place in each.
  Result<void> Place(std::uint32_t threads);
  [[nodiscard]] std::uint64_t SpaceBytes(const RowSpace& space, std::uint32_t thread) const;
  Result<void> LoadTable(const model::Model& model, Table& table, runtime::KernelFunction rearrange,
                         runtime::ThreadPool& pool, const LoadCallbacks& callbacks, std::uint64_t& done);

  std::map<const model::Tensor*, Table> tables_;
  std::map<const model::Tensor*, std::byte*> vectors_;
  std::vector<RowSpace> spaces_;  // in the order of the token graph
  std::map<const model::Tensor*, std::size_t> space_of_;
  std::map<std::string, kernel::Program> programs_;  // by tensor shape and format: see Key in weights.cc
  std::uint64_t bytes_ = 0;
  runtime::HugeBuffer memory_;
  Arena small_;
};

}  // namespace boltbeam::engine
