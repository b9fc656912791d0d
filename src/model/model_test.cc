#include "model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/architecture.h"
#include "test_model.h"

namespace boltbeam::model {
namespace {

Code LoadCode(TestModel& file) {
  const Result<Model> model = Model::Load(file.Write());
  return model ? Code::kCount : model.error().code;
}

std::string LoadMessage(TestModel& file) {
  const Result<Model> model = Model::Load(file.Write());
  return model ? "" : model.error().Message();
}

TEST(Load, EveryArchitectureOfTheRegistry) {
  const ArchitectureRegistry registry = LoadArchitectures().value();
  for (const ArchitectureRow& row : registry.rows) {
    TestModel file(row.architecture.name);
    if (row.sliding_window) file.Set("attention.sliding_window", 512u);
    const Result<Model> model = Model::Load(file.Write());
    ASSERT_TRUE(model) << model.error().Message();
    EXPECT_EQ(model->hyper().layers, 2u);
    EXPECT_EQ(model->hyper().vocab, 320u) << "from the embedding's shape";
    EXPECT_DOUBLE_EQ(model->hyper().attention_scale, 0.125);
    EXPECT_FALSE(model->tied());
    const bool may_have_bias = std::ranges::count(row.tensors, Role::kAttnQBias, &TensorRule::role) > 0;
    EXPECT_EQ(model->architecture().qkv_bias, may_have_bias);
    EXPECT_EQ(CheckRunnable(*model).has_value(), row.architecture.runnable);
  }
}

TEST(Load, DefaultsOfKeys) {
  TestModel file("llama");
  for (const char* key :
       {"attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.freq_base"}) {
    file.Erase(key);
  }
  for (const char* name : {"attn_k", "attn_v"}) {
    for (const char* layer : {"0", "1"}) file.Find(std::string("blk.") + layer + "." + name + ".weight").shape[1] = 256;
  }
  const Model model = Model::Load(file.Write()).value();
  EXPECT_EQ(model.hyper().kv_heads, 4u);
  EXPECT_EQ(model.hyper().head_dim, 64u);
  EXPECT_EQ(model.hyper().rope_dims, 64u);
  EXPECT_DOUBLE_EQ(model.hyper().rope_base, 10000);
}

TEST(Load, TiedHeadIsTheEmbedding) {
  TestModel file("qwen3");
  file.Remove("output.weight");
  const Model model = Model::Load(file.Write()).value();
  EXPECT_TRUE(model.tied());
  EXPECT_EQ(&model.head(), model.Find(Role::kEmbedding));
}

TEST(Load, RopeFrequenciesAndLinearScaling) {
  TestModel file("llama");
  file.AddTable("rope_freqs.weight", "F32", {32});
  file.Set("rope.scaling.type", "linear");
  file.Set("rope.scaling.factor", 4.0f);
  const Model model = Model::Load(file.Write()).value();
  EXPECT_NE(model.Find(Role::kRopeFrequencies), nullptr);
  EXPECT_DOUBLE_EQ(model.hyper().rope_frequency_scale, 0.25);
}

TEST(Load, ListsPerLayerAreReadWhenTheyAgree) {
  TestModel file("qwen3");
  file.Set("attention.head_count_kv", std::vector<std::int32_t>{2, 2});
  EXPECT_EQ(Model::Load(file.Write())->hyper().kv_heads, 2u);
  file.Set("attention.head_count_kv", std::vector<std::int32_t>{2, 1});
  EXPECT_EQ(LoadCode(file), Code::kModelUnsupportedKey);
}

TEST(Load, AVocabularySizeThatDisagreesIsAWarning) {
  TestModel file("llama");
  file.Set("vocab_size", 319u);
  const Model model = Model::Load(file.Write()).value();
  ASSERT_EQ(model.warnings().size(), 1u);
  EXPECT_NE(model.warnings()[0].find("319"), std::string::npos);
}

TEST(Refuse, UnknownArchitecture) {
  TestModel file("wavenet");
  EXPECT_EQ(LoadCode(file), Code::kModelArchitecture);
  EXPECT_NE(LoadMessage(file).find("wavenet"), std::string::npos);
}

TEST(Refuse, UnknownTensorByName) {
  TestModel file("llama");
  file.AddTable("blk.1.attn_surprise.weight", "F32", {256});
  EXPECT_EQ(LoadCode(file), Code::kModelUnknownTensor);
  EXPECT_NE(LoadMessage(file).find("blk.1.attn_surprise.weight"), std::string::npos);
  file.Remove("blk.1.attn_surprise.weight");
  file.AddTable("blk.01.attn_norm.weight", "F32", {256});
  EXPECT_EQ(LoadCode(file), Code::kModelUnknownTensor) << "a layer has one spelling";
}

TEST(Refuse, TensorsOfKindsThatAreNotSupported) {
  for (const char* name : {"blk.0.attn_qkv.weight", "blk.0.ffn_gate_exps.weight", "blk.0.ssm_in.weight"}) {
    TestModel file("llama");
    file.AddTable(name, "F32", {256, 8});
    EXPECT_EQ(LoadCode(file), Code::kModelUnsupportedTensor) << name;
  }
}

TEST(Refuse, Class53AbsurdParameters) {
  for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length",
                          "attention.head_count", "attention.head_count_kv", "attention.key_length"}) {
    for (const std::uint32_t value : {0u, 4000000000u}) {
      TestModel file("qwen3");
      file.Set(key, value);
      EXPECT_EQ(LoadCode(file), Code::kModelParameterRange) << key << " " << value;
    }
  }
  TestModel huge("llama");
  huge.Find("token_embd.weight").shape[1] = 1u << 25;
  EXPECT_EQ(LoadCode(huge), Code::kModelParameterRange) << "vocabulary";
  TestModel empty("qwen3");
  empty.Set("attention.head_count_kv", std::vector<std::int32_t>{});
  EXPECT_EQ(LoadCode(empty), Code::kModelParameterRange) << "an empty list";
}

TEST(Refuse, Class54ParametersThatContradictEachOther) {
  TestModel heads("qwen3");
  heads.Set("attention.head_count_kv", 3u);
  EXPECT_EQ(LoadCode(heads), Code::kModelParameterMismatch);
  TestModel hidden("llama");
  hidden.Erase("attention.key_length");
  hidden.Set("attention.head_count", 6u);
  EXPECT_EQ(LoadCode(hidden), Code::kModelParameterMismatch);
  for (const std::uint32_t dims : {63u, 66u}) {
    TestModel rope("llama");
    rope.Set("rope.dimension_count", dims);
    EXPECT_EQ(LoadCode(rope), Code::kModelParameterMismatch) << dims;
  }
}

TEST(Refuse, Class55MoreExpertsUsedThanThereAre) {
  TestModel file("llama");
  file.Set("expert_count", 4u);
  file.Set("expert_used_count", 5u);
  EXPECT_EQ(LoadCode(file), Code::kModelExpertCount);
  file.Set("expert_used_count", 2u);
  EXPECT_EQ(LoadCode(file), Code::kModelUnsupportedKey) << "a mixture";
  file.Set("expert_count", 0u);
  file.Set("expert_used_count", 0u);
  EXPECT_EQ(LoadCode(file), Code::kCount) << "no experts";
}

TEST(Refuse, Class56FloatsThatAreNotFiniteAndPositive) {
  for (const char* key :
       {"attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.scaling.factor", "attention.scale"}) {
    for (const float value : {0.0f, -1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
      TestModel file("llama");
      file.Set(key, value);
      EXPECT_EQ(LoadCode(file), Code::kModelParameterFloat) << key << " " << value;
    }
  }
  TestModel file("llama");
  file.Set("rope.scaling.type", "yarn");
  EXPECT_EQ(LoadCode(file), Code::kModelRopeScaling);
}

TEST(Refuse, Class57ShapesThatTheParametersDoNotImply) {
  TestModel file("qwen3");
  file.Find("blk.1.attn_k.weight").shape = {256, 256};
  EXPECT_EQ(LoadCode(file), Code::kModelTensorShape);
  EXPECT_NE(LoadMessage(file).find("[256, 256]; expected [256, 128] from [hidden, kv]"), std::string::npos);
  file.Find("blk.1.attn_k.weight").shape = {256, 128, 2};
  EXPECT_EQ(LoadCode(file), Code::kModelTensorShape);
}

TEST(Refuse, Class58MissingAndExtraLayers) {
  TestModel missing("qwen3");
  missing.Remove("blk.1.ffn_up.weight");
  EXPECT_EQ(LoadCode(missing), Code::kModelMissingTensor);
  EXPECT_NE(LoadMessage(missing).find("blk.1.ffn_up.weight"), std::string::npos);
  TestModel no_embedding("qwen3");
  no_embedding.Remove("token_embd.weight");
  EXPECT_EQ(LoadCode(no_embedding), Code::kModelMissingTensor);
  TestModel extra("qwen3");
  extra.AddTable("blk.2.attn_norm.weight", "F32", {256});
  EXPECT_EQ(LoadCode(extra), Code::kModelExtraLayer);
  TestModel no_bias("qwen2");
  no_bias.Remove("blk.0.attn_q.bias");
  EXPECT_EQ(LoadCode(no_bias), Code::kModelMissingTensor);
}

TEST(Refuse, Class59KvCacheThatDoesNotFit) {
  HyperParameters hyper;
  hyper.layers = 36;
  hyper.kv_heads = 8;
  hyper.head_dim = 128;
  EXPECT_EQ(KvCacheBytes(hyper, 512, 2, 1u << 30).value(), 75497472u);
  EXPECT_EQ(KvCacheBytes(hyper, 1u << 20, 2, 1u << 30).error().code, Code::kModelKvCacheSize);
  EXPECT_EQ(KvCacheBytes(hyper, ~std::uint64_t{0}, 2, ~std::uint64_t{0}).error().code, Code::kModelKvCacheSize);
}

TEST(Refuse, Class60TypesThatNoKernelCanBeGeneratedFor) {
  const formats::Format* opaque = nullptr;
  for (const formats::Format& format : formats::AllFormats()) {
    if (!format.IsKnown() && format.elements <= 256) opaque = &format;
  }
  ASSERT_NE(opaque, nullptr);
  TestModel file("llama");
  file.Find("blk.0.ffn_up.weight").type = opaque->type;
  const Model model = Model::Load(file.Write()).value();
  EXPECT_EQ(CheckRunnable(model).error().code, Code::kModelUnsupportedType);
}

TEST(Refuse, RunningWhatIsOnlyInspected) {
  TestModel file("gemma2");
  file.Set("attention.sliding_window", 512u);
  const Model model = Model::Load(file.Write()).value();
  EXPECT_EQ(CheckRunnable(model).error().code, Code::kModelNotRunnable);
  EXPECT_NE(CheckRunnable(model).error().found.find("capped"), std::string::npos);
}

TEST(Refuse, KeysThatAskForMore) {
  TestModel file("llama");
  file.Set("attn_logit_softcapping", 50.0f);
  EXPECT_EQ(LoadCode(file), Code::kModelUnsupportedKey);
  TestModel lengths("llama");
  lengths.Set("attention.value_length", 32u);
  EXPECT_EQ(LoadCode(lengths), Code::kModelUnsupportedKey);
}

TEST(Registry, RefusesABrokenRow) {
  EXPECT_EQ(ParseArchitectures("{").error().code, Code::kJson);
  EXPECT_EQ(ParseArchitectures("{}").error().code, Code::kJson);
  EXPECT_EQ(FindRole("attn_q"), Role::kAttnQ);
  EXPECT_FALSE(FindRole("attn_z").has_value());
}

TEST(Window, LocalLayersRotateByTheirOwnBase) {
  TestModel file("gemma3");
  file.Set("attention.sliding_window", 512u);
  file.Set("rope.freq_base", 5e5f);
  EXPECT_DOUBLE_EQ(Model::Load(file.Write())->hyper().local_rope_base, 10000);
  file.Set("rope.freq_base_swa", 2e4f);
  const Model model = Model::Load(file.Write()).value();
  EXPECT_DOUBLE_EQ(model.hyper().local_rope_base, 20000);
  EXPECT_DOUBLE_EQ(model.hyper().rope_base, 500000);
  EXPECT_TRUE(model.hyper().IsLocal(4));
  EXPECT_FALSE(model.hyper().IsLocal(5));
}

TEST(Window, ScoresAreScaledByTheHeadUnlessTheRowSaysOtherwise) {
  TestModel file("gemma3");
  file.Set("attention.sliding_window", 512u);
  EXPECT_DOUBLE_EQ(Model::Load(file.Write())->hyper().attention_scale, 0.125);
  TestModel large("gemma3", {62, 256, 32, 4, 2, 32, 320});
  large.Set("attention.sliding_window", 512u);
  EXPECT_DOUBLE_EQ(Model::Load(large.Write())->hyper().attention_scale, 0.125) << "hidden / heads is 64, a head 32";
}

TEST(Window, LayersReadAsManyPositionsAsTheySee) {
  HyperParameters hyper;
  hyper.sliding_window = 512;
  hyper.sliding_window_pattern = 6;
  EXPECT_EQ(hyper.KvPositions(0, 4096), 512u);
  EXPECT_EQ(hyper.KvPositions(5, 4096), 4096u) << "every sixth layer is global";
  EXPECT_EQ(hyper.KvPositions(0, 100), 100u);
  hyper.sliding_window = 0;
  EXPECT_EQ(hyper.KvPositions(0, 4096), 4096u);
}

}  // namespace
}  // namespace boltbeam::model
