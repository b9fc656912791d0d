// Every format that runs, every kind of dot product: interpreter, machine code and the reference dequantizer agree.
#include "products.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace boltbeam::kernel_tests {
namespace {

using kernel::Dot;

constexpr double kLimit = 1e-5;  // of the sum of absolute terms

std::vector<Dot> DotsFor(const formats::Format& format, std::uint16_t lanes) {
  const auto layout = kernel::LayoutFor(format, lanes);
  if (!layout) return {};
  std::vector<Dot> dots;
  for (const Dot dot : {Dot::kDot4, Dot::kDot4Signed, Dot::kMaddBytes, Dot::kMaddHalves, Dot::kFloat}) {
    kernel::GemvGeometry geometry;
    geometry.lanes = lanes;
    geometry.dot = dot;
    if (kernel::CheckGeometry(*layout, geometry, layout->elements)) dots.push_back(dot);
  }
  return dots;
}

Product Make(const formats::Format& format, Dot dot, std::uint16_t lanes, std::uint64_t rows, std::uint64_t blocks) {
  Product product;
  product.format = &format.Plain();
  product.geometry.lanes = lanes;
  product.geometry.dot = dot;
  product.geometry.depth = static_cast<std::uint16_t>(kernel::LayoutFor(format, lanes)->PairDepth(dot));
  product.shape.rows = rows;
  product.shape.cols = blocks * std::max<std::uint64_t>(format.elements, format.elements == 1 ? 32 : 1);
  return product;
}

void ExpectAgreement(const Product& product) {
  const Agreement agreement = RunProduct(product);
  const double limit = product.pattern == Pattern::kIntegers ? 0 : kLimit;
  EXPECT_TRUE(agreement.Within(limit)) << product.Name() << "\n" << agreement.worst << " at " << agreement.where;
}

class ProductTest : public testing::TestWithParam<const char*> {};

TEST_P(ProductTest, AgreesWithTheReference) {
  const formats::Format* format = formats::FindFormat(GetParam());
  ASSERT_NE(format, nullptr);
  const auto dots = DotsFor(*format, 8);
  ASSERT_FALSE(dots.empty());
  for (const Dot dot : dots) {
    for (const Pattern pattern : {Pattern::kRandom, Pattern::kIntegers}) {
      Product product = Make(*format, dot, 8, 21, 3);
      product.pattern = pattern;
      product.geometry.unroll = 2;  // a block remains
      ExpectAgreement(product);
    }
  }
}

TEST_P(ProductTest, ExtremeCodesAndSeveralColumns) {
  const formats::Format* format = formats::FindFormat(GetParam());
  ASSERT_NE(format, nullptr);
  for (const Dot dot : DotsFor(*format, 16)) {
    for (const Pattern pattern : {Pattern::kZeros, Pattern::kOnes}) {
      Product product = Make(*format, dot, 16, 5, 1);
      product.pattern = pattern;
      product.geometry.columns = 2;
      product.columns = 4;
      product.shape.epilogue = kernel::Epilogue::kResidual;
      ExpectAgreement(product);
    }
  }
}

// Those with tables of groups have long programs: products_slow_test runs them with all others.
INSTANTIATE_TEST_SUITE_P(Formats, ProductTest,
                         testing::Values("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K",
                                         "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4", "TQ1_0",
                                         "TQ2_0"),
                         [](const auto& format) { return std::string(format.param); });

/// The instructions of a region and of those inside it.
void ForEach(kernel::Region& region, const std::function<void(kernel::Instruction&)>& change) {
  for (kernel::Instruction& instruction : region.code) {
    change(instruction);
    for (kernel::Region& inner : instruction.body) ForEach(inner, change);
  }
}

TEST(NegativeControlTest, ASubBlockOffIsFound) {
  for (const Pattern pattern : {Pattern::kRandom, Pattern::kIntegers}) {
    Product product = Make(*formats::FindFormat("Q4_K"), Dot::kMaddBytes, 8, 8, 1);
    product.pattern = pattern;
    int changed = 0;
    const Agreement agreement = RunProduct(product, [&](kernel::Program& program) {
      ForEach(program.body, [&](kernel::Instruction& i) {
        // The codes of sub-block 3 meet the activations of sub-block 4.
        if (i.op != kernel::Op::kLoadBroadcast || i.buffer != 1 || i.offset < 96 || i.offset >= 128) return;
        i.offset += 32;
        ++changed;
      });
    });
    EXPECT_EQ(changed, 8);
    EXPECT_FALSE(agreement.Within(kLimit)) << product.Name();
  }
}

TEST(NegativeControlTest, MinimumsDroppedAreFound) {
  Product product = Make(*formats::FindFormat("Q4_K"), Dot::kDot4, 8, 8, 2);
  const auto layout = kernel::LayoutFor(*product.format, 8);
  ASSERT_TRUE(layout);
  int changed = 0;
  const Agreement agreement = RunProduct(product, [&](kernel::Program& program) {
    ForEach(program.body, [&](kernel::Instruction& i) {
      if (i.op != kernel::Op::kLoad || i.buffer != 0 || i.offset != layout->m_offset) return;
      const kernel::Instruction load = i;
      i = {};
      i.type = load.type;
      i.results = load.results;  // the constant 0
      ++changed;
    });
  });
  EXPECT_EQ(changed, 1);
  EXPECT_FALSE(agreement.Within(kLimit));
}

}  // namespace
}  // namespace boltbeam::kernel_tests
