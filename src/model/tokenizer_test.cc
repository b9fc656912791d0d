#include "model/tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "gguf/writer.h"
#include "model/bpe.h"
#include "model/pretokenizer.h"
#include "model/scored_pieces.h"

namespace boltbeam::model {
namespace {

using Pieces = std::vector<std::string>;

// A vocabulary of the 256 bytes, a few merges and three control tokens, which a test changes before it is written.
struct TinyVocabulary {
  /// One whose tokens join by score: byte tokens, a few characters and words, two control tokens.
  static TinyVocabulary WithScores() {
    TinyVocabulary v;
    v.model = "llama";
    v.with_pre = v.with_merges = false;
    v.tokens = {"<unk>", "<s>", "</s>", "<keep>", "h",    "e",   "l",     "o",
                "▁",     "he",  "ll",   "lo",     "hell", "llo", "hello", "▁hello"};
    v.types = {2, 3, 3, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    v.scores = {0, 0, 0, 0, -20, -20, -20, -20, -20, -1, -2, -2, -4, -3, -9, -10};
    for (int byte = 0; byte < 256; ++byte) {
      v.tokens.push_back(fmt::format("<0x{:02X}>", byte));
      v.types.push_back(6);
      v.scores.push_back(0);
    }
    v.bos = 1;
    v.eos = 2;
    return v;
  }

  std::string model = "gpt2", pre = "gpt-2";
  std::vector<std::string> tokens, merges = {"h e", "l l", "he ll", "hell o", "Ġ w"};
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::uint32_t bos = 261, eos = 262;
  std::optional<bool> add_space_prefix;
  bool with_tokens = true, with_pre = true, with_merges = true;

  TinyVocabulary() {
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(ByteText(static_cast<std::uint8_t>(byte)));
    for (const char* text : {"he", "ll", "hell", "hello", "Ġw", "<s>", "</s>", "<|im_end|>", "<keep>"}) {
      tokens.emplace_back(text);
    }
    types.assign(tokens.size(), 1);
    types[261] = types[262] = 3;  // BOS and EOS; the end marker's type is wrong on purpose
    types[264] = 4;
  }

  Result<Tokenizer> Make(bool strict = false) const {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("boltbeam_tokenizer_" + std::to_string(getpid()) + ".gguf"))
            .string();
    {
      auto writer = gguf::Writer::Create(path);
      if (!writer) return std::unexpected(writer.error());
      writer->Add("general.architecture", std::string_view("none"));
      if (with_tokens) writer->Add("tokenizer.ggml.model", std::string_view(model));
      if (with_pre) writer->Add("tokenizer.ggml.pre", std::string_view(pre));
      if (with_tokens) writer->Add("tokenizer.ggml.tokens", tokens);
      if (with_merges) writer->Add("tokenizer.ggml.merges", merges);
      writer->Add("tokenizer.ggml.token_type", types);
      if (!scores.empty()) writer->Add("tokenizer.ggml.scores", scores);
      if (add_space_prefix) writer->Add("tokenizer.ggml.add_space_prefix", *add_space_prefix);
      writer->Add("tokenizer.ggml.bos_token_id", bos);
      writer->Add("tokenizer.ggml.eos_token_id", eos);
      if (auto begun = writer->Begin({}); !begun) return std::unexpected(begun.error());
      BOLTBEAM_TRY(writer->Finish());
    }
    auto file = gguf::File::Open(path);
    std::filesystem::remove(path);
    if (!file) return std::unexpected(file.error());
    return Tokenizer::Make(*file, strict);
  }

  Code CodeOfMake(bool strict = false) const {
    auto made = Make(strict);
    return made ? Code::kCount : made.error().code;
  }
};

Pieces Split(std::string_view name, std::string_view text) {
  auto pretokenizer = Pretokenizer::Make(name);
  EXPECT_TRUE(pretokenizer) << pretokenizer.error().Message();
  Pieces pieces;
  const auto done = pretokenizer->Split(text, [&](std::string_view piece) -> Result<void> {
    pieces.emplace_back(piece);
    return {};
  });
  EXPECT_TRUE(done);
  return pieces;
}

TEST(Pretokenizer, SmollmIsolatesEveryDigitBeforeAnythingElse) {
  EXPECT_EQ(Split("smollm", "In 2024, we'll"), (Pieces{"In", " ", "2", "0", "2", "4", ",", " we", "'ll"}));
}

TEST(Pretokenizer, Gpt2KeepsNumbersWithTheirSpace) {
  EXPECT_EQ(Split("gpt-2", "In 2024, WE'LL we'll"), (Pieces{"In", " 2024", ",", " WE", "'", "LL", " we", "'ll"}));
}

TEST(Pretokenizer, LlamaGroupsThreeDigitsAndIgnoresTheCaseOfContractions) {
  EXPECT_EQ(Split("llama-bpe", "In 20245 WE'LL"), (Pieces{"In", " ", "202", "45", " WE", "'LL"}));
  EXPECT_EQ(Split("llama3", "(a)\n\nb"), (Pieces{"(a", ")\n\n", "b"}));
}

TEST(Pretokenizer, Qwen2TakesSingleDigitsAndOtherwiseCutsLikeLlama) {
  EXPECT_EQ(Split("qwen2", "In 20 WE'LL"), (Pieces{"In", " ", "2", "0", " WE", "'LL"}));
}

TEST(Pretokenizer, LeavesTheLastSpaceOfARunToTheWordThatFollows) {
  for (const char* name : {"smollm", "gpt-2", "llama-bpe", "qwen2"}) {
    EXPECT_EQ(Split(name, "a   b  "), (Pieces{"a", "  ", " b", "  "})) << name;
    EXPECT_EQ(Split(name, "你好 世界"), (Pieces{"你好", " 世界"})) << name;
  }
}

TEST(Pretokenizer, ReplacesBytesThatAreNotUtf8) { EXPECT_EQ(Split("gpt-2", "a\xff"), (Pieces{"a", "\xef\xbf\xbd"})); }

TEST(Pretokenizer, RefusesAnUnknownNameAndListsTheKnownOnes) {
  const auto made = Pretokenizer::Make("klingon");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kTokenizerUnsupported);
  EXPECT_NE(made.error().Message().find("qwen2"), std::string::npos);
}

TEST(Pretokenizer, RefusesTextThatIcuCannotCount) {
  const auto pretokenizer = Pretokenizer::Make("gpt-2");
  const std::string_view huge("x", std::size_t{1} << 31);  // never read: the length alone is refused
  const auto done = pretokenizer->Split(huge, [](std::string_view) -> Result<void> { return {}; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kTokenizerText);
}

TEST(Tokenizer, MergesTheLowestRankFirst) {
  const auto tokenizer = TinyVocabulary().Make();
  ASSERT_TRUE(tokenizer) << tokenizer.error().Message();
  const auto ids = tokenizer->Encode("hello wh", {});
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, (std::vector<std::int32_t>{259, 260, 'h'}));
  EXPECT_EQ(tokenizer->Decode(*ids), "hello wh");
}

TEST(Tokenizer, IgnoresMergesForAPieceThatIsAToken) {
  TinyVocabulary vocabulary;
  vocabulary.merges = {"l l"};
  EXPECT_EQ(vocabulary.Make()->Encode("hello", {}), (std::vector<std::int32_t>{'h', 'e', 257, 'o'}));
  vocabulary.pre = "llama-bpe";
  EXPECT_EQ(vocabulary.Make()->Encode("hello", {.add_special = false}), (std::vector<std::int32_t>{259}));
  EXPECT_EQ(vocabulary.Make()->Encode("hello", {}), (std::vector<std::int32_t>{261, 259}));  // the row adds BOS
}

TEST(Tokenizer, EveryByteComesBack) {
  std::string text;
  for (int round = 0; round < 3; ++round) text += "héllo 你 😀 \t\r\n\x01\x7f";
  for (const char* pre : {"smollm", "gpt-2", "phi-2", "llama-bpe", "llama3", "llama-v3", "qwen2", "deepseek-r1-qwen"}) {
    TinyVocabulary vocabulary;
    vocabulary.pre = pre;
    const auto tokenizer = vocabulary.Make();
    ASSERT_TRUE(tokenizer) << pre;
    EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode(text, {})), text) << pre;
  }
}

TEST(Tokenizer, ParsesControlTextOnlyWhenAsked) {
  const auto tokenizer = TinyVocabulary().Make();
  const auto parsed = tokenizer->Encode("a<s>b</s><keep>", {.parse_special = true});
  EXPECT_EQ(*parsed, (std::vector<std::int32_t>{'a', 261, 'b', 262, 264}));
  const auto plain = tokenizer->Encode("a<s>b<keep>", {});
  EXPECT_EQ(*plain, (std::vector<std::int32_t>{'a', '<', 's', '>', 'b', 264}));  // a user's own token always counts
  EXPECT_EQ(tokenizer->Decode(*parsed), "ab<keep>");
  EXPECT_EQ(tokenizer->Decode(*parsed, true), "a<s>b</s><keep>");
}

TEST(Tokenizer, StopsAtEosAndAtTheMarkersThatTheVocabularyHolds) {
  const auto tokenizer = TinyVocabulary().Make();
  EXPECT_TRUE(tokenizer->IsStop(262));
  EXPECT_TRUE(tokenizer->IsStop(263));
  EXPECT_FALSE(tokenizer->IsStop(261));
  EXPECT_EQ(tokenizer->Bytes(263), "") << "an end marker is a control token whatever its type says";
}

TEST(Tokenizer, ManyMergesInOnePieceTakeLinearMemory) {
  const auto tokenizer = TinyVocabulary().Make();
  EXPECT_EQ(tokenizer->Encode(std::string(100001, 'l'), {})->size(), 50001U);
}

using Ids = std::vector<std::int32_t>;

TEST(ScoredPieces, TheBestScoreJoinsFirstAndOfEqualOnesTheLeft) {
  TinyVocabulary vocabulary = TinyVocabulary::WithScores();
  vocabulary.add_space_prefix = false;
  // h e l l o: "he" (-1) joins first, then of "ll" and "lo" (-2 both) the left one, then "llo" (-3) before "hell" (-4).
  EXPECT_EQ(vocabulary.Make()->Encode("hello", {}), (Ids{1, 14}));
  vocabulary.tokens[14] = "other";  // no whole word: he and llo stay
  vocabulary.tokens[15] = "word";
  EXPECT_EQ(vocabulary.Make()->Encode("hello", {}), (Ids{1, 9, 13}));
  vocabulary.scores[12] = -2.5F;  // now "hell" joins before "llo"
  EXPECT_EQ(vocabulary.Make()->Encode("hello", {}), (Ids{1, 12, 7}));
  EXPECT_EQ(vocabulary.Make()->Encode("hellooll", {.add_special = false}), (Ids{12, 7, 7, 10}));
}

TEST(ScoredPieces, ASpaceIsPutBeforeTextAndTakenAwayAgain) {
  TinyVocabulary vocabulary = TinyVocabulary::WithScores();
  const auto prefixed = vocabulary.Make();  // as such vocabularies do when they don't say
  EXPECT_EQ(prefixed->Encode("hello hello<keep>hello", {}), (Ids{1, 15, 15, 3, 15}));
  EXPECT_EQ(prefixed->Decode(Ids{1, 15, 15, 3, 15}), "hello hello<keep>hello");
  vocabulary.add_space_prefix = false;
  const auto plain = vocabulary.Make();
  EXPECT_EQ(plain->Encode("hello hello<keep>hello", {}), (Ids{1, 14, 15, 3, 14}));
  EXPECT_EQ(plain->Decode(Ids{1, 15, 15}), " hello hello");
}

TEST(ScoredPieces, CharactersWithoutATokenAreSpelledInBytes) {
  TinyVocabulary vocabulary = TinyVocabulary::WithScores();
  vocabulary.add_space_prefix = false;
  const auto tokenizer = vocabulary.Make(true);
  ASSERT_TRUE(tokenizer) << tokenizer.error().Message();
  EXPECT_EQ(tokenizer->Encode("é\n", {.add_special = false}), (Ids{16 + 0xc3, 16 + 0xa9, 16 + '\n'}));
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode(bytes, {})), bytes) << "text need not be UTF-8";
  vocabulary.tokens[16 + 'q'] = "<0x71 >";
  vocabulary.types[16 + 'q'] = 1;
  EXPECT_EQ(vocabulary.Make()->Encode("q", {.add_special = false}), (Ids{0})) << "the unknown token stands in";
}

TEST(ScoredPieces, ManyJoinsInOneRunTakeLinearMemory) {
  TinyVocabulary vocabulary = TinyVocabulary::WithScores();
  EXPECT_EQ(vocabulary.Make()->Encode(std::string(100001, 'l'), {.add_special = false})->size(), 50002U);
  EXPECT_EQ(vocabulary.Make()->Encode("", {}), (Ids{1, 8})) << "the space before";
}

TEST(ScoredPieces, ScoresAreNeededAndOrdered) {
  TinyVocabulary none = TinyVocabulary::WithScores();
  none.scores.clear();
  EXPECT_EQ(none.CodeOfMake(), Code::kTokenizerArrays);
  TinyVocabulary few = TinyVocabulary::WithScores();
  few.scores.pop_back();
  EXPECT_EQ(few.CodeOfMake(), Code::kTokenizerArrays);
  TinyVocabulary wild = TinyVocabulary::WithScores();
  wild.scores[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(wild.CodeOfMake(), Code::kTokenizerScores);
}

TEST(ScoredPieces, TextBeyondThirtyTwoBitsIsRefused) {
  const std::vector<std::string> tokens = {"x"};
  const std::vector<float> scores = {0};
  const ScoredPieces pieces(tokens, scores);
  std::vector<std::int32_t> ids;
  const std::string_view huge("x", std::size_t{1} << 31);  // never read: the length alone is refused
  const auto done = pieces.Encode(huge, std::nullopt, ids);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kTokenizerText);
  EXPECT_EQ(pieces.Encode("y", std::nullopt, ids).error().code, Code::kTokenizerText);
}

TEST(StreamDecoder, HoldsBackAnIncompleteCharacter) {
  const auto tokenizer = TinyVocabulary().Make();
  StreamDecoder decoder(*tokenizer);
  const auto ids = tokenizer->Encode("a😀é", {});
  ASSERT_TRUE(ids);
  std::string text;
  for (const std::int32_t id : *ids) {
    const std::string shown = decoder.Push(id);
    EXPECT_TRUE(shown.empty() || shown == "a" || shown == "😀" || shown == "é");
    text += shown;
  }
  EXPECT_EQ(text, "a😀é");
  EXPECT_EQ(decoder.Push(tokenizer->Find(ByteText(0xf0))), "");
  EXPECT_EQ(decoder.Flush(), "\xf0");
}

TEST(Vocabulary, RefusesWhatItCannotRead) {
  TinyVocabulary none;
  none.with_tokens = false;
  EXPECT_EQ(none.CodeOfMake(), Code::kNoTokenizer);
  EXPECT_NE(none.Make().error().where.find(".gguf"), std::string::npos) << "every error names the file";
  TinyVocabulary pieces;
  pieces.model = "bert";
  EXPECT_EQ(pieces.CodeOfMake(), Code::kTokenizerUnsupported);
  EXPECT_NE(pieces.Make().error().Message().find("WordPiece"), std::string::npos);
  TinyVocabulary other;
  other.model = "rwkv";
  EXPECT_EQ(other.CodeOfMake(), Code::kTokenizerUnsupported);
  TinyVocabulary unnamed;
  unnamed.with_pre = false;
  EXPECT_EQ(unnamed.CodeOfMake(), Code::kTokenizerUnsupported);
  TinyVocabulary unknown;
  unknown.pre = "klingon";
  EXPECT_EQ(unknown.CodeOfMake(), Code::kTokenizerUnsupported);
}

TEST(Vocabulary, RefusesArraysThatDisagree) {
  TinyVocabulary types;
  types.types.pop_back();
  EXPECT_EQ(types.CodeOfMake(), Code::kTokenizerArrays);
  TinyVocabulary merges;
  merges.with_merges = false;
  EXPECT_EQ(merges.CodeOfMake(), Code::kTokenizerArrays);
  TinyVocabulary type;
  type.types[3] = 7;
  EXPECT_EQ(type.CodeOfMake(), Code::kTokenizerTokenType);
}

TEST(Vocabulary, RefusesHostileTokensAndMerges) {
  TinyVocabulary merge;
  merge.merges.emplace_back("nospace");
  EXPECT_EQ(merge.CodeOfMake(), Code::kTokenizerMerges);
  TinyVocabulary half;
  half.merges.emplace_back("half ");
  EXPECT_EQ(half.CodeOfMake(), Code::kTokenizerMerges);
  TinyVocabulary byte;
  byte.tokens[5] = "<0x-1>";
  byte.types[5] = 6;
  EXPECT_EQ(byte.CodeOfMake(), Code::kTokenizerByteToken);
  TinyVocabulary longest;
  longest.tokens[264] = std::string(70000, 'x');
  EXPECT_EQ(longest.CodeOfMake(), Code::kTokenizerTokenLength);
}

// What other programs load as well is a warning, and an error for those who ask for strictness.
TEST(Vocabulary, WarnsWhereOtherProgramsLoadTheFile) {
  TinyVocabulary special;
  special.eos = 100000;
  EXPECT_EQ(special.CodeOfMake(true), Code::kTokenizerSpecialId);
  ASSERT_TRUE(special.Make());
  EXPECT_FALSE(special.Make()->eos());
  EXPECT_EQ(special.Make()->warnings().size(), 1U);

  TinyVocabulary duplicate;
  duplicate.tokens[256] = "hello";
  EXPECT_EQ(duplicate.CodeOfMake(true), Code::kTokenizerTokens);
  EXPECT_TRUE(duplicate.Make());
  TinyVocabulary empty;
  empty.tokens[264].clear();
  EXPECT_EQ(empty.CodeOfMake(true), Code::kTokenizerTokens);
  EXPECT_TRUE(empty.Make());
  TinyVocabulary merge;
  merge.merges.emplace_back("zz yy");
  EXPECT_EQ(merge.CodeOfMake(true), Code::kTokenizerTokens);
  EXPECT_TRUE(merge.Make());
  TinyVocabulary scores;
  scores.scores.assign(scores.tokens.size(), std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(scores.CodeOfMake(true), Code::kTokenizerScores);
  EXPECT_TRUE(scores.Make());
  EXPECT_TRUE(TinyVocabulary().Make(true)) << "an ordinary vocabulary has nothing to warn of";
}

TEST(Tokenizer, RefusesAByteThatTheVocabularyCannotSpell) {
  TinyVocabulary vocabulary;
  vocabulary.tokens['q'] = "unused text";
  const auto ids = vocabulary.Make()->Encode("q", {});
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code, Code::kTokenizerText);
}

}  // namespace
}  // namespace boltbeam::model
