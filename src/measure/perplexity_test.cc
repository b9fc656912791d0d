#include "measure/perplexity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

namespace boltbeam::measure {
namespace {

constexpr std::uint32_t kVocabulary = 301;  // odd: a row is padded

// Logits that depend on every token before, as a model's do, and on nothing else.
class HashSession : public engine::Session {
 public:
  double noise = 0;     // added to every logit, differently for each
  bool broken = false;  // one logit is not a number
  std::vector<std::int32_t> first_tokens;
  std::size_t prompts = 0, decodes = 0, most = 0, computed = 0;

  std::uint64_t depth() const override { return context_.size(); }
  Result<void> Prompt(std::span<const std::int32_t> tokens,
                      const std::function<void(std::size_t, std::span<const float>)>& each) override {
    ++prompts;
    most = std::max(most, tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      Append(tokens[i]);
      if (each) each(i, logits_);
    }
    return {};
  }
  Result<void> Decode(std::int32_t token, engine::Trace*) override {
    ++decodes;
    Append(token);
    return {};
  }
  std::span<const float> logits() const override { return logits_; }
  void KeepLogits(bool /*keep*/) override {}
  std::int32_t argmax() const override { return 0; }
  Result<void> Truncate(std::uint64_t depth) override {
    context_.resize(depth);
    return {};
  }

 private:
  void Append(std::int32_t token) {
    if (context_.empty()) first_tokens.push_back(token);
    context_.push_back(token);
    ++computed;
    std::uint32_t hash = 1;
    for (const std::int32_t id : context_) hash = hash * 31 + static_cast<std::uint32_t>(id);
    std::mt19937 random(hash), other(hash + 1);
    logits_.resize(kVocabulary);
    for (float& logit : logits_) {
      logit = static_cast<float>(random() % 10000) / 1000 + static_cast<float>(noise * (other() % 1000) / 1000);
    }
    if (broken) logits_[7] = std::numeric_limits<float>::quiet_NaN();
  }

  std::vector<std::int32_t> context_;
  std::vector<float> logits_;
};

std::vector<std::int32_t> Text(std::size_t tokens) {
  std::mt19937 random(3);
  std::vector<std::int32_t> text(tokens);
  for (std::int32_t& id : text) id = static_cast<std::int32_t>(random() % kVocabulary);
  return text;
}

std::string TemporaryPath(const char* name) {
  return (std::filesystem::temp_directory_path() / (std::string(name) + std::to_string(getpid()))).string();
}

PerplexityRequest Request(std::size_t tokens = 100) {
  PerplexityRequest request;
  request.tokens = Text(tokens);
  request.context = 16;
  request.vocabulary = kVocabulary;
  request.batch = 4;
  return request;
}

// A base file written by one session, and the comparison of another one with it.
class WithBase : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  void WriteBase() {
    HashSession session;
    PerplexityRequest request = Request();
    request.save_base = path_;
    ASSERT_TRUE(MeasurePerplexity(session, request));
  }
  Result<PerplexityResult> Compare(HashSession& session, bool token_by_token = false) {
    auto base = LogitsReader::Open(path_);
    if (!base) return std::unexpected(base.error());
    PerplexityRequest request = Request();
    request.tokens.assign(base->tokens().begin(), base->tokens().end());
    request.base = &*base;
    request.token_by_token = token_by_token;
    return MeasurePerplexity(session, request);
  }

  std::string path_ = TemporaryPath("boltbeam_base_");
};

TEST(Perplexity, ScoresTheSecondHalfOfEveryWholeChunk) {
  HashSession session;
  const auto result = MeasurePerplexity(session, Request());
  ASSERT_TRUE(result) << result.error().Message();
  EXPECT_EQ(result->chunks, 6U);
  EXPECT_EQ(result->tokens, 6U * 7U);  // positions 8 to 14 of 16
  EXPECT_EQ(session.computed, 6U * 15U) << "a chunk's last token is only predicted";
  EXPECT_LE(session.most, 4U);
  EXPECT_FALSE(result->has_base);
}

TEST(Perplexity, IsTheExponentialOfTheMeanLogLoss) {
  HashSession session, reference;
  PerplexityRequest request = Request(16);
  const auto result = MeasurePerplexity(session, request);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < 15; ++i) {
    ASSERT_TRUE(reference.Decode(request.tokens[i], nullptr));
    if (i < 8) continue;
    double total = 0;
    for (const float logit : reference.logits()) total += std::exp(static_cast<double>(logit));
    const double loss = std::log(total) - reference.logits()[static_cast<std::size_t>(request.tokens[i + 1])];
    sum += loss;
    squares += loss * loss;
  }
  const double mean = sum / 7, error = std::sqrt((squares / 7 - mean * mean) / 6);
  ASSERT_TRUE(result);
  EXPECT_NEAR(result->perplexity, std::exp(mean), 1e-9 * std::exp(mean));
  EXPECT_NEAR(result->perplexity_error, error * std::exp(mean), 1e-6 * std::exp(mean));
}

TEST(Perplexity, TokenByTokenGivesTheSameNumbers) {
  HashSession batched, single;
  PerplexityRequest request = Request();
  const auto a = MeasurePerplexity(batched, request);
  request.token_by_token = true;
  const auto b = MeasurePerplexity(single, request);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->perplexity, b->perplexity);
  EXPECT_EQ(batched.decodes, 0U);
  EXPECT_EQ(single.prompts, 0U);
  EXPECT_EQ(single.decodes, 6U * 15U);
}

TEST(Perplexity, BosTakesThePlaceOfEachChunksFirstToken) {
  HashSession session;
  PerplexityRequest request = Request();
  request.bos = 5;
  ASSERT_TRUE(MeasurePerplexity(session, request));
  EXPECT_EQ(session.first_tokens, std::vector<std::int32_t>(6, 5));
}

TEST(Perplexity, StopsAtTheNumberOfChunksAskedFor) {
  HashSession session;
  PerplexityRequest request = Request();
  request.max_chunks = 2;
  EXPECT_EQ(MeasurePerplexity(session, request)->tokens, 14U);
}

TEST(Perplexity, RefusesWhatCannotBeScored) {
  HashSession session;
  PerplexityRequest request = Request(15);
  EXPECT_EQ(MeasurePerplexity(session, request).error().code, Code::kTextTooShort);
  request = Request();
  request.context = 2;
  EXPECT_EQ(MeasurePerplexity(session, request).error().code, Code::kTextTooShort);
  session.broken = true;
  EXPECT_EQ(MeasurePerplexity(session, Request()).error().code, Code::kLogits);
}

TEST(Perplexity, AnInterruptionLeavesNoFileBehind) {
  HashSession session;
  PerplexityRequest request = Request();
  request.save_base = TemporaryPath("boltbeam_interrupted_");
  request.cancelled = [&] { return session.computed >= 40; };
  EXPECT_EQ(MeasurePerplexity(session, request).error().code, Code::kInterrupted);
  EXPECT_FALSE(std::filesystem::exists(request.save_base));
  EXPECT_FALSE(std::filesystem::exists(request.save_base + "." + std::to_string(getpid()) + ".tmp"));
}

TEST_F(WithBase, ADistributionAgainstItselfIsWithinTheFilesSteps) {
  WriteBase();
  for (const bool token_by_token : {false, true}) {
    HashSession session;
    const auto result = Compare(session, token_by_token);
    ASSERT_TRUE(result) << result.error().Message();
    EXPECT_TRUE(result->has_base);
    EXPECT_EQ(result->tokens, 42U);
    EXPECT_LT(std::abs(result->kl_mean), 1e-5);
    EXPECT_LT(result->kl_max, 2.4e-4);
    EXPECT_NEAR(result->base_perplexity, result->perplexity, 2e-4 * result->perplexity);
    for (const Miss& miss : result->misses) {
      EXPECT_LE(miss.gap, 2.4e-4) << "only what the file's steps can't tell apart";
    }
  }
}

TEST_F(WithBase, ADifferentDistributionShowsWithRankAndGap) {
  WriteBase();
  HashSession session;
  session.noise = 2;
  const auto result = Compare(session);
  ASSERT_TRUE(result);
  EXPECT_GT(result->kl_mean, 0.05);
  EXPECT_LE(result->kl_median, result->kl_p99);
  EXPECT_LE(result->kl_p99, result->kl_max);
  ASSERT_FALSE(result->misses.empty());
  EXPECT_NEAR(result->top1_agreement, 1 - static_cast<double>(result->misses.size()) / 42, 1e-12);
  for (const Miss& miss : result->misses) {
    EXPECT_GE(miss.rank, 2U);
    EXPECT_GT(miss.gap, 0);
    EXPECT_GE(miss.base_gap, 0);
    EXPECT_LT(miss.chunk, 6U);
    EXPECT_GE(miss.position, 8U);
    EXPECT_LT(miss.position, 15U);
  }
}

TEST_F(WithBase, TheBaseMustBeOfTheSameVocabulary) {
  WriteBase();
  auto base = LogitsReader::Open(path_);
  HashSession session;
  PerplexityRequest request = Request();
  request.base = &*base;
  request.vocabulary = 300;
  EXPECT_EQ(MeasurePerplexity(session, request).error().code, Code::kLogitsFile);
}

TEST(ScorePosition, KnownNumbers) {
  // Base 1/2, 1/4, 1/4 and ours 1/4, 1/2, 1/4: KL = 1/2 log 2 - 1/4 log 2.
  const std::vector<float> base = {std::log(2.0F), 0, 0}, ours = {0, std::log(2.0F), 0};
  std::vector<std::uint16_t> row(8);
  EncodeLogits(base, row);
  const LogitsRow view = DecodeLogits(row, 3);
  const auto score = ScorePosition(ours, 2, &view);
  ASSERT_TRUE(score);
  EXPECT_NEAR(score->negative_log, std::log(4), 1e-6);
  EXPECT_NEAR(score->base_negative_log, std::log(4), 1e-4);
  EXPECT_NEAR(score->kl, 0.25 * std::log(2), 1e-4);
  ASSERT_TRUE(score->miss);
  EXPECT_EQ(score->miss->base_token, 0);
  EXPECT_EQ(score->miss->our_token, 1);
  EXPECT_EQ(score->miss->rank, 2U);
  EXPECT_NEAR(score->miss->gap, std::log(2), 1e-6);
  EXPECT_NEAR(score->miss->base_gap, std::log(2), 1e-4);
}

TEST(LogitsFile, KeepsSixteenBelowTheLargestInSteps) {
  std::vector<float> logits(10);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = -3.0F * static_cast<float>(i);
  std::vector<std::uint16_t> row(14);
  EncodeLogits(logits, row);
  const LogitsRow view = DecodeLogits(row, logits.size());
  const double log_sum = std::log(1 / (1 - std::exp(-3.0)));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(view.At(i), std::max(-16.0F, logits[i]) - log_sum, 1.3e-4) << i;
  }
  EncodeLogits(std::vector<float>(10, 1.0F), row);
  EXPECT_NEAR(DecodeLogits(row, 10).At(3), -std::log(10), 1e-6) << "equal logits have a step of 0";
}

TEST(LogitsFile, RefusesWhatIsNotOne) {
  EXPECT_EQ(LogitsReader::Open("/nonexistent/base").error().code, Code::kFileNotFound);
  const std::string path = TemporaryPath("boltbeam_logits_");
  const auto code_of = [&](std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    auto reader = LogitsReader::Open(path);
    return reader ? Code::kCount : reader.error().code;
  };
  const auto number = [](std::int32_t value) { return std::string(reinterpret_cast<const char*>(&value), 4); };
  const std::string header = "_logits_" + number(4) + number(3) + number(1);
  const std::string good = header + number(0) + number(1) + number(2) + number(0) + std::string(16, '\0');
  EXPECT_EQ(code_of(good), Code::kCount);
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(code_of(good.substr(0, length)), Code::kLogitsFile) << length;
  }
  EXPECT_EQ(code_of(good + "x"), Code::kLogitsFile);
  EXPECT_EQ(code_of("GGUF" + good.substr(4)), Code::kLogitsFile);
  EXPECT_EQ(code_of("_logits_" + number(-4) + number(3) + number(1)), Code::kLogitsFile);
  EXPECT_EQ(code_of("_logits_" + number(1 << 30) + number(1 << 30) + number(1 << 30)), Code::kLogitsFile);
  EXPECT_EQ(code_of(header + number(0) + number(3) + number(2) + number(0) + std::string(16, '\0')), Code::kLogitsFile);
  std::filesystem::remove(path);
}

TEST(LogitsFile, SaysWhyItCannotBeWritten) {
  const std::vector<std::int32_t> tokens = {0, 1, 2, 0};
  const auto writer = LogitsWriter::Create("/nonexistent/folder/base", {4, 3, 1}, tokens);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, Code::kFileWrite);
}

}  // namespace
}  // namespace boltbeam::measure
