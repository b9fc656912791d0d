// Which knobs of a product are more than names: turned alone, they change the machine code.
#include <gtest/gtest.h>

#include <algorithm>

#include "chip/test_facts.h"
#include "codegen/codegen.h"
#include "kernel/families/gemv.h"
#include "kernel/geometry.h"
#include "kernel/knobs.h"
#include "search/fit.h"
#include "search/propose.h"

namespace boltbeam::search {
namespace {

std::string CodeOf(const Part& part, const kernel::GemvGeometry& point, const codegen::Target& target) {
  const kernel::WeightLayout layout = kernel::LayoutFor(*part.format, point).value();
  return codegen::Compile(kernel::BuildGemv(layout, point, part.shape()).value(), target).value();
}

/// The knobs of which two values, all others equal, make two codes: from the default point, or else from the first
/// legal one that has a neighbour.
std::string KnobsOfCode(const char* table) {
  const chip::Chip chip = chip::MeasuredTestCpu();
  const codegen::Target target = codegen::TargetFor(chip);
  const Part part = *PartOfTable(table);
  const std::vector<kernel::GemvGeometry> legal = ProposeProduct(part, chip).points;
  EXPECT_GE(legal.size(), 200U) << table;
  const kernel::GemvGeometry usual = kernel::DefaultGeometry(*part.format, kernel::VectorFactsOf(chip), false);
  std::string names;
  for (const kernel::Knob& knob : kernel::GemvKnobs()) {
    const auto turned = [&](kernel::GemvGeometry point) -> std::optional<kernel::GemvGeometry> {
      const std::uint32_t now = knob.get(point);
      for (const std::uint32_t value : knob.values) {
        knob.set(point, value);
        if (value != now && std::ranges::find(legal, point) != legal.end()) return point;
      }
      return std::nullopt;
    };
    auto point = std::ranges::find(legal, usual);
    if (!turned(usual))
      point = std::ranges::find_if(legal, [&](const auto& other) { return turned(other).has_value(); });
    if (point == legal.end()) continue;
    if (CodeOf(part, *point, target) != CodeOf(part, *turned(*point), target)) names += std::string(knob.name) + " ";
  }
  return names;
}

TEST(KnobCodeTest, EveryKnobChangesTheCode) {
  EXPECT_EQ(KnobsOfCode("Q4_K.4096x4096"), "lanes scales vectors dot unroll chains depth order prefetch hint every ");
  EXPECT_EQ(KnobsOfCode("Q8_0.4096x4096"), "lanes scales vectors dot unroll chains depth order prefetch hint every ");
}

}  // namespace
}  // namespace boltbeam::search
