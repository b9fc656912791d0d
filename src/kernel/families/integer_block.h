// One block of a row group times the same block of some columns, in whole numbers up to the block's scales.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/families/columns.h"
#include "kernel/families/unpack.h"
#include "kernel/rows.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

class IntegerBlock {
 public:
  IntegerBlock(Builder& builder, const WeightLayout& layout, const GemvGeometry& geometry, Unpack& unpack,
               const Columns& columns);

  /// Adds the products of the block that both have begun to sums[column].
  void AddTo(std::vector<Rows>& sums);

 private:
  std::vector<Rows> Minimums();
  void Chunk(std::uint32_t chunk, std::vector<Rows>& total);
  std::vector<Rows> SubBlock(std::uint32_t chunk, std::uint32_t sub);
  /// How far a chain of 16-bit sums has come.
  struct Run {
    bool is_first, is_last;
  };
  void Product(const std::vector<Rows>& factors, std::uint16_t column, std::uint16_t chain, std::int64_t element,
               Run run);

  Builder& b_;
  const WeightLayout& layout_;
  const GemvGeometry& geometry_;
  Unpack& unpack_;
  const Columns& columns_;
  /// Of the sub-block being written.
  struct Chain {
    Rows dot;       // what is summed in 32 bits
    Rows pairs[2];  // and in 16 bits: of both halves of a codebook's numbers
  };
  std::vector<std::vector<Chain>> chains_;  // by column
};

}  // namespace boltbeam::kernel
