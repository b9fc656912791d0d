#include "model/skeleton.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "model/token_graph.h"
#include "test_model.h"

namespace boltbeam::model {
namespace {

namespace fs = std::filesystem;

class SkeletonTest : public testing::Test {
 protected:
  ~SkeletonTest() override { fs::remove(path_); }

  // The skeleton of a model, read again.
  Model Skeleton(const Model& model, std::uint32_t scale = 1, const SynthOptions& options = {}) {
    const Result<SynthPlan> plan = PlanSkeleton(model, scale);
    EXPECT_TRUE(plan) << plan.error().Message();
    const Result<void> written = WriteSynth(*plan, path_, options);
    EXPECT_TRUE(written) << written.error().Message();
    Result<Model> skeleton = Model::Load(path_);
    EXPECT_TRUE(skeleton) << skeleton.error().Message();
    return *skeleton;
  }

  static void ExpectSameGraph(const Model& full, const Model& skeleton, const std::string& what) {
    EXPECT_EQ(skeleton.hyper().layers, full.hyper().layers) << what;
    EXPECT_EQ(skeleton.hyper().head_dim, full.hyper().head_dim) << what;
    EXPECT_EQ(skeleton.hyper().sliding_window, full.hyper().sliding_window) << what;
    EXPECT_EQ(skeleton.tied(), full.tied()) << what;
    ASSERT_EQ(skeleton.tensors().size(), full.tensors().size()) << what;
    for (const Tensor& tensor : full.tensors()) {
      const Tensor* narrow = skeleton.Find(tensor.role, tensor.layer);
      ASSERT_NE(narrow, nullptr) << what << ": " << tensor.info->name;
      EXPECT_EQ(narrow->format, tensor.format) << what << ": " << tensor.info->name;
    }
    const auto of_full = BuildTokenGraph(full, {}), of_skeleton = BuildTokenGraph(skeleton, {});
    ASSERT_EQ(of_skeleton.size(), of_full.size()) << what;
    for (std::size_t i = 0; i < of_full.size(); ++i) {
      EXPECT_EQ(of_skeleton[i].kind, of_full[i].kind) << what << " operation " << i;
      EXPECT_EQ(of_skeleton[i].role, of_full[i].role) << what << " operation " << i;
    }
  }

  std::string path_ = (fs::temp_directory_path() / fmt::format("boltbeam_skeleton_{}.gguf", ::getpid())).string();
};

TEST_F(SkeletonTest, HasTheSameOperationsInEveryArchitectureAndShape) {
  const ShapeRegistry shapes = LoadShapes().value();
  for (const Shape& shape : shapes.shapes) {
    const std::string spec = shape.name + ":Q4_K_M";
    const std::string full_path = path_ + ".full";
    SynthOptions sparse;
    sparse.sparse = true;
    ASSERT_TRUE(WriteSynth(PlanSynth(spec, sparse).value(), full_path, sparse));
    const Model full = Model::Load(full_path).value();
    const Model skeleton = Skeleton(full, 1, sparse);
    ExpectSameGraph(full, skeleton, spec);
    EXPECT_EQ(skeleton.hyper().heads == skeleton.hyper().kv_heads,
              shape.hyper.heads == shape.hyper.kv_heads || skeleton.hyper().heads == 1)
        << spec;
    fs::remove(full_path);
    EXPECT_EQ(skeleton.hyper().vocab, shape.hyper.vocab) << spec;
    EXPECT_LT(fs::file_size(path_), 130'000'000U) << spec;
  }
}

TEST_F(SkeletonTest, HasEveryTensorThatTheFileHas) {
  for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma2", "gemma3"}) {
    TestModel file(architecture);
    file.Set("attention.sliding_window", 512U);  // of those that slide
    if (std::string(architecture) == "llama") file.AddTable("rope_freqs.weight", "F32", {32});
    const Model full = Model::Load(file.Write()).value();
    ExpectSameGraph(full, Skeleton(full), architecture);
  }
}

TEST_F(SkeletonTest, KeepsTheStreamApartFromTheHeads) {
  for (const std::uint32_t head_dim : {64U, 80U, 128U, 256U}) {
    TestSizes sizes;
    sizes.head_dim = head_dim;
    TestModel file("qwen3", sizes);
    const Model full = Model::Load(file.Write()).value();
    const HyperParameters once = Skeleton(full).hyper(), twice = Skeleton(full, 2).hyper();
    for (const HyperParameters& hyper : {once, twice}) {
      EXPECT_NE(hyper.hidden, hyper.head_dim) << head_dim;
      EXPECT_NE(hyper.hidden, hyper.heads * hyper.head_dim) << head_dim;
    }
    EXPECT_EQ(twice.ffn, 2 * once.ffn);
    EXPECT_EQ(twice.heads, 2 * once.heads);
  }
}

}  // namespace
}  // namespace boltbeam::model
