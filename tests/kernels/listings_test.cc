// What is generated for chips that this machine is not: every format's product by default holds the instruction that
// the set is for, and none above the set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "chip/facts.h"
#include "codegen/codegen.h"
#include "kernel/families/gemv.h"
#include "kernel/geometry.h"

namespace boltbeam::kernel_tests {
namespace {

using kernel::Dot;

struct Listed {
  std::string name;
  std::vector<std::string> features;
  std::map<Dot, std::string> intended;  // a regular expression; a product that takes another dot is not expected
  std::string above;                    // what must not be found
};

const std::vector<std::string> kAvx2 = {"pni", "ssse3", "sse4_1", "sse4_2", "avx", "avx2", "fma", "f16c"};
constexpr char kEvex[] = "%zmm|%k[0-7]|%[xy]mm(1[6-9]|[23][0-9])|vpternlog";

std::vector<std::string> With(std::vector<std::string> features, std::initializer_list<const char*> more) {
  features.insert(features.end(), more.begin(), more.end());
  return features;
}

std::vector<Listed> Chips() {
  const std::string bytes = "vpmaddubsw.*%ymm", wide_bytes = "vpmaddubsw.*%zmm";
  const std::vector<std::string> avx512 = With(kAvx2, {"avx512f", "avx512bw", "avx512vl", "avx512dq"});
  return {
      {"plain x86-64", {}, {{Dot::kMaddHalves, "pmaddwd.*%xmm"}, {Dot::kFloat, "mulps.*%xmm"}}, "\\n\\tv|%[yz]mm"},
      {"AVX2",
       kAvx2,
       {{Dot::kMaddBytes, bytes}, {Dot::kMaddHalves, "vpmaddwd.*%ymm"}, {Dot::kFloat, "vfmadd.*%ymm"}},
       std::string(kEvex) + "|vpdp"},
      {"AVX2 with VNNI",
       With(kAvx2, {"avx_vnni"}),
       {{Dot::kDot4, "\\{vex\\}\\s+vpdpbusd.*%ymm"}, {Dot::kFloat, "vfmadd.*%ymm"}},
       kEvex},
      {"AVX-512",
       avx512,
       {{Dot::kMaddBytes, wide_bytes}, {Dot::kMaddHalves, "vpmaddwd.*%zmm"}, {Dot::kFloat, "vfmadd.*%zmm"}},
       "vpdp"},
      {"AVX-512 with VNNI",
       With(avx512, {"avx512_vnni"}),
       {{Dot::kDot4, "vpdpbusd.*%zmm"}, {Dot::kFloat, "vfmadd.*%zmm"}},
       "\\{vex\\}"},
      {"NEON", {"asimd"}, {{Dot::kMaddHalves, "smull2?\\s"}, {Dot::kFloat, "fmla\\s"}}, "dot\\s|mmla\\s"},
      {"NEON with dotprod",
       {"asimd", "asimddp"},
       {{Dot::kDot4Signed, "\\ssdot\\s"}, {Dot::kFloat, "fmla\\s"}},
       "usdot\\s|mmla\\s"},
      {"NEON with i8mm",
       {"asimd", "asimddp", "i8mm"},
       {{Dot::kDot4, "\\susdot\\s"}, {Dot::kFloat, "fmla\\s"}},
       "smmla\\s"},
  };
}

class ListingsTest : public testing::TestWithParam<Listed> {};

TEST_P(ListingsTest, HoldTheInstructionMeantAndNoneAbove) {
  const Listed& listed = GetParam();
  chip::Chip chip;
  chip.features = listed.features;
  const kernel::VectorFacts facts = kernel::VectorFactsOf(chip);
  const codegen::Target target = codegen::TargetFor(chip);
  const std::regex above(listed.above);
  int products = 0;
  for (const formats::Format& format : formats::AllFormats()) {
    const auto layout = kernel::LayoutFor(format, facts.lanes);
    if (!layout) continue;
    const kernel::GemvGeometry geometry = kernel::DefaultGeometry(format, facts, false);
    const auto program = kernel::BuildGemv(*layout, geometry,
                                           {.rows = 64, .cols = std::uint64_t{layout->elements} * geometry.unroll * 2});
    ASSERT_TRUE(program) << program.error().Message();
    const auto text = codegen::EmitListing(*program, target, codegen::Listing::kAssembly);
    ASSERT_TRUE(text) << text.error().Message();
    ASSERT_TRUE(listed.intended.contains(geometry.dot)) << format.name << ": " << program->name;
    const std::string& intended = listed.intended.at(geometry.dot);
    EXPECT_TRUE(std::regex_search(*text, std::regex(intended))) << format.name << ": no " << intended << "\n" << *text;
    std::smatch found;
    EXPECT_FALSE(std::regex_search(*text, found, above)) << format.name << ": " << found.str() << "\n" << *text;
    ++products;
  }
  EXPECT_GE(products, 20);
}

INSTANTIATE_TEST_SUITE_P(Chips, ListingsTest, testing::ValuesIn(Chips()), [](const auto& listed) {
  return std::regex_replace(listed.param.name, std::regex("[^A-Za-z0-9]"), "");
});

}  // namespace
}  // namespace boltbeam::kernel_tests
