#include "products.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "formats/scale_word.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/rearrange.h"
#include "kernel/families/state.h"
#include "kernel/knobs.h"

namespace boltbeam::kernel_tests {
namespace {

using kernel::ActivationLayout;
using kernel::WeightLayout;

void WriteScaleWord(const formats::ScaleWord& word, float value, std::span<std::byte> block) {
  formats::EncodeFloat(word.encoding, value, block.subspan(word.base_bit / 8));
}

/// One row of the table as it lies in a file.
class Weights {
 public:
  explicit Weights(const Product& product) : product_(product) {}

  Bytes Make() {
    const formats::Format& format = *product_.format;
    const std::uint64_t blocks = product_.shape.rows * product_.shape.cols / format.elements;
    Bytes file(blocks * format.bytes);
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const auto bytes = std::span(file).subspan(block * format.bytes, format.bytes);
      format.layout->encoding ? FillFloat(bytes) : FillBlock(bytes);
    }
    return file;
  }

 private:
  bool is_integers() const { return product_.pattern == Pattern::kIntegers; }

  void FillFloat(std::span<std::byte> bytes) {
    float value = is_integers() ? static_cast<float>(small_(random_)) : normal_(random_);
    if (product_.pattern == Pattern::kZeros) value = 0;
    if (product_.pattern == Pattern::kOnes) value = 65504;
    std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    if (*product_.format->layout->encoding == formats::Encoding::kF16) word = formats::FloatToHalf(value);
    if (*product_.format->layout->encoding == formats::Encoding::kBf16) word >>= 16;
    std::memcpy(bytes.data(), &word, bytes.size());
  }

  void FillBlock(std::span<std::byte> bytes) {
    const formats::Layout& layout = *product_.format->layout;
    std::ranges::generate(bytes, [&] {
      if (product_.pattern == Pattern::kZeros) return std::byte{0};
      if (product_.pattern == Pattern::kOnes) return std::byte{0xff};
      return static_cast<std::byte>(random_());
    });
    const bool is_e8m0 = layout.d.encoding == formats::Encoding::kE8m0Half;
    WriteScaleWord(layout.d, is_integers() ? 1 : is_e8m0 ? 0.25F : normal_(random_) * 0.01F, bytes);
    if (layout.m) WriteScaleWord(*layout.m, is_integers() ? 1 : normal_(random_) * 0.01F, bytes);
    if (!is_integers() || !layout.scales || !layout.scales->encoding) return;
    for (std::uint32_t i = 0; i < product_.format->elements / layout.elements_per_scale; ++i) {
      const std::uint32_t bit = layout.scales->pieces[0].BitAddress(i);
      formats::EncodeFloat(*layout.scales->encoding, 1, bytes.subspan(bit / 8));
    }
  }

  const Product& product_;
  std::mt19937 random_{11};
  std::normal_distribution<float> normal_;
  std::uniform_int_distribution<int> small_{-8, 8};
};

/// f32 activations, column after column.
std::vector<float> MakeInput(const Product& product) {
  std::mt19937 random(23);
  std::normal_distribution<float> normal;
  std::vector<float> input(product.columns * product.shape.cols);
  const std::uint64_t block = product.format->layout->encoding ? 32 : product.format->elements;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const auto column = i / product.shape.cols;
    switch (product.pattern) {
      case Pattern::kRandom:
        input[i] = normal(random) * (i % 97 == 0 ? 20.0F : 1.0F);  // activations have outliers
        break;
      case Pattern::kIntegers:  // one element of 127 a block: its scale is exactly 1
        input[i] = i % block == 5 ? 127.0F : random() % 8 == 0 ? static_cast<float>(random() % 7) - 3 : 0.0F;
        break;
      default:
        input[i] = column % 2 == 0 ? 1.0F : -1.0F;
    }
  }
  return input;
}

/// What the quantised activations stand for: only codes and block scales, not the sums beside them.
std::vector<double> Decode(const ActivationLayout& layout, const Bytes& bytes) {
  if (layout.is_float) {
    const auto floats = FromBytes<float>(bytes);
    return {floats.begin(), floats.end()};
  }
  static constexpr std::size_t kPlace[] = {0, 2, 1, 3};  // of element i of four among halves
  std::vector<double> values;
  for (std::size_t at = 0; at < bytes.size(); at += layout.block_bytes) {
    float scale = 0;
    std::memcpy(&scale, &bytes[at + layout.scale_offset], sizeof(scale));
    for (std::size_t i = 0; i < layout.elements; ++i) {
      std::int16_t code = static_cast<std::int8_t>(bytes[at + i]);
      if (layout.halves) std::memcpy(&code, &bytes[at + (i / 4 * 4 + kPlace[i % 4]) * 2], sizeof(code));
      values.push_back(static_cast<double>(scale) * code);
    }
  }
  return values;
}

struct Tables {
  Bytes weights;             // rearranged
  std::vector<double> rows;  // dequantised by the reference
};

Tables Rearranged(const Product& product, const WeightLayout& layout) {
  const auto& [rows, cols] = std::pair(product.shape.rows, product.shape.cols);
  Bytes file = Weights(product).Make();
  Tables tables;
  tables.rows.resize(rows * cols);
  EXPECT_TRUE(formats::Dequantize(*product.format, file, tables.rows));
  const std::uint64_t groups = (rows + layout.lanes - 1) / layout.lanes;
  file.resize(groups * layout.lanes * (file.size() / rows));  // the last group's missing rows are zero
  const auto program = kernel::BuildRearrange(layout, cols);
  EXPECT_TRUE(program) << program.error().Message();
  if (!program) return tables;
  const auto outcomes = RunEverywhere(*program, {file, Bytes(layout.TableBytes(rows, cols))}, 0,
                                      static_cast<std::int64_t>(groups), *product.ways);
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.buffers[1], outcomes[0].buffers[1]) << outcome.way;
  tables.weights = outcomes[0].buffers[1];
  return tables;
}

Bytes Quantised(const Product& product, const ActivationLayout& layout) {
  const std::vector<float> input = MakeInput(product);
  if (layout.is_float) return ToBytes(input);
  kernel::VectorShape shape;
  shape.elements = product.shape.cols;
  shape.in_stride = product.shape.cols * sizeof(float);
  shape.out_stride = layout.ColumnBytes(product.shape.cols);
  shape.lanes = product.geometry.lanes;
  const kernel::Program program = kernel::BuildQuantize(shape, layout);
  const auto outcomes = RunEverywhere(program, {ToBytes(input), Bytes(product.columns * shape.out_stride)}, 0,
                                      product.columns, *product.ways);
  const std::vector<double> decoded = Decode(layout, outcomes[0].buffers[1]);
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::size_t first = i / layout.elements * layout.elements;
    double largest = 0;
    for (std::size_t k = 0; k < layout.elements; ++k) largest = std::max(largest, std::abs(double{input[first + k]}));
    EXPECT_LE(std::abs(decoded[i] - input[i]), largest / 127 * 0.5001) << "element " << i;
  }
  return outcomes[0].buffers[1];
}

}  // namespace

std::string Product::Name() const {
  static constexpr const char* kPatterns[] = {"random", "integers", "zeros", "ones"};
  return fmt::format("{} {}x{} x{} tile {} {} {} epilogue {}", format->name, shape.rows, shape.cols, columns,
                     geometry.columns, kernel::GeometryText(geometry), kPatterns[static_cast<int>(pattern)],
                     static_cast<int>(shape.epilogue));
}

Agreement RunProduct(const Product& product, const std::function<void(kernel::Program&)>& change) {
  SCOPED_TRACE(product.Name());
  Agreement agreement;
  const auto layout = kernel::LayoutFor(*product.format, product.geometry);
  EXPECT_TRUE(layout) << layout.error().Message();
  if (!layout) return agreement;
  const ActivationLayout activations = kernel::ActivationsFor(*layout, product.geometry.dot);
  const Tables tables = Rearranged(product, *layout);
  const Bytes input = Quantised(product, activations);
  auto program = kernel::BuildGemv(*layout, product.geometry, product.shape);
  EXPECT_TRUE(program) << program.error().Message();
  if (!program) return agreement;
  if (change) change(*program);

  const std::uint64_t rows = product.shape.rows, cols = product.shape.cols;
  const std::uint64_t groups = (rows + layout->lanes - 1) / layout->lanes;
  const std::uint64_t stride = kernel::OutputStride(rows) / sizeof(float);
  std::vector<float> before(product.columns * stride);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<float>(i % 13) - 6;
  std::vector<Bytes> buffers{tables.weights, input, ToBytes(before)};
  const bool has_bias = product.shape.epilogue == kernel::Epilogue::kBias;
  if (has_bias) buffers.push_back(ToBytes(std::vector<float>(groups * layout->lanes, 2.5F)));
  if (product.geometry.columns > 1) {
    std::vector<std::int32_t> state(kernel::kStateBytes / sizeof(std::int32_t));
    state[kernel::kStateColumns / 4] = static_cast<std::int32_t>(product.columns);
    state[kernel::kStateTiles / 4] = static_cast<std::int32_t>(product.columns / product.geometry.columns);
    buffers.push_back(ToBytes(state));
  }
  const std::vector<double> x = Decode(activations, input);
  for (const Outcome& outcome : RunEverywhere(*program, buffers, 0, static_cast<std::int64_t>(groups), *product.ways)) {
    const auto output = FromBytes<float>(outcome.buffers[2]);
    for (std::uint64_t c = 0; c < product.columns; ++c) {
      for (std::uint64_t r = 0; r < rows; ++r) {
        double expected = has_bias ? 2.5 : 0;
        if (product.shape.epilogue == kernel::Epilogue::kResidual) expected = before[c * stride + r];
        double terms = std::abs(expected);
        for (std::uint64_t k = 0; k < cols; ++k) {
          const double term = tables.rows[r * cols + k] * x[c * cols + k];
          expected += term;
          terms += std::abs(term);
        }
        agreement.Add(output[c * stride + r], expected, terms, fmt::format("{} row {} column {}", outcome.way, r, c));
      }
    }
  }
  return agreement;
}

}  // namespace boltbeam::kernel_tests
