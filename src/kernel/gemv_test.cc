#include "kernel/families/gemv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "formats/format.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/rearrange.h"
#include "kernel/geometry.h"
#include "kernel/instruction_count.h"
#include "kernel/interpreter.h"

namespace boltbeam::kernel {
namespace {

struct Case {
  std::string format;
  Dot dot;
  std::uint16_t lanes;
  std::uint16_t columns;
  std::uint16_t unroll;
};

/// Random blocks whose scales are small finite halves.
std::vector<std::byte> RandomTable(const formats::Format& format, std::uint64_t rows, std::uint64_t cols) {
  std::mt19937 random(7);
  std::vector<float> values(rows * cols);
  for (float& value : values) value = std::normal_distribution<float>(0, 1)(random);
  std::vector<std::byte> bytes(rows * cols / format.elements * format.bytes);
  EXPECT_TRUE(formats::Quantize(format, values, bytes));
  return bytes;
}

/// y = table * x, the table rearranged, x quantised, everything interpreted; against double precision on the quantised
/// x.
void Check(const Case& c, std::uint64_t rows, std::uint64_t cols) {
  SCOPED_TRACE(c.format + " " + std::to_string(static_cast<int>(c.dot)) + " lanes " + std::to_string(c.lanes));
  const formats::Format& format = *formats::FindFormat(c.format);
  const WeightLayout layout = LayoutFor(format, c.lanes).value();
  GemvGeometry geometry{c.lanes, c.dot, c.columns, c.unroll, true, 0};
  geometry.depth = static_cast<std::uint16_t>(layout.PairDepth(c.dot));
  const std::vector<std::byte> table = RandomTable(format, rows, cols);
  const std::uint64_t groups = (rows + c.lanes - 1) / c.lanes;
  std::vector<std::byte> source(groups * c.lanes * (table.size() / rows));
  std::memcpy(source.data(), table.data(), table.size());
  std::vector<std::byte> weights(layout.TableBytes(rows, cols));
  const Program rearrange = BuildRearrange(layout, cols).value();
  const BufferView moved[] = {{source.data(), source.size()}, {weights.data(), weights.size()}};
  const auto rearranged = Interpret(rearrange, moved, 0, static_cast<std::int64_t>(groups));
  ASSERT_TRUE(rearranged) << rearranged.error().Message();

  std::mt19937 random(11);
  std::vector<float> x(cols * c.columns);
  for (float& value : x) value = std::normal_distribution<float>(0, 1)(random);
  const ActivationLayout activations = ActivationsFor(layout, c.dot);
  std::vector<std::byte> quantised(activations.ColumnBytes(cols) * c.columns);
  if (activations.is_float) {
    std::memcpy(quantised.data(), x.data(), quantised.size());
  } else {
    const Program quantize = BuildQuantize({cols, cols * 4, 0, c.lanes}, activations);
    const BufferView views[] = {{reinterpret_cast<std::byte*>(x.data()), x.size() * 4},
                                {quantised.data(), quantised.size()}};
    const auto done = Interpret(quantize, views, 0, c.columns);
    ASSERT_TRUE(done) << done.error().Message();
  }
  std::vector<float> y(OutputStride(rows) / 4 * c.columns);
  std::int32_t tiles[16] = {0, 1};
  tiles[0] = 1;
  const auto gemv = BuildGemv(layout, geometry, {rows, cols, Epilogue::kStore, 0});
  ASSERT_TRUE(gemv) << gemv.error().Message();
  std::vector<BufferView> views = {{weights.data(), weights.size()},
                                   {quantised.data(), quantised.size()},
                                   {reinterpret_cast<std::byte*>(y.data()), y.size() * 4}};
  if (c.columns > 1) views.push_back({reinterpret_cast<std::byte*>(tiles), sizeof(tiles)});
  const auto done = Interpret(*gemv, views, 0, static_cast<std::int64_t>(groups));
  ASSERT_TRUE(done) << done.error().Message();

  std::vector<double> dense(rows * cols);
  ASSERT_TRUE(formats::Dequantize(format, table, dense));
  for (std::uint16_t column = 0; column < c.columns; ++column) {
    std::vector<double> a(cols);  // the quantised activations, as numbers
    for (std::uint64_t k = 0; k < cols; ++k) {
      if (activations.is_float) {
        a[k] = x[column * cols + k];
        continue;
      }
      const std::byte* block = quantised.data() + column * activations.ColumnBytes(cols) +
                               k / activations.elements * activations.block_bytes;
      const std::uint64_t in = k % activations.elements;
      float scale = 0;
      std::memcpy(&scale, block + activations.scale_offset, 4);
      int code = static_cast<std::int8_t>(block[in]);
      if (activations.halves) {
        static constexpr int kPlace[4] = {0, 2, 1, 3};
        std::int16_t half = 0;
        std::memcpy(&half, block + (in / 4 * 4 + kPlace[in % 4]) * 2, 2);
        code = half;
      }
      a[k] = scale * code;
      EXPECT_NEAR(a[k], x[column * cols + k], scale * 0.51);
    }
    for (std::uint64_t row = 0; row < rows; ++row) {
      double sum = 0, magnitude = 0;
      for (std::uint64_t k = 0; k < cols; ++k) {
        sum += dense[row * cols + k] * a[k];
        magnitude += std::abs(dense[row * cols + k] * a[k]);
      }
      ASSERT_NEAR(y[column * OutputStride(rows) / 4 + row], sum, 1e-5 * magnitude)
          << "row " << row << " column " << column;
    }
  }
}

TEST(GemvTest, EveryFormatAndDotAgreesWithDoublePrecision) {
  for (const std::string format : {"Q4_K", "Q6_K", "Q5_K", "Q8_0", "Q4_1", "Q4_0", "Q5_0", "Q5_1"}) {
    for (const std::uint16_t lanes : {16, 8, 4}) {
      for (const std::uint16_t columns : {1, 4}) {
        Check({format, Dot::kDot4, lanes, columns, 2}, 19, 768);
        Check({format, Dot::kDot4Signed, lanes, columns, 1}, 19, 768);
        Check({format, Dot::kMaddHalves, lanes, columns, 1}, 19, 768);
        Check({format, Dot::kMaddBytes, lanes, columns, 1}, 19, 768);
      }
    }
  }
  for (const std::string format : {"F32", "F16", "BF16"}) Check({format, Dot::kFloat, 8, 1, 8}, 19, 77);
  for (const std::string format : {"F32", "F16", "BF16"}) Check({format, Dot::kFloat, 16, 4, 8}, 19, 77);
}

TEST(GemvTest, AGeometryThatOverflowsIsRefused) {
  const WeightLayout layout = LayoutFor(*formats::FindFormat("Q8_0"), 8).value();
  GemvGeometry deep{8, Dot::kMaddBytes, 1, 1, true, 0};
  deep.depth = 9;  // pairs of a code's halves, of up to 15 x 127 each: eight fit in 16 bits
  EXPECT_EQ(BuildGemv(layout, deep, {8, 32}).error().code, Code::kKernelIllegal);
  EXPECT_EQ(BuildGemv(layout, {8, Dot::kDot4, 1, 1, true, 0}, {8, 33}).error().code, Code::kKernelIllegal);
}

// Every line of a turn ahead once, or one of so many, each behind the load of its like: a core can have fewer under way
// than a block has.
void ExpectOneByOne(const char* name, std::uint16_t lanes, std::uint16_t every) {
  SCOPED_TRACE(testing::Message() << name << ", " << lanes << " lanes, one of " << every);
  VectorFacts facts{.lanes = lanes, .registers = 32, .has_dot4 = true, .has_madd_bytes = true};
  facts.prefetch_bytes = 8192;
  GemvGeometry geometry = DefaultGeometry(*formats::FindFormat(name), 4096, facts);
  geometry.prefetch_every = every;
  const auto layout = LayoutFor(*formats::FindFormat(name), geometry);
  const auto program = BuildGemv(*layout, geometry, {.rows = 64, .cols = 4096});
  ASSERT_TRUE(program) << program.error().Message();
  std::istringstream lines(Print(*program));
  std::multiset<std::int64_t> fetched;
  bool is_last = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("prefetch weights[");
    const bool is_fetch = at != std::string::npos;
    EXPECT_FALSE(is_fetch && is_last) << "two in a row: " << line;
    if (is_fetch) fetched.insert(std::stoll(line.substr(line.find(" + ", at) + 3)));
    is_last = is_fetch;
  }
  std::multiset<std::int64_t> wanted;
  for (std::int64_t at = 0; at < geometry.unroll * std::int64_t{layout->block_bytes}; at += 64 * every) {
    wanted.insert(8192 + at);
  }
  EXPECT_EQ(fetched, wanted);
}

TEST(GemvTest, LinesAreFetchedAheadOneByOne) {
  for (const char* name : {"Q4_K", "Q6_K", "Q8_0", "IQ4_XS", "F16", "F32"}) {
    for (const std::uint16_t lanes : {8, 16}) {
      for (const std::uint16_t every : {1, 2, 4}) ExpectOneByOne(name, lanes, every);
    }
  }
  VectorFacts facts;
  facts.prefetch_bytes = 8192;
  EXPECT_EQ(DefaultGeometry(*formats::FindFormat("Q4_K"), facts, true).prefetch_bytes, 0U)
      << "prompts use what they read many times";
}

TEST(GemvTest, NoMoreBlocksATurnThanARowHas) {
  VectorFacts facts{.lanes = 16, .registers = 32, .has_dot4 = true, .has_madd_bytes = true};
  facts.prefetch_bytes = 8192;
  EXPECT_EQ(DefaultGeometry(*formats::FindFormat("Q4_K"), 4096, facts).unroll, 2U);
  EXPECT_EQ(DefaultGeometry(*formats::FindFormat("Q4_K"), 256, facts).unroll, 1U);
  EXPECT_EQ(DefaultGeometry(*formats::FindFormat("Q8_0"), 64, facts).unroll, 2U);
  facts.prefetch_bytes = 0;
  EXPECT_EQ(DefaultGeometry(*formats::FindFormat("Q4_K"), 4096, facts).unroll, 1U);
}

TEST(WeightLayoutTest, TablesAreAsLargeAsInTheFile) {
  for (const char* name : {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q4_K", "Q5_K", "Q6_K",
                           "IQ4_NL", "MXFP4", "NVFP4", "TQ2_0"}) {
    const formats::Format& format = *formats::FindFormat(name);
    EXPECT_EQ(LayoutFor(format, 16).value().block_bytes, 16 * format.bytes) << name;
  }
}

TEST(DequantizeRowTest, AgreesWithTheReference) {
  for (const formats::Format& format : formats::AllFormats()) {
    if (!format.layout || !formats::CanQuantize(format)) continue;
    SCOPED_TRACE(format.name);
    const std::uint64_t cols = 512;
    const std::vector<std::byte> table = RandomTable(format, 2, cols);
    std::vector<double> expected(2 * cols);
    ASSERT_TRUE(formats::Dequantize(format, table, expected));
    std::vector<std::byte> source = table;
    std::vector<float> out(2 * cols);
    const auto program = BuildDequantizeRow(format, {cols, 0, cols * 4, 16});
    ASSERT_TRUE(program) << program.error().Message();
    const BufferView views[] = {{source.data(), source.size()},
                                {reinterpret_cast<std::byte*>(out.data()), out.size() * 4}};
    const auto done = Interpret(*program, views, 0, 2);
    ASSERT_TRUE(done) << done.error().Message();
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_NEAR(out[i], expected[i], 1e-6 * (1 + std::abs(expected[i]))) << i;
  }
}

TEST(InstructionCountTest, CountsWhatAWeightCosts) {
  const VectorFacts wide{16, 32, true, true}, plain{4, 16, false, false};
  const auto count = [](const char* format, const VectorFacts& facts) {
    return InstructionsPerWeight(*formats::FindFormat(format), facts).value();
  };
  EXPECT_DOUBLE_EQ(count("F32", wide), 1.0 / 16);  // one multiply-add for 16 rows
  EXPECT_DOUBLE_EQ(count("F32", plain), 1.0 / 4);
  // At least one dot product for four weights of each of 16 rows, and a shift or mask for most.
  EXPECT_GT(count("Q4_K", wide), 1.0 / 64);
  EXPECT_LT(count("Q4_K", wide), 4.0 / 64);
  EXPECT_GT(count("Q6_K", wide), count("Q4_K", wide));
  EXPECT_GT(count("Q4_K", plain), 4 * count("Q4_K", wide));
}

}  // namespace
}  // namespace boltbeam::kernel
