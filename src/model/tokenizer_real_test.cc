// Token ids equal llama-tokenize's: tests/data/tokenizer/mixed.json says how they were made.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gguf/writer.h"
#include "model/tokenizer.h"
#include "real_model.h"

namespace boltbeam::model {
namespace {

std::string ReadText(const std::string& name) {
  std::ifstream file(std::string(BOLTBEAM_TEST_DATA "/tokenizer/") + name, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The vocabulary of another file, of this kind, with what `add` writes beside it.
Result<Tokenizer> Changed(const gguf::File& file, std::string_view kind,
                          const std::function<Result<void>(gguf::Writer&)>& add) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("boltbeam_{}_{}.gguf", kind, getpid())).string();
  BOLTBEAM_ASSIGN(gguf::Writer writer, gguf::Writer::Create(path));
  writer.Add("general.architecture", std::string_view("none"));
  writer.Add("tokenizer.ggml.model", kind);
  BOLTBEAM_ASSIGN(const std::vector<std::string> tokens, file.GetStrings("tokenizer.ggml.tokens"));
  BOLTBEAM_ASSIGN(const std::vector<std::int64_t> types, file.GetIntegers("tokenizer.ggml.token_type"));
  writer.Add("tokenizer.ggml.tokens", tokens);
  writer.Add("tokenizer.ggml.token_type", std::vector<std::int32_t>(types.begin(), types.end()));
  BOLTBEAM_TRY(add(writer));
  BOLTBEAM_ASSIGN(const std::uint64_t data_bytes, writer.Begin({}));
  EXPECT_EQ(data_bytes, 0U);
  BOLTBEAM_TRY(writer.Finish());
  BOLTBEAM_ASSIGN(const gguf::File changed, gguf::File::Open(path));
  std::filesystem::remove(path);
  return Tokenizer::Make(changed);
}

// The same vocabulary under another pre-tokenizer's name.
Result<Tokenizer> WithPre(const gguf::File& file, std::string_view pre) {
  return Changed(file, "gpt2", [&](gguf::Writer& writer) -> Result<void> {
    BOLTBEAM_ASSIGN(const std::vector<std::string> merges, file.GetStrings("tokenizer.ggml.merges"));
    writer.Add("tokenizer.ggml.pre", pre);
    writer.Add("tokenizer.ggml.merges", merges);
    writer.Add("tokenizer.ggml.add_bos_token", false);
    return {};
  });
}

TEST(TokenizerReal, IdsEqualTheIndependentProgramsForEveryPretokenizer) {
  BOLTBEAM_NEED_REAL_MODEL("smollm2");
  const auto golden = nlohmann::json::parse(ReadText("mixed.json"));
  const std::string text = ReadText("mixed.txt");
  const auto file = gguf::File::Open(RealModelPath("smollm2"));
  ASSERT_TRUE(file) << file.error().Message();
  for (const auto& [pre, ids] : golden["cases"].items()) {
    const auto tokenizer = WithPre(*file, pre);
    ASSERT_TRUE(tokenizer) << tokenizer.error().Message();
    EXPECT_EQ(tokenizer->Encode(text, {.parse_special = true}), ids["special"].get<std::vector<std::int32_t>>()) << pre;
    EXPECT_EQ(tokenizer->Encode(text, {}), ids["plain"].get<std::vector<std::int32_t>>()) << pre;
    EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode(text, {.parse_special = true}), true), text) << pre;
  }
}

// The same vocabulary, with a space put before text or without.
Result<Tokenizer> WithSpacePrefix(const gguf::File& file, bool prefix) {
  return Changed(file, "llama", [&](gguf::Writer& writer) -> Result<void> {
    BOLTBEAM_ASSIGN(const std::vector<float> scores, file.GetFloats("tokenizer.ggml.scores"));
    writer.Add("tokenizer.ggml.scores", scores);
    writer.Add("tokenizer.ggml.bos_token_id", std::uint32_t{2});
    writer.Add("tokenizer.ggml.eos_token_id", std::uint32_t{1});
    writer.Add("tokenizer.ggml.add_space_prefix", prefix);
    return {};
  });
}

TEST(TokenizerReal, IdsEqualTheIndependentProgramsForSentencePiece) {
  BOLTBEAM_NEED_REAL_MODEL("gemma3");
  const auto golden = nlohmann::json::parse(ReadText("sentencepiece.json"));
  const auto file = gguf::File::Open(RealModelPath("gemma3"));
  ASSERT_TRUE(file) << file.error().Message();
  for (const bool prefix : {false, true}) {
    const auto tokenizer = WithSpacePrefix(*file, prefix);
    ASSERT_TRUE(tokenizer) << tokenizer.error().Message();
    for (const auto& [name, ids] : golden["cases"].items()) {
      const std::string text = ReadText(name), kind = prefix ? "prefix_" : "";
      EXPECT_EQ(tokenizer->Encode(text, {.parse_special = true}),
                ids[kind + "special"].get<std::vector<std::int32_t>>())
          << name;
      EXPECT_EQ(tokenizer->Encode(text, {}), ids[kind + "plain"].get<std::vector<std::int32_t>>()) << name;
      if (name != "mixed.txt") continue;  // the other text holds U+2581, which comes back as a space
      const auto back = tokenizer->Encode(text, {.add_special = false, .parse_special = true});
      EXPECT_EQ(tokenizer->Decode(*back, true), text) << name;
    }
  }
}

TEST(TokenizerReal, AVocabularyWithScoresIsReadAsItStandsInItsFile) {
  BOLTBEAM_NEED_REAL_MODEL("gemma3");
  const auto golden = nlohmann::json::parse(ReadText("sentencepiece.json"));
  const auto file = gguf::File::Open(RealModelPath("gemma3"));
  ASSERT_TRUE(file) << file.error().Message();
  const auto tokenizer = Tokenizer::Make(*file, true);
  ASSERT_TRUE(tokenizer) << tokenizer.error().Message();
  EXPECT_EQ(tokenizer->Encode(ReadText("turns.txt"), {.parse_special = true}),
            golden["cases"]["turns.txt"]["special"].get<std::vector<std::int32_t>>());
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_TRUE(tokenizer->IsStop(tokenizer->Find("<end_of_turn>")));
}

TEST(TokenizerReal, TheFilesOwnPretokenizerIsRead) {
  BOLTBEAM_NEED_REAL_MODEL("smollm2");
  const auto golden = nlohmann::json::parse(ReadText("mixed.json"));
  const auto file = gguf::File::Open(RealModelPath("smollm2"));
  ASSERT_TRUE(file) << file.error().Message();
  const auto begin = std::chrono::steady_clock::now();
  const auto tokenizer = Tokenizer::Make(*file, true);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  RecordProperty("milliseconds", std::to_string(took.count()));
  ASSERT_TRUE(tokenizer) << tokenizer.error().Message();
  EXPECT_EQ(tokenizer->Encode(ReadText("mixed.txt"), {.parse_special = true}),
            golden["cases"]["smollm"]["special"].get<std::vector<std::int32_t>>());
  EXPECT_TRUE(tokenizer->IsStop(tokenizer->Find("<|im_end|>")));
  EXPECT_TRUE(tokenizer->IsStop(tokenizer->Find("<|endoftext|>")));
}

}  // namespace
}  // namespace boltbeam::model
