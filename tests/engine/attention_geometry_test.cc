// Attention with each of its knobs turned, against double precision: on the chip's own registers and narrower ones,
// with chunks shorter than the context and longer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chip/facts.h"
#include "engine/attention_choice.h"
#include "kernel/geometry.h"
#include "loaded.h"
#include "model/cache_format.h"
#include "reference_model.h"

namespace boltbeam::engine {
namespace {

constexpr std::ptrdiff_t kPrompt = 120;
constexpr std::size_t kTokens = 140;

std::vector<std::string> Geometries(const model::Model& model, bool is_coded) {
  const kernel::VectorFacts facts = kernel::VectorFactsOf(chip::DetectThisMachine().value());
  std::vector<std::string> legal;
  for (const char* lanes : {"4", "8", "16"}) {
    for (const char* chunk : {"16", "64", "256"}) {
      for (const char* dot : {"maddhalves", "dot4"}) {
        if (!is_coded && std::string_view(dot) == "dot4") continue;  // of keys in codes alone
        const std::string text = fmt::format("lanes={},chunk={},dot={}", lanes, chunk, dot);
        kernel::AttentionShape shape;
        shape.head_dim = model.hyper().head_dim;
        if (AttentionFault(*TurnAttention(text, shape), facts).empty()) legal.push_back(text);
      }
    }
  }
  return legal;
}

/// Logits of tokens that are decoded one by one behind a prompt.
std::vector<std::vector<double>> LogitsWith(const std::string& path, const std::string& cache,
                                            const std::string& geometry, const std::vector<std::int32_t>& tokens) {
  Options options;
  options.cache.keys = options.cache.values = *model::FindCacheFormat("", cache);
  if (!geometry.empty()) options.geometry = {*ParseGeometryChoice("attention:" + geometry)};
  const Loaded loaded = Load(path, options);
  std::vector<std::vector<double>> logits;
  EXPECT_TRUE(loaded.session->Prompt(std::span(tokens).first(kPrompt)));
  for (std::size_t i = kPrompt; i < tokens.size(); ++i) {
    EXPECT_TRUE(loaded.session->Decode(tokens[i]));
    logits.emplace_back(loaded.session->logits().begin(), loaded.session->logits().end());
  }
  return logits;
}

/// In double precision where the cache is of floats; in codes beside the usual geometry, whose distance from that other
/// tests bound: the codes are the same.
void ExpectAllNear(const std::string& spec, const std::string& cache, double most) {
  const std::string path = Synth(spec);
  const auto model = model::Model::Load(path);
  ASSERT_TRUE(model);
  const bool is_coded = cache == "q8_0";
  const std::vector<std::int32_t> tokens = Tokens(kTokens, model->hyper().vocab);
  std::vector<std::vector<double>> expected;
  if (is_coded) {
    expected = LogitsWith(path, cache, "", tokens);
  } else {
    ReferenceModel reference(*model);
    for (const std::int32_t token : tokens) expected.push_back(reference.Append(token));
    expected.erase(expected.begin(), expected.begin() + kPrompt);
  }
  const std::vector<std::string> geometries = Geometries(*model, is_coded);
  ASSERT_GE(geometries.size(), 3U);
  for (const std::string& geometry : geometries) {
    const std::vector<std::vector<double>> found = LogitsWith(path, cache, geometry, tokens);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::vector<float> logits(found[i].begin(), found[i].end());
      EXPECT_LT(Divergence(expected[i], logits), most) << spec << ", " << geometry << ", token " << kPrompt + i;
    }
  }
}

TEST(AttentionGeometry, ExactInFloats) { ExpectAllNear("tiny-qwen3:F32", "f32", 1e-9); }
TEST(AttentionGeometry, ExactWithSlidingWindows) { ExpectAllNear("tiny-gemma3:F32", "f32", 1e-9); }
// Weights of positions are 16 bits of a chunk's largest: other chunks round otherwise, by a tenth of what codes cost.
TEST(AttentionGeometry, NearlyTheSameInCodes) { ExpectAllNear("tiny-llama:F32", "q8_0", 3e-3); }

TEST(AttentionGeometry, WhatIsNotLegalIsRefusedWithTheReason) {
  EXPECT_EQ(ParseGeometryChoice("attention:speed=9").error().code, Code::kUsage);
  EXPECT_EQ(ParseGeometryChoice("attention:lanes=x").error().code, Code::kUsage);
  for (const char* piece : {"tails:piece=0", "tails:piece=", "tails:piece=1k", "tails:rows=1", "tails:piece=-1"}) {
    EXPECT_EQ(ParseGeometryChoice(piece).error().code, Code::kUsage) << piece;
  }
  kernel::AttentionShape shape;
  shape.head_dim = 64;
  const kernel::VectorFacts facts{.lanes = 8, .registers = 16};
  const auto fault = [&](const char* text) { return AttentionFault(*TurnAttention(text, shape), facts); };
  EXPECT_EQ(fault("lanes=8,chunk=64"), "");
  EXPECT_EQ(fault("lanes=16"), "registers of 16 lanes, 8 there");
  EXPECT_NE(fault("chunk=48").find("a power of two"), std::string::npos);
  EXPECT_EQ(fault("dot=dot4"), "no four-way dot product of bytes there");
  EXPECT_EQ(fault("lanes=8,chunk=1024"), "");
  shape.value = {kernel::Memory::kU8, 32};
  EXPECT_EQ(fault("lanes=8,chunk=512"), "");
  EXPECT_EQ(
      fault("lanes=8,chunk=1024"),
      "1024 values in codes of up to 128 times weights of up to 32767 sum to 4294836224: 32 bits hold 2147483647");
  shape.value = {};
  shape.head_dim = 36;
  EXPECT_EQ(fault("lanes=8"), "heads of 36 in vectors of 8");
  const GeometryChoice choices[] = {{"attention", "chunk=64"}, {"attention", "lanes=16"}};
  EXPECT_EQ(AttentionFor(choices, shape, facts).error().code, Code::kKernelIllegal);
  EXPECT_EQ(AttentionText(*TurnAttention("lanes=4,chunk=32,dot=dot4", {})), "lanes=4,chunk=32,dot=dot4");
  EXPECT_EQ(AttentionText(*TurnAttention("dot=dot4,prefetch=4096", {})), "lanes=8,chunk=128,dot=dot4,prefetch=4096");
}

}  // namespace
}  // namespace boltbeam::engine
