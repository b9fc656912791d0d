#include "search/product_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "engine/kernel_check.h"
#include "engine/reference_input.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/gemv.h"
#include "kernel/families/rearrange.h"

namespace boltbeam::search {
namespace {

constexpr std::uint64_t kWholeGroups = 256;  // a multiple of the rows of any group
constexpr std::size_t kLineFloats = 16;

/// How many rows of a table are checked: all, or so many that the last group is as full.
std::uint64_t RowsToCheck(std::uint64_t rows, std::uint64_t cols, std::uint64_t most_weights) {
  if (most_weights == 0 || rows * cols <= most_weights) return rows;
  const std::uint64_t whole = std::max<std::uint64_t>(1, most_weights / (cols * kWholeGroups)) * kWholeGroups;
  return std::min(rows, whole + rows % kWholeGroups);
}

/// The blocks that kernels read, where they are not the file's.
Result<std::vector<std::byte>> PlainBytes(const GateRows& rows) {
  if (!rows.format->coding) return rows.bytes;
  std::vector<std::byte> plain(rows.bytes.size() / rows.format->bytes * rows.format->plain->bytes);
  BOLTBEAM_TRY(formats::ToPlain(*rows.format, rows.bytes, plain));
  return plain;
}

double RelativeError(double found, double expected, double terms) {
  const double relative = found == expected ? 0 : std::abs(found - expected) / terms;
  return std::isnan(relative) ? std::numeric_limits<double>::infinity() : relative;
}

}  // namespace

Result<GateRows> ReadGateRows(const model::Model& model, const model::Tensor& tensor, std::uint64_t most_weights) {
  GateRows rows{
      tensor.format, tensor.rows(), RowsToCheck(tensor.rows(), tensor.cols(), most_weights), tensor.cols(), {}};
  const std::uint64_t row_bytes = tensor.info->bytes / tensor.rows();
  rows.bytes.resize(rows.rows * row_bytes);
  const std::uint64_t first = rows.rows / 2, last = rows.rows - first;
  const std::span<std::byte> bytes(rows.bytes);
  BOLTBEAM_TRY(model.file().Read(tensor.info->file_offset, bytes.first(first * row_bytes)));
  BOLTBEAM_TRY(model.file().Read(tensor.info->file_offset + (tensor.rows() - last) * row_bytes,
                                 bytes.subspan(first * row_bytes)));
  return rows;
}

Result<GateRows> MakeGateRows(const formats::Format& format, std::uint64_t rows, std::uint64_t cols,
                              std::uint64_t most_weights) {
  GateRows made{&format, rows, RowsToCheck(rows, cols, most_weights), cols, {}};
  made.bytes.resize(made.rows * cols / format.elements * format.bytes);
  std::mt19937_64 random(rows * 31 + cols);
  if (!formats::CanQuantize(format)) {
    // Bytes from 0x20 to 0x3F: no infinity or NaN in any encoding of a scale.
    for (std::byte& byte : made.bytes) byte = static_cast<std::byte>((random() & 0x1FU) | 0x20U);
    return made;
  }
  std::normal_distribution<float> normal(0, 0.1F);
  std::vector<float> values(made.rows * cols);
  for (float& value : values) value = normal(random);
  BOLTBEAM_TRY(formats::Quantize(format, values, made.bytes));
  return made;
}

Result<ProductGate::Input> ProductGate::MakeInput(const kernel::ActivationLayout& layout,
                                                  const std::vector<float>& values) {
  Input input;
  input.bytes.resize(layout.ColumnBytes(rows_.cols));
  if (layout.is_float) {
    std::memcpy(input.bytes.data(), values.data(), input.bytes.size());
  } else {
    BOLTBEAM_ASSIGN(
        const runtime::KernelFunction quantize,
        kernels_.Get(kernel::BuildQuantize({rows_.cols, rows_.cols * sizeof(float), 0, facts_.lanes}, layout)));
    std::vector<float> column = values;
    void* const buffers[] = {column.data(), input.bytes.data()};
    quantize(buffers, 0, 1);
  }
  const std::vector<double> x = engine::DecodeActivations(layout, input.bytes);
  for (std::uint64_t row = 0; row < rows_.rows; ++row) {
    double sum = 0, terms = 0;
    for (std::uint64_t k = 0; k < rows_.cols; ++k) {
      const double term = weights_[row * rows_.cols + k] * x[k];
      sum += term;
      terms += std::abs(term);
    }
    input.sum.push_back(sum);
    input.terms.push_back(terms);
  }
  return input;
}

Result<const ProductGate::Expected*> ProductGate::ExpectedOf(const kernel::ActivationLayout& layout) {
  const auto found = std::ranges::find(expected_, layout, &Expected::layout);
  if (found != expected_.end()) return &*found;
  if (weights_.empty()) {
    weights_.resize(rows_.rows * rows_.cols);
    BOLTBEAM_TRY(formats::Dequantize(*rows_.format, rows_.bytes, weights_));
  }
  Expected expected{layout, {}};
  for (const std::vector<float>& values :
       {engine::SparseActivations(rows_.cols), engine::RandomActivations(rows_.cols)}) {
    BOLTBEAM_ASSIGN(Input input, MakeInput(layout, values));
    expected.inputs.push_back(std::move(input));
  }
  expected_.push_back(std::move(expected));
  return &expected_.back();
}

Result<std::vector<std::byte>> ProductGate::Rearranged(const kernel::WeightLayout& layout) {
  BOLTBEAM_ASSIGN(const kernel::Program program, kernel::BuildRearrange(layout, rows_.cols));
  BOLTBEAM_ASSIGN(const runtime::KernelFunction move, kernels_.Get(program));
  BOLTBEAM_ASSIGN(std::vector<std::byte> source, PlainBytes(rows_));
  const std::uint64_t row_bytes = source.size() / rows_.rows;
  const std::uint64_t groups = (rows_.rows + layout.lanes - 1) / layout.lanes;
  source.resize(groups * layout.lanes * row_bytes);  // rows that pad the last group
  std::vector<std::byte> table(groups * layout.GroupBytes(rows_.cols));
  void* const buffers[] = {source.data(), table.data()};
  move(buffers, 0, static_cast<std::int64_t>(groups));
  return table;
}

Result<GateFinding> ProductGate::Check(const kernel::GemvGeometry& geometry) {
  BOLTBEAM_ASSIGN(const kernel::WeightLayout layout, kernel::LayoutFor(*rows_.format, geometry));
  BOLTBEAM_ASSIGN(const kernel::Program program,
                  kernel::BuildGemv(layout, geometry, {.rows = rows_.table_rows, .cols = rows_.cols}));
  BOLTBEAM_ASSIGN(const runtime::KernelFunction multiply, kernels_.Get(program));
  BOLTBEAM_ASSIGN(std::vector<std::byte> table, Rearranged(layout));
  BOLTBEAM_ASSIGN(const Expected* expected, ExpectedOf(kernel::ActivationsFor(layout, geometry.dot)));
  const std::uint64_t groups = (rows_.rows + layout.lanes - 1) / layout.lanes;
  std::vector<float> output(groups * layout.lanes + kLineFloats);
  GateFinding finding;
  for (const Input& input : expected->inputs) {
    std::ranges::fill(output, std::numeric_limits<float>::quiet_NaN());
    std::vector<std::byte> column = input.bytes;
    void* const buffers[] = {table.data(), column.data(), output.data()};
    multiply(buffers, 0, static_cast<std::int64_t>(groups));
    for (std::uint64_t row = 0; row < rows_.rows; ++row) {
      const double error = RelativeError(output[row], input.sum[row], input.terms[row]);
      if (error > finding.error) finding = {error, row, false};
    }
  }
  finding.ok = finding.error <= engine::kKernelErrorLimit;
  return finding;
}

}  // namespace boltbeam::search
