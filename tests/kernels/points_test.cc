// Legal points of the space of geometries, far apart: each is right, and each is machine code of its own.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/hash.h"
#include "chip/facts.h"
#include "codegen/codegen.h"
#include "kernel/knobs.h"
#include "kernel/space.h"
#include "products.h"

namespace boltbeam::kernel_tests {
namespace {

using kernel::GemvGeometry;
using kernel::GemvShape;
using kernel::Knob;
using kernel::SpaceFacts;

/// Tests run what the machine lacks as an exact sequence, so every space can be checked anywhere.
constexpr SpaceFacts kAllOfX86{16, 32, true, true, true};
constexpr GemvShape kShape{.rows = 1024, .cols = 4096};

/// `count` of the points, evenly apart, offset so that every knob's values are met.
std::vector<GemvGeometry> Sample(const std::vector<GemvGeometry>& points, std::size_t count) {
  std::vector<GemvGeometry> sample;
  for (std::size_t i = 0; i < count; ++i) {
    // A step that shares no factor with the knobs' numbers of values meets all of their values.
    sample.push_back(points[(i * 7919 + 13) % points.size()]);
  }
  return sample;
}

class PointsTest : public testing::TestWithParam<const char*> {};

TEST_P(PointsTest, OfASampleAreAllRight) {
  const formats::Format& format = *formats::FindFormat(GetParam());
  const auto points = LegalPoints(format, kShape, kAllOfX86);
  ASSERT_GE(points.size(), 200U);
  std::map<std::string_view, std::set<std::uint32_t>> values;
  for (const GemvGeometry& point : Sample(points, 12)) {
    Product product;
    product.format = &format.Plain();
    product.geometry = point;
    product.shape.rows = point.vectors > 1 ? 2 * point.rows() : point.rows() + 3;
    product.shape.cols = (point.unroll + 1) * std::uint64_t{format.elements};
    product.pattern = point.depth > 1 ? Pattern::kOnes : Pattern::kRandom;
    const Agreement agreement = RunProduct(product);
    EXPECT_TRUE(agreement.Within(1e-5)) << product.Name() << "\n" << agreement.worst << " at " << agreement.where;
    for (const Knob& knob : kernel::GemvKnobs()) values[knob.name].insert(knob.get(point));
  }
  int varied = 0;
  for (const auto& [name, met] : values) varied += met.size() > 1 ? 1 : 0;
  EXPECT_GE(varied, 6);
}

// Every knob alone changes what the machine runs: a search that turns it does not time the same code twice.
TEST_P(PointsTest, EveryKnobChangesTheMachineCode) {
  const formats::Format& format = *formats::FindFormat(GetParam());
  const auto points = LegalPoints(format, kShape, kAllOfX86);
  const auto legal = [&](const GemvGeometry& point) { return Refusals(point, format, kShape, kAllOfX86).empty(); };
  const codegen::Target target = codegen::TargetFor(chip::DetectThisMachine().value());
  const auto code = [&](const GemvGeometry& point) {
    const auto layout = kernel::LayoutFor(format, point);
    const auto program = kernel::BuildGemv(*layout, point, kShape);
    EXPECT_TRUE(program) << kernel::GeometryText(point);
    const auto listing = codegen::EmitListing(*program, target, codegen::Listing::kAssembly);
    EXPECT_TRUE(listing);
    return base::Sha256Hex(listing ? *listing : "");
  };
  int changing = 0;
  for (const Knob& knob : kernel::GemvKnobs()) {
    bool is_done = false;
    for (std::size_t i = 0; i < points.size() && !is_done; i += 97) {
      for (const std::uint32_t value : knob.values) {
        GemvGeometry other = points[i];
        knob.set(other, value);
        if (is_done || other == points[i] || !legal(other)) continue;
        EXPECT_NE(code(points[i]), code(other)) << knob.name << " of " << kernel::GeometryText(points[i]);
        is_done = true;
      }
    }
    changing += is_done ? 1 : 0;
  }
  EXPECT_GE(changing, 6);
}

INSTANTIATE_TEST_SUITE_P(Formats, PointsTest,
                         testing::Values("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q4_K", "Q3_K", "IQ4_NL", "MXFP4"),
                         [](const auto& format) { return std::string(format.param); });

}  // namespace
}  // namespace boltbeam::kernel_tests
