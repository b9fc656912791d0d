// What a chip of every instruction set runs by default: all formats, one column and several, run on that set alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernel/geometry.h"
#include "products.h"

namespace boltbeam::kernel_tests {
namespace {

using kernel::Dot;

Product Make(const formats::Format& format, const kernel::GemvGeometry& geometry, Pattern pattern) {
  Product product;
  product.format = &format.Plain();
  product.geometry = geometry;
  product.pattern = pattern;
  product.columns = geometry.columns == 1 ? 1U : 2U * geometry.columns;
  product.shape.rows = geometry.lanes + 1U;
  product.shape.cols = std::uint64_t{product.format->elements} * (geometry.unroll + 1U);
  product.shape.epilogue = geometry.columns == 1 ? kernel::Epilogue::kStore : kernel::Epilogue::kResidual;
  return product;
}

void ExpectAgreement(const Product& product) {
  const Agreement agreement = RunProduct(product);
  EXPECT_TRUE(agreement.Within(product.pattern == Pattern::kIntegers ? 0 : 1e-5))
      << product.Name() << "\n"
      << agreement.worst << " at " << agreement.where;
}

class DefaultGeometryTest : public testing::TestWithParam<std::string> {};

TEST_P(DefaultGeometryTest, EveryInstructionSetAgreesWithTheReference) {
  const formats::Format& format = *formats::FindFormat(GetParam());
  for (const Way& way : AllWays()) {
    SCOPED_TRACE(way.name);
    const std::vector<Way> alone{way};
    for (const bool many_columns : {false, true}) {
      const auto geometry = kernel::DefaultGeometry(format, kernel::VectorFactsOf(way.chip), many_columns);
      for (const Pattern pattern : {Pattern::kRandom, Pattern::kIntegers, Pattern::kZeros, Pattern::kOnes}) {
        if (many_columns && pattern != Pattern::kIntegers) continue;  // the same arithmetic, column by column
        Product product = Make(format, geometry, pattern);
        product.ways = &alone;
        ExpectAgreement(product);
      }
    }
  }
}

std::vector<std::string> RunnableFormats() {
  std::vector<std::string> names;
  for (const formats::Format& format : formats::AllFormats()) {
    if (kernel::LayoutFor(format, 8)) names.push_back(format.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Formats, DefaultGeometryTest, testing::ValuesIn(RunnableFormats()),
                         [](const auto& format) { return format.param; });

// Each set lowers each dot product, its own or not: small codes, signed bytes, a codebook of both signs.
TEST(EveryDotTest, IsLoweredOnEveryInstructionSet) {
  for (const char* name : {"Q4_K", "Q8_0", "IQ4_NL"}) {
    for (const Dot dot : {Dot::kDot4, Dot::kDot4Signed, Dot::kMaddBytes, Dot::kMaddHalves}) {
      const formats::Format& format = *formats::FindFormat(name);
      Product product = Make(format, {.lanes = 4, .dot = dot}, Pattern::kIntegers);
      product.ways = &AllWays();
      const auto layout = kernel::LayoutFor(format, 4);
      ASSERT_TRUE(layout);
      if (!kernel::CheckGeometry(*layout, product.geometry, product.shape.cols)) continue;
      ExpectAgreement(product);
    }
  }
}

}  // namespace
}  // namespace boltbeam::kernel_tests
