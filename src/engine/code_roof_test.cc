#include "engine/code_roof.h"

#include <gtest/gtest.h>

#include "chip/test_facts.h"
#include "engine/planned_code.h"
#include "test_model.h"

namespace boltbeam::engine {
namespace {

constexpr std::initializer_list<const char*> kAvx2 = {"pni",  "ssse3", "sse4_1", "sse4_2", "popcnt", "avx",
                                                      "f16c", "fma",   "avx2",   "bmi1",   "bmi2"};

chip::Chip Measured(bool is_wide) {
  chip::Chip chip;
  chip.id = chip.name = "test-cpu";
  chip.backend = "cpu";
  chip.features.assign(kAvx2.begin(), kAvx2.end());
  if (is_wide) {
    for (const char* feature : {"avx512f", "avx512cd", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"})
      chip.features.emplace_back(feature);
  }
  chip::AddMeasured(chip, {{"usable_cpus", 2},
                           {"vector_bits", 512},
                           {"read_bandwidth_gb_s", 50},
                           {"read_bandwidth_gb_s.threads_1", 30},
                           {"read_bandwidth_gb_s.threads_2", 50},
                           {"cache_bandwidth_gb_s", 400},
                           {"vector_instructions_s", 14e9},
                           {"vector_instructions_s.bits_128", 35e9},
                           {"vector_instructions_s.bits_256", 28e9},
                           {"fma_f32_flop_s", 200e9},
                           {"fma_f32_flop_s.bits_256", 210e9},
                           {"dot_i8_flop_s", 800e9},
                           {"madd_i8_flop_s", 500e9},
                           {"madd_i8_flop_s.bits_256", 300e9},
                           {"madd_i16_flop_s", 250e9}});
  return chip;
}

const model::Model& EightB() {
  static const model::Model loaded = model::Model::Load(model::Qwen3EightB().Write()).value();
  return loaded;
}

TEST(CodeRoof, EveryFormatHasThePeakOfItsOwnArithmetic) {
  const auto peak = [](const char* format, const chip::Chip& chip) {
    return PeakOf(*formats::FindFormat(format), chip);
  };
  const chip::Chip vnni = Measured(true), avx2 = Measured(false);
  EXPECT_EQ(peak("Q4_K", vnni).flop_s, 800e9);
  EXPECT_EQ(peak("Q4_K", vnni).from, "dot_i8_flop_s with 512-bit vectors");
  EXPECT_EQ(peak("BF16", vnni).flop_s, 200e9);
  // The same facts held to AVX2: neither the wide dot product nor any other width's rate is its own.
  EXPECT_NEAR(*peak("Q4_K", avx2).flop_s, 300e9, 1);
  EXPECT_EQ(peak("Q4_K", avx2).from, "madd_i8_flop_s with 256-bit vectors");
  EXPECT_NEAR(*peak("BF16", avx2).flop_s, 210e9, 1);
  // Codes of 8 bits take products of halves there, which were not measured so narrow.
  EXPECT_FALSE(peak("Q8_0", avx2).flop_s);
  EXPECT_EQ(peak("Q8_0", avx2).from, "madd_i16_flop_s with 256-bit vectors, not measured (boltbeam chip measure)");
  // A codebook whose numbers are multiplied in two halves.
  EXPECT_NEAR(*peak("IQ4_NL", avx2).flop_s, 150e9, 1);
}

TEST(CodeRoof, AttentionOverCodesIsTwoKindsOfSums) {
  const chip::Chip chip = Measured(true);
  EXPECT_EQ(AttentionPeakOf({}, chip).flop_s, 200e9);
  const model::CacheFormats codes{formats::FindFormat("Q8_0"), formats::FindFormat("Q8_0")};
  EXPECT_NEAR(*AttentionPeakOf(codes, chip).flop_s, 2 / (1 / 800e9 + 1 / 250e9), 1);
}

// Tables and a cache of one format: their sums differ.
TEST(CodeRoof, ACacheOfATablesFormatHasAPeakOfItsOwn) {
  const chip::Chip chip = Measured(true);
  roofline::BoundOptions options;
  options.cache = {formats::FindFormat("Q8_0"), formats::FindFormat("Q8_0")};
  auto roof = roofline::RoofOf(chip);
  ASSERT_TRUE(roof) << roof.error().Message();
  roof->peaks["Q8_0"] = PeakOf(*formats::FindFormat("Q8_0"), chip);
  AddCode(EightB(), chip, options, *roof);
  EXPECT_EQ(roof->peaks.at("Q8_0").flop_s, PeakOf(*formats::FindFormat("Q8_0"), chip).flop_s);
  EXPECT_EQ(roof->peaks.at("attention Q8_0").flop_s, AttentionPeakOf(options.cache, chip).flop_s);
  EXPECT_NE(roof->peaks.at("Q8_0").flop_s, roof->peaks.at("attention Q8_0").flop_s);
}

// Both tables of an answer stand on the bandwidth that was asked for.
TEST(CodeRoof, AStatedBandwidthIsThatOfTheCeilingsToo) {
  auto measured = roofline::RoofOf(Measured(true));
  ASSERT_TRUE(measured);
  AddCode(EightB(), Measured(true), {}, *measured);
  ASSERT_FALSE(measured->threads.empty());
  auto stated = roofline::RoofOf(Measured(true), 2 * measured->bandwidth_gb_s);
  ASSERT_TRUE(stated);
  AddCode(EightB(), Measured(true), {}, *stated);
  double highest = 0;
  for (const auto& [threads, rates] : stated->threads) highest = std::max(highest, rates.memory_gb_s);
  EXPECT_NEAR(highest, 2 * measured->bandwidth_gb_s, 1e-9);
  EXPECT_GT(stated->threads.begin()->second.memory_gb_s, measured->threads.begin()->second.memory_gb_s);
}

TEST(CodeRoof, InstructionsOfEveryPartComeFromTheMachineCode) {
  const std::uint64_t depths[] = {0, 512, 4096};
  const auto code = CodeOfToken(EightB(), Measured(true), {}, depths);
  ASSERT_TRUE(code) << code.error().Message();
  for (const std::string& kernel : code->uncompiled) EXPECT_TRUE(kernel.starts_with("argmax_final")) << kernel;
  ASSERT_EQ(code->depths.size(), 3U);
  const auto of = [&](std::size_t depth, const std::string& role) {
    double sum = 0;
    for (const PartCode& part : code->depths[depth]) sum += part.role == role ? part.vector_instructions.Total() : 0;
    return sum;
  };
  for (const char* role : {"attention", "norm", "rope", "quantize", "lm_head", "ffn_down", "attn_qo"}) {
    EXPECT_GT(of(0, role), 0) << role;
  }
  EXPECT_EQ(of(0, "lm_head"), of(2, "lm_head"));
  // 36 layers, 32 heads, 128 products with a key and 128 with a value, 16 a lane: and as much again for the rest at
  // most.
  const double products = 36.0 * 32 * 256 / 16;
  EXPECT_GT(of(2, "attention") - of(1, "attention"), products * 3584);
  EXPECT_LT(of(2, "attention") - of(1, "attention"), products * 3584 * 2);
}

TEST(CodeRoof, ALesserInstructionSetTakesMore) {
  const std::uint64_t depths[] = {0};
  const auto lm_head = [&](const chip::Chip& chip) {
    double sum = 0;
    const auto code = CodeOfToken(EightB(), chip, {}, depths);
    EXPECT_TRUE(code) << code.error().Message();
    for (const PartCode& part : code->depths.front())
      sum += part.role == "lm_head" ? part.vector_instructions.Total() : 0;
    return sum;
  };
  EXPECT_GT(lm_head(Measured(false)), 2 * lm_head(Measured(true)));
}

TEST(CodeRoof, TheRoofSaysWhatBindsOnHowManyThreads) {
  const chip::Chip chip = Measured(true);
  roofline::Roof roof = *roofline::RoofOf(chip);
  const roofline::BoundOptions options{{0, 4096}, 1, 0};
  AddCode(EightB(), chip, options, roof);
  EXPECT_EQ(roof.instructions_missing, "");
  EXPECT_EQ(roof.threads.at(1).vector_instructions_s,
            (std::map<std::uint32_t, double>{{128, 17.5e9}, {256, 14e9}, {512, 7e9}}));
  const roofline::Bound bound = *roofline::ComputeBound(EightB(), roof, options);
  ASSERT_EQ(bound.pass.ceilings.size(), 2U);
  // Of the tables' bytes, those that are stored: rearranged, Q4_K and Q6_K have as many as in their file.
  EXPECT_NEAR(*bound.pass.ceilings[0].bytes_floor_ns, bound.pass.bytes() / 30, 1);
  double stored = 0;
  for (const roofline::PartInstructions& part : roof.instructions.front()) stored += part.stored_bytes;
  EXPECT_EQ(stored, bound.pass.weight_bytes);
  EXPECT_GT(*bound.depths[1].attention_instructions, *bound.depths[0].attention_instructions);
  for (const roofline::Part& part : bound.parts) {
    // The gate and the search for the largest logit are done inside products.
    const bool is_own = part.role != "activations" && part.role != "gate" && part.role != "argmax";
    EXPECT_EQ(part.instructions.has_value(), is_own) << part.role;
  }
}

TEST(CodeRoof, WhatThereIsNoCodeForIsSaid) {
  chip::Chip gpu = Measured(true);
  gpu.backend = "cuda";
  roofline::Roof roof = *roofline::RoofOf(gpu);
  AddCode(EightB(), gpu, {}, roof);
  EXPECT_TRUE(roof.instructions.empty());
  EXPECT_NE(roof.instructions_missing.find("cuda"), std::string::npos) << roof.instructions_missing;
  const std::uint64_t depths[] = {0};
  EXPECT_EQ(CodeOfToken(EightB(), gpu, {}, depths).error().code, Code::kUsage);
  chip::Chip narrow = Measured(false);
  std::erase_if(narrow.facts, [](const chip::Fact& fact) { return fact.name == "vector_instructions_s.bits_256"; });
  roof = *roofline::RoofOf(narrow);
  AddCode(EightB(), narrow, {}, roof);
  EXPECT_NE(roof.instructions_missing.find("256-bit"), std::string::npos) << roof.instructions_missing;
  // Wide code has narrow instructions too: without their rate its floor would be none.
  chip::Chip wide = Measured(true);
  std::erase_if(wide.facts, [](const chip::Fact& fact) { return fact.name == "vector_instructions_s.bits_128"; });
  roof = *roofline::RoofOf(wide);
  AddCode(EightB(), wide, {}, roof);
  EXPECT_NE(roof.instructions_missing.find("128-bit"), std::string::npos) << roof.instructions_missing;
  roof = *roofline::RoofOf(Measured(true));
  AddCode(EightB(), Measured(true), {{0}, 4, 0}, roof);
  EXPECT_NE(roof.instructions_missing.find("one token"), std::string::npos) << roof.instructions_missing;
}

}  // namespace
}  // namespace boltbeam::engine
