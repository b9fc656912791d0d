#include "model/synth.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.h"
#include "base/paths.h"
#include "model/random_weights.h"

namespace boltbeam::model {
namespace {

namespace fs = std::filesystem;

class SynthTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("boltbeam_synth_{}", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Write(const std::string& spec, const SynthOptions& options = {}, const std::string& name = "m.gguf") {
    const Result<SynthPlan> plan = PlanSynth(spec, options);
    EXPECT_TRUE(plan) << plan.error().Message();
    std::string path = (folder_ / name).string();
    const Result<void> written = WriteSynth(*plan, path, options);
    EXPECT_TRUE(written) << written.error().Message();
    return path;
  }

  std::string Hash(const std::string& path) { return base::Sha256Hex(base::ReadWholeFile(path).value()); }

  fs::path folder_;
};

SynthOptions Sparse() {
  SynthOptions options;
  options.sparse = true;
  return options;
}

TEST_F(SynthTest, LayoutOfThePublishedEightBillionFile) {
  std::ifstream stream(BOLTBEAM_TEST_DATA "/qwen3-8b-q4_k_m.json");
  const auto golden = nlohmann::json::parse(stream);
  const auto& layout = golden.at("layout");
  const auto golden_start = golden.at("totals").at("data_offset_bytes").get<std::uint64_t>();
  const gguf::File file = gguf::File::Open(Write("qwen3-8b:Q4_K_M", Sparse())).value();
  EXPECT_TRUE(file.sparse());
  EXPECT_EQ(file.tensors().size(), golden.at("tensor_counts").at("total").get<std::size_t>());

  std::map<std::string, int> counts;
  std::map<std::string, std::uint64_t> starts;
  std::uint64_t bytes = 0;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    ++counts[formats::FindType(tensor.type)->name];
    starts[tensor.name] = tensor.file_offset - file.data_offset() + golden_start;
    bytes += tensor.bytes;
  }
  EXPECT_EQ(bytes, golden.at("totals").at("data_bytes").get<std::uint64_t>());
  for (const char* format : {"Q4_K", "Q6_K", "F32"}) {
    EXPECT_EQ(counts[format], golden.at("tensor_counts").at(format).get<int>()) << format;
  }
  for (const auto& row : layout.at("first_tensors")) {
    EXPECT_EQ(starts.at(row.at("tensor")), row.at("file_offset_bytes").get<std::uint64_t>()) << row;
  }
  const auto& order = layout.at("layer_tensor_order");
  const auto& layers = layout.at("layer_start_bytes");
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const std::string first = fmt::format("blk.{}.{}.weight", layer, order.at(0).get<std::string>());
    EXPECT_EQ(starts.at(first), layers.at(layer).get<std::uint64_t>()) << layer;
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(file.tensors()[3 + i].name, fmt::format("blk.0.{}.weight", order.at(i).get<std::string>()));
  }
}

TEST_F(SynthTest, EveryShapeAndTypeLoadsAsAModel) {
  const ShapeRegistry shapes = LoadShapes().value();
  const MixtureRegistry mixtures = LoadMixtures().value();
  for (const Shape& shape : shapes.shapes) {
    for (const Mixture& mixture : mixtures.mixtures) {
      const std::string spec = shape.name + ":" + mixture.name;
      const Result<Model> model = Model::Load(Write(spec, Sparse()));
      ASSERT_TRUE(model) << spec << ": " << model.error().Message();
      EXPECT_EQ(model->hyper().hidden, shape.hyper.hidden) << spec;
      EXPECT_EQ(model->hyper().rope_base, shape.hyper.rope_base) << spec;
      EXPECT_EQ(model->hyper().sliding_window, shape.hyper.sliding_window) << spec;
      EXPECT_EQ(model->tied(), shape.tied) << spec;
    }
  }
}

TEST_F(SynthTest, ColumnsThatBlocksDoNotDivideFallBack) {
  const Model model = Model::Load(Write("smollm2-135m:Q4_K_M", Sparse())).value();
  EXPECT_EQ(model.Find(Role::kAttnQ, 5)->format->name, "Q5_0");    // 576 columns
  EXPECT_EQ(model.Find(Role::kAttnV, 0)->format->name, "Q8_0");    // more bits, 576 columns
  EXPECT_EQ(model.Find(Role::kFfnDown, 0)->format->name, "Q6_K");  // 1536 columns
  EXPECT_EQ(model.head().format->name, "Q8_0");
  EXPECT_EQ(model.Find(Role::kAttnNorm, 0)->format->name, "F32");
}

TEST_F(SynthTest, MixturesChooseAsTheirRulesSay) {
  const auto formats = [&](const std::string& spec) {
    const Model model = Model::Load(Write(spec, Sparse())).value();
    std::map<std::string, std::map<std::string, int>> counts;
    for (const Tensor& tensor : model.tensors()) {
      if (tensor.info->dimensions > 1) ++counts[std::string(RoleName(tensor.role))][tensor.format->name];
    }
    return counts;
  };
  using Counts = std::map<std::string, int>;
  auto counts = formats("llama-3.1-8b:IQ4_XS");
  EXPECT_EQ(counts["attn_v"], (Counts{{"Q5_K", 32}}));  // four query heads for each KV head
  EXPECT_EQ(counts["ffn_down"], (Counts{{"IQ4_XS", 28}, {"Q5_K", 4}}));
  EXPECT_EQ(counts["ffn_up"], (Counts{{"IQ4_XS", 32}}));
  EXPECT_EQ(counts["head"], (Counts{{"Q6_K", 1}}));
  EXPECT_EQ(counts["embedding"], (Counts{{"IQ4_XS", 1}}));
  EXPECT_EQ(formats("qwen3-0.6b:IQ4_XS")["attn_v"], (Counts{{"IQ4_XS", 28}}));  // two
  counts = formats("llama-3.2-1b:Q5_K_M");
  EXPECT_EQ(counts["attn_v"], (Counts{{"Q5_K", 8}, {"Q6_K", 8}}));
  EXPECT_EQ(counts["attn_q"], (Counts{{"Q5_K", 16}}));
  EXPECT_EQ(counts["embedding"], (Counts{{"Q6_K", 1}}));
  counts = formats("qwen3-0.6b:MXFP4");
  EXPECT_EQ(counts["ffn_down"], (Counts{{"MXFP4", 28}}));
  EXPECT_EQ(counts["attn_q"], (Counts{{"Q8_0", 28}}));
  EXPECT_EQ(formats("smollm2-135m:IQ4_XS")["attn_q"], (Counts{{"IQ4_NL", 30}}));  // 576 columns
}

TEST_F(SynthTest, SameSeedSameFileOtherSeedOtherFile) {
  SynthOptions options;
  const std::string first = Hash(Write("tiny-qwen3:Q4_K_M", options));
  EXPECT_EQ(Hash(Write("tiny-qwen3:Q4_K_M", options)), first);
  options.seed = 2;
  EXPECT_NE(Hash(Write("tiny-qwen3:Q4_K_M", options)), first);
}

TEST_F(SynthTest, LayersLimitsTheFile) {
  SynthOptions options = Sparse();
  options.layers = 2;
  const Model model = Model::Load(Write("qwen3-0.6b:Q8_0", options)).value();
  EXPECT_EQ(model.hyper().layers, 2U);
  EXPECT_EQ(model.tensors().size(), 2U + 2U * 11U);
}

TEST_F(SynthTest, SmallVocabularyHasTheModelsSizeAndNoTwoEqualTokens) {
  SynthOptions options = Sparse();
  options.tokenizer = true;
  const gguf::File file = gguf::File::Open(Write("tiny-llama:F32", options)).value();
  const std::vector<std::string> tokens = file.GetStrings("tokenizer.ggml.tokens").value();
  EXPECT_EQ(tokens.size(), 1024U);
  EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), tokens.size());
  EXPECT_EQ(file.GetString("tokenizer.ggml.pre").value(), "smollm");
  EXPECT_EQ(tokens[file.GetUnsigned("tokenizer.ggml.eos_token_id").value()], "<|im_end|>");
}

TEST_F(SynthTest, WeightsAreSaneInEveryFormat) {
  for (const char* name : {"F32", "F16", "Q8_0", "Q4_1", "Q4_K", "Q6_K", "Q5_0", "Q5_K", "IQ4_XS", "IQ4_NL", "MXFP4"}) {
    const formats::Format& format = *formats::FindFormat(name);
    RandomWeights weights(1);
    // More than the pool holds, so that stretches are repeated.
    constexpr std::uint64_t kColumns = 2048, kElements = 1024 * kColumns;
    ASSERT_TRUE(weights.Start(7, format, kColumns, kElements, 0.02));
    std::uint64_t bytes = 0;
    double sum = 0, squares = 0;
    while (true) {
      const Result<std::span<const std::byte>> next = weights.Next();
      ASSERT_TRUE(next);
      if (next->empty()) break;
      bytes += next->size();
      std::vector<double> values(next->size() / format.bytes * format.elements);
      ASSERT_TRUE(formats::Dequantize(format, *next, values));
      for (const double value : values) {
        sum += value;
        squares += value * value;
      }
    }
    EXPECT_EQ(bytes, kElements / format.elements * format.bytes) << name;
    EXPECT_NEAR(sum / kElements, 0, 0.0005) << name;
    EXPECT_NEAR(std::sqrt(squares / kElements), 0.02, 0.0005) << name;
  }
}

TEST_F(SynthTest, UnknownNameAndTypeAreRefusedWithTheList) {
  Result<SynthPlan> plan = PlanSynth("qwen9-1b:F32", {});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::kSynthName);
  EXPECT_NE(plan.error().expected.find("qwen3-0.6b"), std::string::npos);
  for (const char* spec : {"qwen3-0.6b:Q3_X", "qwen3-0.6b", "qwen3-0.6b:"}) {
    plan = PlanSynth(spec, {});
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Code::kSynthType);
    EXPECT_NE(plan.error().expected.find("Q4_K_M"), std::string::npos);
  }
  SynthOptions options;
  options.layers = 5000;
  EXPECT_EQ(PlanSynth("qwen3-0.6b:F32", options).error().code, Code::kUsage);
}

TEST_F(SynthTest, NothingIsLeftWhenCancelled) {
  SynthOptions options;
  int polls = 0;
  options.cancelled = [&] { return ++polls > 5; };
  const SynthPlan plan = PlanSynth("tiny-llama:F32", options).value();
  const Result<void> written = WriteSynth(plan, (folder_ / "m.gguf").string(), options);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kInterrupted);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(SynthTest, AFileThatCanNotFitIsRefusedBeforeWriting) {
  const SynthOptions options;
  SynthPlan plan = PlanSynth("qwen3-8b:F32", options).value();
  const std::vector<SynthTensor> once = plan.tensors;
  while (plan.data_bytes() < fs::space(folder_).available)
    plan.tensors.insert(plan.tensors.end(), once.begin(), once.end());
  const Result<void> written = WriteSynth(plan, (folder_ / "m.gguf").string(), options);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kDiskSpace);
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace boltbeam::model
