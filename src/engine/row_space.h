// Tables whose rows one step computes while decoding, and which groups of them each thread has.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/engine.h"
#include "model/model.h"
#include "runtime/thread_pool.h"

namespace boltbeam::engine {

struct RowSpace {
  enum class Kind : std::uint8_t {
    kAlone,  // one table
    kRows,   // tables of one input, the rows of each behind those of the one before
    kPairs,  // two tables, their groups in turn
  };
  Kind kind = Kind::kAlone;
  std::vector<const model::Tensor*> tensors;
  std::vector<std::vector<runtime::Range>> shares;  // [tensor][thread]: groups of the tensor
  /// Every thread has its share of each table, and so rows of the whole lie thread after thread; else table after
  /// table.
  bool by_thread = true;

  /// Groups of the whole that a thread has, in the order in which they lie.
  [[nodiscard]] runtime::Range RangeOf(std::uint32_t thread) const;
};

struct Table;
using TableOf = std::function<const Table&(const model::Tensor&)>;

/// Every table that products read, in the order of the token graph.
std::vector<RowSpace> RowSpacesOf(const model::Model& model, const TableOf& table_of, const Options& options);

/// Whether the rows of q, k and v that a thread computes are whole heads, and the same ones in all three.
bool HeadsFit(const model::Model& model, std::int32_t layer, const TableOf& table_of, std::uint32_t threads);

}  // namespace boltbeam::engine
