// A weight format that exists nowhere else, as a row of data: 3-bit codes in two planes, 48 elements a block, 5-bit
// scales. What reads, rearranges and multiplies it is the same code as for every other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "kernel/families/elementwise.h"
#include "products.h"

namespace boltbeam::kernel_tests {
namespace {

using kernel::Dot;

/// 12 bytes of low bits, 6 of high ones, three scales of 4 + 1 bits and an empty bit, d.
constexpr const char* kPlain = R"({
  "name": "X3", "elements": 48, "bytes": 22, "elements_per_scale": 16,
  "codes": {"bits": 3, "signed": false, "bias": 4, "pieces": [
    {"width": 2, "shift": 0, "base_bit": 0, "digits": [[12, 8], [4, 2]]},
    {"width": 1, "shift": 2, "base_bit": 96, "digits": [[6, 8], [8, 1]]}]},
  "scales": {"bits": 5, "signed": false, "bias": 0, "pieces": [
    {"width": 4, "shift": 0, "base_bit": 144, "digits": [[3, 4]]},
    {"width": 1, "shift": 4, "base_bit": 156, "digits": [[3, 1]]}]},
  "minimums": null, "m": null, "d": {"base_bit": 160, "encoding": "bf16"}, "codebook": [], "unused_bits": 1})";

/// The same codes; scales and minimums of 12 elements each, an f32 d, a codebook's numbers.
constexpr const char* kWithMinimums = R"({
  "name": "X3M", "elements": 48, "bytes": 29, "elements_per_scale": 12,
  "codes": {"bits": 3, "signed": false, "bias": 0, "pieces": [
    {"width": 2, "shift": 0, "base_bit": 0, "digits": [[12, 8], [4, 2]]},
    {"width": 1, "shift": 2, "base_bit": 96, "digits": [[48, 1]]}]},
  "scales": {"bits": 5, "signed": false, "bias": 0, "pieces": [
    {"width": 4, "shift": 0, "base_bit": 144, "digits": [[4, 4]]},
    {"width": 1, "shift": 4, "base_bit": 160, "digits": [[4, 1]]}]},
  "minimums": {"bits": 5, "signed": false, "bias": 0, "pieces": [
    {"width": 1, "shift": 4, "base_bit": 164, "digits": [[4, 1]]},
    {"width": 4, "shift": 0, "base_bit": 168, "digits": [[4, 4]]}]},
  "d": {"base_bit": 184, "encoding": "f32", "factor": 0.5}, "m": {"base_bit": 216, "encoding": "f16", "sign": -1},
  "codebook": []})";

const formats::Format& Invented(const std::string& name) {
  static const formats::Registry kRegistry = [] {
    const std::string types = R"({"types": [
      {"name": "X3", "type": 200, "elements": 48, "bytes": 22, "source": "this test"},
      {"name": "X3M", "type": 201, "elements": 48, "bytes": 29, "source": "this test"}], "removed_types": []})";
    const std::string rows = fmt::format(R"({{"formats": [{}, {}]}})", kPlain, kWithMinimums);
    auto registry = formats::ParseRegistry(types, rows);
    EXPECT_TRUE(registry) << registry.error().Message();
    return std::move(registry).value_or(formats::Registry{});
  }();
  for (const formats::Format& format : kRegistry.formats)
    if (format.name == name) return format;
  return kRegistry.formats.front();
}

TEST(InventedFormatTest, DequantisesAsItsRowSays) {
  std::mt19937 random(5);
  std::vector<std::uint8_t> block(22);
  for (auto& byte : block) byte = static_cast<std::uint8_t>(random());
  block[20] = 0;
  block[21] = 0x3F;  // bf16 0.5
  std::vector<double> values(48);
  ASSERT_TRUE(formats::Dequantize(Invented("X3"), std::as_bytes(std::span(block)), values));
  for (int e = 0; e < 48; ++e) {
    const int low = (block[e % 12] >> (2 * (e / 12))) & 3;
    const int high = (block[12 + e % 6] >> (e / 6)) & 1;
    const int sub = e / 16;
    const int nibble = sub == 0 ? block[18] & 15 : sub == 1 ? block[18] >> 4 : block[19] & 15;
    const int scale = nibble | (((block[19] >> (4 + sub)) & 1) << 4);
    EXPECT_DOUBLE_EQ(values[e], 0.5 * scale * ((low | (high << 2)) - 4)) << e;
  }
}

TEST(InventedFormatTest, RearrangesAndMultiplies) {
  for (const char* name : {"X3", "X3M"}) {
    for (const Dot dot : {Dot::kDot4, Dot::kDot4Signed, Dot::kMaddBytes, Dot::kMaddHalves}) {
      for (const std::uint16_t columns : {1, 2}) {
        for (const Pattern pattern : {Pattern::kRandom, Pattern::kIntegers, Pattern::kZeros, Pattern::kOnes}) {
          Product product;
          product.format = &Invented(name);
          product.geometry.lanes = columns == 1 ? 8 : 16;
          product.geometry.dot = dot;
          product.geometry.columns = columns;
          product.geometry.unroll = 2;
          product.columns = columns == 1 ? 1 : 4;
          product.shape.rows = 19;
          product.shape.cols = 5 * 48;
          product.pattern = pattern;
          const Agreement agreement = RunProduct(product);
          EXPECT_TRUE(agreement.Within(pattern == Pattern::kIntegers ? 0 : 1e-5))
              << product.Name() << "\n"
              << agreement.worst << " at " << agreement.where;
        }
      }
    }
  }
}

TEST(InventedFormatTest, DequantisesARow) {
  for (const char* name : {"X3", "X3M"}) {
    const formats::Format& format = Invented(name);
    std::mt19937 random(9);
    std::vector<std::uint8_t> row(4 * format.bytes);
    for (auto& byte : row) byte = static_cast<std::uint8_t>(random() % 0x58);
    std::vector<double> expected(4 * 48);
    ASSERT_TRUE(formats::Dequantize(format, std::as_bytes(std::span(row)), expected));
    kernel::VectorShape shape;
    shape.elements = expected.size();
    const auto program = kernel::BuildDequantizeRow(format, shape);
    ASSERT_TRUE(program) << program.error().Message();
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (const Outcome& outcome : RunEverywhere(*program, {ToBytes(row), Bytes(expected.size() * 4)}, 0, 1)) {
      const auto found = FromBytes<float>(outcome.buffers[1]);
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-6 * largest) << name << " " << outcome.way << " element " << i;
    }
  }
}

}  // namespace
}  // namespace boltbeam::kernel_tests
