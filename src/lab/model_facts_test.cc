// What a token reads, from as much of a file as is there.
#include "lab/model_facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "gguf/file.h"
#include "test_model.h"

namespace boltbeam::lab {
namespace {

TEST(ModelFacts, OfAFileOfAKnownArchitecture) {
  const ModelFacts facts = ReadModelFacts(model::Qwen3EightB().Write()).value();
  EXPECT_EQ(facts.weight_bytes, 4670533632);
  EXPECT_EQ(facts.kv_bytes(512, {}), 75497472);
  EXPECT_EQ(facts.architecture, "qwen3");
  EXPECT_EQ(facts.quantization, "Q4_K");
  EXPECT_EQ(facts.layers, 36U);
  EXPECT_EQ(facts.header_sha256.size(), 64U);
}

TEST(ModelFacts, OfAShapeWithoutAFile) {
  const ModelFacts facts = ShapeFacts("qwen3-8b:Q4_K_M").value();
  EXPECT_EQ(facts.weight_bytes, 4670533632);
  EXPECT_EQ(facts.kv_bytes(512, {}), 75497472);
  EXPECT_LT(ShapeFacts("qwen3-8b:Q4_K_M", 12)->weight_bytes, 2.1e9);
  EXPECT_EQ(ShapeFacts("nobody-8b:Q4_K_M").error().code, Code::kSynthName);
  EXPECT_TRUE(IsShapeName("qwen3-8b:Q4_K_M"));
  EXPECT_FALSE(IsShapeName("folder/model.gguf"));
}

TEST(ModelFacts, OfAnArchitectureThatNobodyKnows) {
  model::TestModel model("newfangled");
  const ModelFacts dense = ReadModelFacts(model.Write()).value();
  EXPECT_NE(dense.bytes_from.find("newfangled"), std::string::npos);
  EXPECT_EQ(dense.kv_bytes(0, {}), 0);
  EXPECT_FALSE(dense.kv_bytes(512, {}));
  // Eight experts of which two are used: a quarter of their bytes are read.
  model::TestModel mixture("newfangled");
  mixture.Set("expert_count", 8U);
  mixture.Set("expert_used_count", 2U);
  mixture.AddTable("blk.0.ffn_up_exps.weight", "Q8_0", {256, 512, 8});
  const ModelFacts sparse = ReadModelFacts(mixture.Write()).value();
  EXPECT_EQ(sparse.experts, 8U);
  EXPECT_NEAR(sparse.weight_bytes - dense.weight_bytes, 256 * 512 * 2 * 34.0 / 32, 1);
  mixture.Set("expert_used_count", 9U);
  EXPECT_EQ(ReadModelFacts(mixture.Write()).error().code, Code::kModelExpertCount);
}

TEST(ModelFacts, AFileThatIsNotWhole) {
  const std::string path = model::TestModel("qwen3").Write();
  const auto missing = ReadModelFacts(path);  // the model above is gone
  EXPECT_EQ(missing.error().code, Code::kFileNotFound);
}

TEST(ModelFacts, OfTheBeginningOfADownload) {
  model::TestModel& model = model::Qwen3EightB();
  const std::string path = model.Write();
  const std::uint64_t header = gguf::File::Open(path)->data_offset();
  const std::string hash = ReadModelFacts(path)->header_sha256;
  std::filesystem::resize_file(path, header + 1000);
  EXPECT_EQ(ReadModelFacts(path).error().code, Code::kGgufTruncated);  // nothing that could be run
  const ModelFacts facts = ReadHeaderFacts(path).value();
  EXPECT_EQ(facts.weight_bytes, 4670533632);
  EXPECT_EQ(facts.kv_bytes(512, {}), 75497472);
  EXPECT_EQ(facts.header_sha256, hash);
  std::filesystem::resize_file(path, header / 2);
  EXPECT_FALSE(ReadHeaderFacts(path));
}

/// A model in three files in a folder of its own.
class SplitModel : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  /// Its first part; the others are gone.
  std::string FirstOf(model::TestModel& model, bool with_first = true) const {
    const std::vector<std::string> parts = model.WriteParts(folder_, 3, with_first);
    for (std::size_t i = 1; i < parts.size(); ++i) std::filesystem::remove(parts[i]);
    return parts[0];
  }

  const std::string folder_ = testing::TempDir() + "/boltbeam-shards-" + std::to_string(getpid());
};

TEST_F(SplitModel, FromItsFirstPartAloneAllIsKnownWhereTheMixtureIs) {
  model::TestModel& model = model::Qwen3EightB();
  model.keys["general.file_type"] = 15U;  // Q4_K_M
  const std::vector<std::string> parts = model.WriteParts(folder_, 3);
  const ModelFacts whole = ReadHeaderFacts(parts[1]).value();  // any part, when all are there
  EXPECT_EQ(whole.weight_bytes, 4670533632);
  EXPECT_EQ(whole.unseen_bytes, 0);
  std::filesystem::remove(parts[1]);
  std::filesystem::remove(parts[2]);
  const ModelFacts first = ReadHeaderFacts(parts[0]).value();
  EXPECT_EQ(first.weight_bytes, 4670533632);
  EXPECT_EQ(first.kv_bytes(512, {}), 75497472);
  EXPECT_EQ(first.architecture, "qwen3");
  EXPECT_EQ(first.quantization, "Q4_K");
  EXPECT_EQ(first.unseen_half_bytes, 0);
  EXPECT_GT(first.unseen_bytes, 0.5 * first.weight_bytes);
  EXPECT_LT(first.unseen_bytes, 0.7 * first.weight_bytes);
  EXPECT_TRUE(first.path.empty());  // nothing that could be run
  EXPECT_NE(first.unseen.find("those of Q4_K_M"), std::string::npos) << first.unseen;
  model.keys.erase("general.file_type");  // every test has this model
}

TEST_F(SplitModel, AFirstPartMayHoldNoTensorAtAll) {
  model::TestModel model("qwen3");
  model.keys["general.file_type"] = 7U;  // Q8_0
  const double whole = ReadModelFacts(model.Write())->weight_bytes;
  const auto unknown = ReadHeaderFacts(FirstOf(model, false));
  EXPECT_NE(unknown.error().found.find("no embedding, no vocabulary"), std::string::npos) << unknown.error().Message();
  model.keys["tokenizer.ggml.tokens"] = std::vector<std::string>(320, "token");
  const ModelFacts facts = ReadHeaderFacts(FirstOf(model, false)).value();
  EXPECT_EQ(facts.weight_bytes, whole);
  EXPECT_EQ(facts.unseen_bytes, whole);
  EXPECT_NE(facts.unseen.find("which 0 of the 0 tables"), std::string::npos) << facts.unseen;
}

TEST_F(SplitModel, AnEmbeddingThatIsTheHeadIsToldByTheNumberOfTensors) {
  model::TestModel model("qwen3");
  model.Remove("output.weight");
  model.keys["general.file_type"] = 7U;
  const double whole = ReadModelFacts(model.Write())->weight_bytes;
  EXPECT_EQ(ReadHeaderFacts(FirstOf(model))->weight_bytes, whole);
  // A number of tensors that the architecture does not have: there is something that nobody knows.
  model.AddTable("blk.1.ffn_more.weight", "Q8_0", {256, 512});
  model.AddTable("blk.1.ffn_yet_more.weight", "Q8_0", {256, 512});
  EXPECT_NE(ReadHeaderFacts(FirstOf(model)).error().found.find("tensors in all parts"), std::string::npos);
}

TEST_F(SplitModel, WhereTheFirstPartDiffersFromTheMixtureTheOthersMay) {
  model::TestModel model("qwen3", {.layers = 6});
  model.keys["general.file_type"] = 7U;
  const ModelFacts plain = ReadHeaderFacts(FirstOf(model)).value();
  model.Find("output.weight").type = formats::FindFormat("F16")->type;
  const ModelFacts other = ReadHeaderFacts(FirstOf(model)).value();
  const double head = 320.0 * 256;
  EXPECT_NEAR(other.weight_bytes - plain.weight_bytes, head * (2 - 34.0 / 32), 1);
  const double here = plain.weight_bytes - plain.unseen_bytes;
  EXPECT_NEAR(other.unseen_half_bytes, plain.unseen_bytes * head * (2 - 34.0 / 32) / here, 1);
}

TEST_F(SplitModel, ATableThatTheMetadataDenyIsRefused) {
  model::TestModel model("qwen3");
  model.keys["general.file_type"] = 7U;
  model.Find("output.weight").shape = {256, 640};
  const auto refused = ReadHeaderFacts(FirstOf(model));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().found.find("output.weight of [256 x 640]"), std::string::npos) << refused.error().Message();
}

TEST_F(SplitModel, WhereNothingFollowsThePartsAreNamed) {
  model::TestModel model("qwen3");  // no general.file_type
  const std::string first = FirstOf(model);
  const auto refused = ReadHeaderFacts(first);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kGgufSplitMissing);
  const std::string message = refused.error().Message();
  for (const std::string& part : {std::string("1 of 3 parts"), std::string("m-00002-of-00003.gguf"),
                                  std::string("m-00003-of-00003.gguf"), std::string("--bytes N")}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
  model.keys["general.file_type"] = 999U;
  EXPECT_NE(ReadHeaderFacts(FirstOf(model)).error().found.find("general.file_type 999"), std::string::npos);
  // A ladder runs its models: there the others have to be there.
  model.keys["general.file_type"] = 7U;
  EXPECT_EQ(ReadModelFacts(FirstOf(model)).error().code, Code::kGgufSplitMissing);
  // With the bytes of somebody it can be foretold.
  model.keys.erase("general.file_type");
  const ModelFacts stated = ReadHeaderFacts(FirstOf(model), 5e9).value();
  EXPECT_EQ(stated.name, "m-00001-of-00003.gguf");
  EXPECT_EQ(stated.weight_bytes, 5e9);
  EXPECT_TRUE(stated.path.empty());
  EXPECT_EQ(ReadHeaderFacts(folder_ + "/none.gguf", 1e9).error().code, Code::kFileNotFound);
}

TEST_F(SplitModel, AFirstPartThatIsMissingIsNamed) {
  model::TestModel model("qwen3");
  const std::vector<std::string> parts = model.WriteParts(folder_, 3);
  std::filesystem::remove(parts[0]);
  const auto refused = ReadHeaderFacts(parts[1]);
  EXPECT_EQ(refused.error().code, Code::kGgufSplitMissing);
  EXPECT_NE(refused.error().found.find("missing: m-00001-of-00003.gguf"), std::string::npos);
}

}  // namespace
}  // namespace boltbeam::lab
