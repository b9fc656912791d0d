#include "model/token_graph.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test_model.h"

namespace boltbeam::model {
namespace {

struct Totals {
  std::uint64_t weights = 0, activations = 0, kv = 0, append = 0, weight_flops = 0, attention_flops = 0;
};

Totals Sum(const Model& model, const GraphOptions& options) {
  Totals totals;
  for (const Operation& operation : BuildTokenGraph(model, options)) {
    totals.kv += operation.kv_bytes;
    totals.append += operation.kv_append_bytes;
    if (operation.kind == OpKind::kAttention) totals.attention_flops += operation.flops;
    if (operation.kind != OpKind::kMatmul) continue;
    totals.weights += operation.weight_bytes;
    totals.activations += operation.activation_bytes;
    totals.weight_flops += operation.flops;
  }
  return totals;
}

TEST(TokenGraph, GoldenTotalsOfQwen3EightB) {
  const Model model = Model::Load(Qwen3EightB().Write()).value();
  const Totals token = Sum(model, {});
  EXPECT_EQ(token.weights, 4670533632u);
  EXPECT_EQ(token.weights + token.activations, 4676301568u);
  EXPECT_EQ(token.kv, 0u);
  EXPECT_EQ(token.append, 147456u);
  GraphOptions deep;
  deep.depth = 512;
  EXPECT_EQ(Sum(model, deep).kv, 75497472u);
  GraphOptions prompt;
  prompt.tokens = 512;
  EXPECT_EQ(Sum(model, prompt).weight_flops, 7113710501888u) << "in the layers, and the head once";
  EXPECT_EQ(Sum(model, prompt).attention_flops, 36ull * 4 * 32 * 128 * (512 * 513 / 2));
  prompt.head_once = false;
  EXPECT_EQ(Sum(model, prompt).weights + Sum(model, prompt).activations, 7623716864u) << "golden identity m512";
  EXPECT_EQ(Sum(model, prompt).weight_flops, 7749731614720u) << "golden m512 with the head for every token";
}

TEST(TokenGraph, SequencesHaveTheirOwnCacheTokensShareIt) {
  TestModel file("qwen3");
  const Model model = Model::Load(file.Write()).value();
  GraphOptions options;
  options.depth = 100;
  const std::uint64_t one = Sum(model, options).kv;
  options.sequences = 4;
  EXPECT_EQ(Sum(model, options).kv, 4 * one);
  EXPECT_EQ(Sum(model, options).attention_flops, 4ull * 2 * 4 * 256 * 101);
  options.sequences = 1;
  options.tokens = 4;
  EXPECT_EQ(Sum(model, options).kv, one);
  EXPECT_EQ(Sum(model, options).attention_flops, 2ull * 4 * 256 * (101 + 102 + 103 + 104));
}

TEST(TokenGraph, TheCachesFormatsSayWhatIsReadAndAppended) {
  TestModel file("qwen3");
  const Model model = Model::Load(file.Write()).value();
  GraphOptions options;
  options.depth = 100;
  options.cache = {FindCacheFormat("-ctk", "q8_0").value(), FindCacheFormat("-ctv", "f32").value()};
  EXPECT_EQ(options.cache.Name(), "Q8_0/F32");
  const std::uint64_t elements = 2 * 64, position = elements / 32 * 34 + elements * 4;
  EXPECT_EQ(Sum(model, options).kv, 2 * 100 * position);
  EXPECT_EQ(Sum(model, options).append, 2 * position);
}

TEST(CacheFormat, OnlyWhatAPassCanWrite) {
  EXPECT_EQ(CacheFormatNames(), (std::vector<std::string>{"f16", "f32", "q8_0"}));
  for (const char* name : {"Q8_0", "q4_0", "bf16", "tq2_0", ""}) {
    EXPECT_EQ(FindCacheFormat("-ctk", name).error().code, Code::kUsage) << name;
  }
}

TEST(TokenGraph, WindowsLimitWhatIsRead) {
  TestModel file("gemma3", {6, 256, 512, 4, 2, 64, 320});
  file.Set("attention.sliding_window", 128u);
  const Model model = Model::Load(file.Write()).value();
  GraphOptions options;
  options.depth = 1000;
  const std::uint64_t per_position = 2 * 128 * 2;
  EXPECT_EQ(Sum(model, options).kv, per_position * (5 * 128 + 1000));
  options.depth = 126;
  options.tokens = 4;  // 127, 128, 128, 128 in windowed layers; 127 to 130 in the global one
  EXPECT_EQ(Sum(model, options).attention_flops, 4ull * 256 * (5 * (127 + 3 * 128) + 127 + 128 + 129 + 130));
}

TEST(TokenGraph, OrderOfALayer) {
  TestModel file("qwen2");
  const Model model = Model::Load(file.Write()).value();
  const std::vector<Operation> graph = BuildTokenGraph(model, {});
  std::string order;
  for (std::size_t i = 0; i < 14; ++i) order += graph[i].role + (graph[i].adds_residual ? "+ " : " ");
  EXPECT_EQ(
      order,
      "embed norm attn_qo attn_kv attn_kv rope attention attn_qo+ norm ffn_gate_up ffn_gate_up gate ffn_down+ norm ");
  EXPECT_EQ(graph.back().kind, OpKind::kArgmax);
  EXPECT_NE(graph[2].bias, nullptr);
  EXPECT_EQ(graph[2].weights, model.Find(Role::kAttnQ, 0));
  EXPECT_EQ(graph.size(), 1u + 2 * 12 + 3);
}

TEST(TokenGraph, PostNormsTakeTheResidual) {
  TestModel file("gemma3");
  file.Set("attention.sliding_window", 512u);
  const Model model = Model::Load(file.Write()).value();
  int residuals = 0;
  for (const Operation& operation : BuildTokenGraph(model, {})) {
    if (!operation.adds_residual) continue;
    ++residuals;
    EXPECT_EQ(operation.kind, OpKind::kNorm);
  }
  EXPECT_EQ(residuals, 4);
}

}  // namespace
}  // namespace boltbeam::model
