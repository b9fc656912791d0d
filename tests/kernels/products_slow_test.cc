// The full matrix: every format of the registry that a kernel can be derived for, every dot product, every target,
// odd shapes, unrolls and tiles.
#include <gtest/gtest.h>

#include <algorithm>

#include "products.h"

namespace boltbeam::kernel_tests {
namespace {

using kernel::Dot;

std::vector<std::string> RunnableFormats() {
  std::vector<std::string> names;
  for (const formats::Format& format : formats::AllFormats())
    if (kernel::LayoutFor(format, 8)) names.push_back(format.name);
  return names;
}

class FormatTest : public testing::TestWithParam<std::string> {
 protected:
  /// The legal products of one geometry and pattern, in every way of running.
  void Run(std::uint16_t lanes, std::uint16_t tile, std::uint16_t unroll, std::uint64_t rows, std::uint64_t blocks) {
    const formats::Format& format = formats::FindFormat(GetParam())->Plain();
    for (const Dot dot : {Dot::kDot4, Dot::kDot4Signed, Dot::kMaddBytes, Dot::kMaddHalves, Dot::kFloat}) {
      for (const Pattern pattern : {Pattern::kRandom, Pattern::kIntegers, Pattern::kZeros, Pattern::kOnes}) {
        Product product;
        product.format = &format;
        product.ways = &AllWays();
        product.geometry.lanes = lanes;
        product.geometry.dot = dot;
        product.geometry.columns = tile;
        product.geometry.unroll = unroll;
        product.geometry.prefetch_bytes = unroll > 1 ? 4096 : 0;
        product.geometry.ordered = unroll == 1;
        product.columns = tile == 1 ? 1 : 2U * tile;
        product.shape.rows = rows;
        product.shape.cols = blocks * (format.elements == 1 ? 7 : format.elements);
        product.shape.epilogue = static_cast<kernel::Epilogue>((rows + blocks) % 3);
        product.pattern = pattern;
        const auto layout = kernel::LayoutFor(format, lanes);
        ASSERT_TRUE(layout);
        product.geometry.depth = static_cast<std::uint16_t>(layout->PairDepth(dot));
        if (!kernel::CheckGeometry(*layout, product.geometry, product.shape.cols)) continue;
        const Agreement agreement = RunProduct(product);
        EXPECT_TRUE(agreement.Within(pattern == Pattern::kIntegers ? 0 : 1e-5))
            << product.Name() << "\n"
            << agreement.worst << " at " << agreement.where;
        ++products_;
      }
    }
  }
  int products_ = 0;
};

TEST_P(FormatTest, EveryWayAgrees) {
  Run(8, 1, 1, 17, 2);
  Run(16, 2, 1, 16, 1);
  // Large blocks of a codebook are very long programs where there is no table instruction.
  const formats::Format& format = formats::FindFormat(GetParam())->Plain();
  if (format.layout->codebook.empty() || format.elements <= 64) {
    Run(8, 1, 4, 8, 7);
    Run(16, 1, 2, 33, 3);
    Run(4, 1, 3, 3, 1);
    Run(8, 4, 1, 9, 2);
  }
  EXPECT_GE(products_, 24);
}

INSTANTIATE_TEST_SUITE_P(Formats, FormatTest, testing::ValuesIn(RunnableFormats()),
                         [](const auto& format) { return format.param; });

}  // namespace
}  // namespace boltbeam::kernel_tests
