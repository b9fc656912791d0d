#include "kernel/space.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "formats/format.h"
#include "kernel/geometry.h"
#include "kernel/knobs.h"

namespace boltbeam::kernel {
namespace {

constexpr SpaceFacts kVnni{16, 32, true, true, false};
constexpr SpaceFacts kAvx512{16, 32, false, true, false};
constexpr SpaceFacts kAvx2{8, 16, false, true, false};
constexpr SpaceFacts kPlain{4, 16, false, false, false};
constexpr SpaceFacts kArm{4, 32, false, false, true};
constexpr GemvShape kShape{.rows = 4096, .cols = 4096};

const formats::Format& Named(const std::string& name) { return *formats::FindFormat(name); }

VectorFacts ToVectorFacts(const SpaceFacts& facts) {
  return {static_cast<std::uint16_t>(*facts.lanes), *facts.registers, *facts.has_dot4, *facts.has_madd_bytes,
          *facts.has_dot4_signed};
}

/// Every point of the free product.
template <typename Visit>
void ForEachPoint(const Visit& visit, GemvGeometry point = {}, std::size_t index = 0) {
  const auto knobs = GemvKnobs();
  if (index == knobs.size()) return visit(point);
  for (const std::uint32_t value : knobs[index].values) {
    knobs[index].set(point, value);
    ForEachPoint(visit, point, index + 1);
  }
}

/// Evidence of the refusals of one kind.
std::string Evidence(const std::vector<Reason>& reasons, Refusal refusal) {
  std::string text;
  for (const Reason& reason : reasons)
    if (reason.refusal == refusal) text += reason.evidence + "\n";
  return text;
}

TEST(SpaceTest, HoldsExactlyTheLegalPointsOfTheFreeProduct) {
  for (const char* name : {"Q4_K", "Q8_0", "IQ4_XS", "F16"}) {
    for (const SpaceFacts& facts : {kVnni, kAvx2}) {
      std::vector<GemvGeometry> expected;
      std::uint64_t all = 0;
      ForEachPoint([&](const GemvGeometry& point) {
        ++all;
        if (Refusals(point, Named(name), kShape, facts).empty()) expected.push_back(point);
      });
      EXPECT_EQ(all, FreeProduct());
      EXPECT_EQ(LegalPoints(Named(name), kShape, facts), expected) << name;
    }
  }
}

TEST(SpaceTest, HasHundredsOfPointsThatDifferInManyKnobs) {
  for (const char* name : {"Q4_K", "Q5_K", "Q6_K", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q2_K", "Q3_K", "IQ4_XS", "MXFP4"}) {
    for (const SpaceFacts& facts : {kVnni, kAvx512, kAvx2}) {
      const std::vector<GemvGeometry> points = LegalPoints(Named(name), kShape, facts);
      EXPECT_GE(points.size(), 200U) << name;
      int varied = 0;
      for (const Knob& knob : GemvKnobs()) {
        std::set<std::uint32_t> values;
        for (const GemvGeometry& point : points) values.insert(knob.get(point));
        varied += values.size() > 1 ? 1 : 0;
      }
      EXPECT_GE(varied, 6) << name;
    }
  }
}

TEST(SpaceTest, HoldsTheDefaultPoint) {
  for (const formats::Format& format : formats::AllFormats()) {
    if (!LayoutFor(format, 8)) continue;
    for (const SpaceFacts& facts : {kVnni, kAvx512, kAvx2, kPlain, kArm}) {
      const GemvGeometry point = DefaultGeometry(format, ToVectorFacts(facts), false);
      for (const Reason& reason : Refusals(point, format, kShape, facts)) {
        ADD_FAILURE() << format.name << " " << GeometryText(point) << ": " << RefusalName(reason.refusal) << ": "
                      << reason.evidence;
      }
    }
  }
}

// Codes of eight bits are multiplied as pairs of bytes in two halves, of which as many fit in 16 bits as a sub-block
// has.
TEST(SpaceTest, WideCodesInHalvesAddUpInSixteenBits) {
  const auto point =
      ParseGeometry("lanes=8,dot=maddbytes,depth=8", DefaultGeometry(Named("Q8_0"), ToVectorFacts(kAvx2), false));
  EXPECT_TRUE(Refusals(*point, Named("Q8_0"), kShape, kAvx2).empty());
}

TEST(SpaceTest, SaysWhyAPointIsNotLegal) {
  const auto why = [](const char* format, const char* turned, const SpaceFacts& facts, Refusal refusal,
                      GemvShape shape = kShape) {
    GemvGeometry base = DefaultGeometry(Named(format), ToVectorFacts(kAvx2), false);
    const auto point = ParseGeometry(turned, base);
    EXPECT_TRUE(point) << turned;
    return Evidence(Refusals(*point, Named(format), shape, facts), refusal);
  };
  EXPECT_EQ(why("Q4_K", "lanes=16", kAvx2, Refusal::kInstruction), "registers of 512 bits needed, 256 there\n");
  EXPECT_EQ(why("Q4_K", "dot=dot4,depth=1", kAvx2, Refusal::kInstruction),
            "a four-way dot product of bytes needed, none there\n");
  EXPECT_EQ(why("Q4_K", "dot=dot4signed,depth=1", kAvx2, Refusal::kInstruction),
            "a four-way dot product of signed bytes needed, none there\n");
  EXPECT_EQ(why("Q4_K", "vectors=4", kAvx2, Refusal::kRegisters), "37 vector registers at least, 16 there\n");
  EXPECT_EQ(why("Q4_K", "lanes=3", kAvx2, Refusal::kDivisibility),
            "3 lanes fill no vector register\ngroups of 3 rows, 4096 rows\n");
  EXPECT_EQ(why("Q4_K", "unroll=32", kAvx2, Refusal::kDivisibility), "32 blocks a turn, a row has 16\n");
  EXPECT_EQ(why("Q4_K", "chains=3,depth=1", kAvx2, Refusal::kDivisibility), "3 chains for 8 products\n");
  EXPECT_EQ(why("Q4_K", "order=free", kAvx2, Refusal::kDivisibility, {.rows = 64, .cols = 100}),
            "100 columns, blocks of 256\n");
  EXPECT_EQ(why("Q4_K", "vectors=4", kAvx2, Refusal::kDivisibility, {.rows = 40, .cols = 256}),
            "groups of 32 rows, 40 rows\n");
  EXPECT_EQ(why("Q6_K", "depth=4", kAvx2, Refusal::kOverflow), "4 pairs in 16 bits: 2 fit\n");
  EXPECT_EQ(why("Q4_K", "unroll=8", kAvx2, Refusal::kCodeSize).empty(), false);
  EXPECT_EQ(why("Q4_K", "dot=fma,depth=1", kAvx2, Refusal::kFormat),
            "float weights take float products, and only they\n");
  EXPECT_EQ(why("F16", "scales=words", kAvx2, Refusal::kNoMeaning), "no block has a scale\n");
  EXPECT_EQ(why("Q6_K", "scales=bytes", kAvx2, Refusal::kNoMeaning), "scales are bytes already\n");
  EXPECT_EQ(why("Q4_K", "hint=once", kAvx2, Refusal::kNoMeaning), "a hint, but nothing is fetched\n");
  EXPECT_EQ(why("Q4_K", "every=2", kAvx2, Refusal::kNoMeaning), "some lines of none\n");
  EXPECT_EQ(why("F16", "unroll=4,prefetch=1024,every=2", kAvx2, Refusal::kNoMeaning), "one line of 2: a turn has 1\n");
  EXPECT_EQ(why("Q4_K", "dot=maddhalves,depth=2", kAvx2, Refusal::kNoMeaning),
            "only pairs of bytes are added in 16 bits\n");
  EXPECT_EQ(why("Q4_K", "chains=2,depth=8", kAvx2, Refusal::kNoMeaning), "2 chains of 8 pairs: a sub-block has 8\n");
  EXPECT_EQ(why("Q4_K", "unroll=0", kAvx2, Refusal::kNoMeaning), "a knob at 0 makes no product\n");
}

/// A row that somebody might add: blocks of 8-bit codes, and scales of 8 bits for every 32 of them.
formats::Format Wide(std::uint32_t elements) {
  const std::uint32_t subs = elements / 32, bytes = elements + subs + 2;
  const std::string types = fmt::format(
      R"({{"types": [{{"name": "W", "type": 200, "elements": {}, "bytes": {}, "source": "this test"}}],
          "removed_types": []}})",
      elements, bytes);
  const std::string rows = fmt::format(
      R"({{"formats": [{{"name": "W", "elements": {0}, "bytes": {1}, "elements_per_scale": 32,
        "codes": {{"bits": 8, "signed": false, "bias": 0, "pieces": [
          {{"width": 8, "shift": 0, "base_bit": 0, "digits": [[{0}, 8]]}}]}},
        "scales": {{"bits": 8, "signed": false, "bias": 0, "pieces": [
          {{"width": 8, "shift": 0, "base_bit": {2}, "digits": [[{3}, 8]]}}]}},
        "minimums": null, "m": null, "d": {{"base_bit": {4}, "encoding": "f16"}}, "codebook": []}}]}})",
      elements, bytes, elements * 8, subs, (elements + subs) * 8);
  const auto registry = formats::ParseRegistry(types, rows);
  EXPECT_TRUE(registry) << registry.error().Message();
  return registry ? registry->formats.front() : formats::Format{};
}

TEST(SpaceTest, SumsThatLeaveTheirBitsAreRefused) {
  const formats::Format fits = Wide(256), overflows = Wide(512);
  GemvGeometry point = DefaultGeometry(fits, ToVectorFacts(kVnni), false);
  EXPECT_TRUE(Refusals(point, fits, kShape, kVnni).empty());
  point = DefaultGeometry(overflows, ToVectorFacts(kVnni), false);
  EXPECT_EQ(
      Evidence(Refusals(point, overflows, kShape, kVnni), Refusal::kOverflow),
      "512 codes of up to 255 times activations of up to 127 times scales of up to 255 sum to 4228185600: 32 bits "
      "hold 2147483647\n");
  EXPECT_TRUE(LegalPoints(overflows, kShape, kVnni).empty());
  const auto layout = LayoutFor(overflows, point);
  ASSERT_TRUE(layout) << layout.error().Message();
  const auto built = BuildGemv(*layout, point, kShape);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, Code::kKernelIllegal);
  EXPECT_NE(built.error().found.find("32 bits hold"), std::string::npos) << built.error().found;
}

TEST(SpaceTest, BlocksBelowAWordAreRefused) {
  formats::Format tiny = Wide(32);
  tiny.bytes = 3;
  const auto layout = LayoutFor(tiny, 8);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code, Code::kKernelIllegal);
  EXPECT_EQ(layout.error().found, "blocks of 3 bytes");
}

TEST(SpaceTest, NoFormatOfTheRegistryLeavesItsBits) {
  for (const formats::Format& format : formats::AllFormats()) {
    const auto layout = LayoutFor(format, 8);
    if (layout) {
      EXPECT_EQ(SumOverflow(*layout), "") << format.name;
    }
  }
}

TEST(SpaceTest, AMissingFactIsARefusal) {
  const GemvGeometry point = DefaultGeometry(Named("Q4_K"), ToVectorFacts(kAvx2), false);
  EXPECT_EQ(Evidence(Refusals(point, Named("Q4_K"), kShape, {}), Refusal::kMissingFact),
            "the width of vector registers is not known\n"
            "whether there is a product of pairs of bytes is not known\n"
            "the number of vector registers is not known\n");
  EXPECT_TRUE(LegalPoints(Named("Q4_K"), kShape, {}).empty());
  chip::Chip chip;
  chip.backend = "cpu";
  EXPECT_FALSE(SpaceFactsOf(chip).lanes);
  chip.features = {"avx2", "fma", "f16c"};
  EXPECT_EQ(SpaceFactsOf(chip).lanes, 8U);
  chip.backend = "cuda";
  EXPECT_FALSE(SpaceFactsOf(chip).lanes);
}

TEST(KnobsTest, AGeometryIsItsText) {
  for (const GemvGeometry& point : LegalPoints(Named("Q4_K"), kShape, kVnni)) {
    const auto parsed = ParseGeometry(GeometryText(point), {});
    ASSERT_TRUE(parsed);
    ASSERT_EQ(*parsed, point);
  }
  EXPECT_EQ(GeometryText({}),
            "lanes=8,scales=packed,vectors=1,dot=maddhalves,unroll=1,chains=1,depth=1,order=ascending,prefetch=0,hint="
            "near,every=1");
}

TEST(KnobsTest, WhatIsNotKnownIsRefusedByName) {
  for (const char* text : {"speed=9", "lanes", "lanes=x", "lanes=70000", "dot=abacus", "unroll=", ",", "order=1"}) {
    const auto parsed = ParseGeometry(text, {});
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kUsage) << text;
  }
  EXPECT_NE(ParseGeometry("speed=9", {}).error().Message().find("lanes, scales, vectors"), std::string::npos);
  EXPECT_NE(ParseGeometry("dot=abacus", {}).error().Message().find("dot4, dot4signed, maddbytes"), std::string::npos);
  EXPECT_TRUE(ParseGeometry("", {}));
}

}  // namespace
}  // namespace boltbeam::kernel
