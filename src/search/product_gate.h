// Whether a product's kernel is right, before it is timed: its results against double arithmetic on the same bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/format.h"
#include "kernel/geometry.h"
#include "kernel/weight_layout.h"
#include "model/model.h"
#include "runtime/code.h"

namespace boltbeam::search {

/// Rows of a table as they lie in a file. Where a table is larger than what is worth checking, its first and its last
/// rows, so many that its last group is as full as in the whole.
struct GateRows {
  const formats::Format* format = nullptr;
  std::uint64_t table_rows = 0, rows = 0, cols = 0;
  std::vector<std::byte> bytes;  // `rows` of them

  [[nodiscard]] std::uint64_t RowBytes() const { return bytes.size() / rows; }
};

/// At most about `most_weights` of a tensor; 0: all of it.
Result<GateRows> ReadGateRows(const model::Model& model, const model::Tensor& tensor, std::uint64_t most_weights);
/// The same without a model: bits at random with scales that are ordinary numbers.
Result<GateRows> MakeGateRows(const formats::Format& format, std::uint64_t rows, std::uint64_t cols,
                              std::uint64_t most_weights);

struct GateFinding {
  double error = 0;  // the worst row's |difference| over the sum of the absolute values of its terms
  std::uint64_t worst_row = 0;
  bool ok = false;
};

/// Checks candidates of one table. What a row should give is computed once for each format of activations.
class ProductGate {
 public:
  /// rows and kernels must outlive the gate.
  ProductGate(const GateRows& rows, const kernel::VectorFacts& facts, runtime::KernelCache& kernels)
      : rows_(rows), facts_(facts), kernels_(kernels) {}

  /// Rearranges the rows as the geometry wants them and multiplies them with sparse and with random activations.
  Result<GateFinding> Check(const kernel::GemvGeometry& geometry);

 private:
  struct Input {
    std::vector<std::byte> bytes;    // quantised
    std::vector<double> sum, terms;  // of every row
  };
  struct Expected {
    kernel::ActivationLayout layout;
    std::vector<Input> inputs;
  };
  Result<const Expected*> ExpectedOf(const kernel::ActivationLayout& layout);
  Result<Input> MakeInput(const kernel::ActivationLayout& layout, const std::vector<float>& values);
  Result<std::vector<std::byte>> Rearranged(const kernel::WeightLayout& layout);

  const GateRows& rows_;
  const kernel::VectorFacts facts_;
  runtime::KernelCache& kernels_;
  std::vector<double> weights_;  // dequantised, as soon as they are needed
  std::vector<Expected> expected_;
};

}  // namespace boltbeam::search
