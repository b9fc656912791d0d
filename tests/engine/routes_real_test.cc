// Real models: the same logits to the last bit at one thread and at two, and with every route of the registry switched
// the other way, one at a time. A route whose row says that its arithmetic differs is held to a bound on the
// divergence instead, and so is a cache in 8-bit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/routes.h"
#include "model/tokenizer.h"
#include "real_model.h"

namespace boltbeam::engine {
namespace {

constexpr std::size_t kTokens = 256;
// Two correct programs that round differently before activations become 8-bit codes are 2e-3 to 5e-3 apart
// (docs/perplexity.md); a cache in codes is such a difference.
constexpr double kMostDivergence = 5e-3;

/// What a run's logits were, token by token: of all their bits, and every 16th in full.
struct Walk {
  std::vector<std::int32_t> tokens;
  std::vector<std::size_t> bits;
  std::vector<std::vector<float>> logits;
};

class RoutesReal : public testing::TestWithParam<const char*> {
 protected:
  /// Decodes kTokens after a text: those that it finds most probable, or those of another run.
  Walk Run(Options options, const std::vector<std::int32_t>& tokens = {}) {
    options.context = 512;
    options.cache_folder = (std::filesystem::current_path() / "kernel-cache").string();
    const auto engine = Engine::Load(model(), chip::DetectThisMachine().value(), options);
    EXPECT_TRUE(engine) << engine.error().Message();
    const auto session = (*engine)->NewSession();
    EXPECT_TRUE(session) << session.error().Message();
    const model::Tokenizer tokenizer = model::Tokenizer::Make(model().file()).value();
    EXPECT_TRUE((*session)->Prompt(tokenizer.Encode("The history of the city begins with", {}).value()));
    Walk walk{tokens, {}, {}};
    for (std::size_t i = 0; i < kTokens; ++i) {
      if (tokens.empty()) walk.tokens.push_back((*session)->argmax());
      EXPECT_TRUE((*session)->Decode(walk.tokens[i]));
      const std::span<const float> logits = (*session)->logits();
      const auto bytes = std::as_bytes(logits);
      walk.bits.push_back(std::hash<std::string_view>()(
          {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));  // NOLINT: bytes as characters
      if (i % 16 == 15) walk.logits.emplace_back(logits.begin(), logits.end());
    }
    return walk;
  }

  /// The token after which two runs' logits were no longer the same bits; kTokens when they always were.
  static std::size_t FirstDifference(const Walk& a, const Walk& b) {
    return static_cast<std::size_t>(std::ranges::mismatch(a.bits, b.bits).in1 - a.bits.begin());
  }

  const model::Model& model() {
    if (!model_) model_ = std::make_unique<model::Model>(model::Model::Load(RealModelPath(GetParam())).value());
    return *model_;
  }

 private:
  std::unique_ptr<model::Model> model_;
};

/// In double precision: log of the sum of e^logit.
double LogSum(const std::vector<float>& logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

/// Mean over the tokens of sum of p (log p - log q).
double MeanDivergence(const Walk& base, const Walk& other) {
  double total = 0;
  for (std::size_t i = 0; i < base.logits.size(); ++i) {
    const std::vector<float>&p = base.logits[i], &q = other.logits[i];
    const double log_p = LogSum(p), log_q = LogSum(q);
    for (std::size_t k = 0; k < p.size(); ++k) total += std::exp(p[k] - log_p) * ((p[k] - log_p) - (q[k] - log_q));
  }
  return total / static_cast<double>(base.logits.size());
}

TEST_P(RoutesReal, TheSameLogitsAtAnyNumberOfThreadsAndWithEveryRouteTheOtherWay) {
  BOLTBEAM_NEED_REAL_MODEL(GetParam());
  Options options;
  options.threads = 1;
  const Walk base = Run(options);
  ASSERT_EQ(base.bits.size(), kTokens);
  for (const std::uint32_t threads : {1U, 2U}) {
    if (chip::UsableCpus().size() < threads) GTEST_SKIP() << "one usable CPU";
    options.threads = threads;
    if (threads > 1) {
      EXPECT_EQ(FirstDifference(base, Run(options, base.tokens)), kTokens) << threads << " threads";
    }
    for (const Route& route : Routes()) {
      Options other = options;
      (route.on ? other.without : other.with).push_back(route.name);
      const Walk walk = Run(other, base.tokens);
      const std::string where = route.name + (route.on ? " off, " : " on, ") + std::to_string(threads) + " thread(s)";
      if (route.bitwise) {
        EXPECT_EQ(FirstDifference(base, walk), kTokens) << where;
      } else {
        EXPECT_LE(MeanDivergence(base, walk), kMostDivergence) << where;
      }
    }
  }
}

TEST_P(RoutesReal, ACacheInCodesGivesTheSameLogitsAtTwoThreadsAndNearlyThoseOfFloats) {
  BOLTBEAM_NEED_REAL_MODEL(GetParam());
  Options options;
  options.threads = 1;
  const Walk floats = Run(options);
  options.cache = {formats::FindFormat("Q8_0"), formats::FindFormat("Q8_0")};
  const Walk codes = Run(options, floats.tokens);
  const double divergence = MeanDivergence(floats, codes);
  EXPECT_GT(divergence, 1e-9) << "the cache in codes was not used";
  EXPECT_LE(divergence, kMostDivergence);
  if (chip::UsableCpus().size() < 2) GTEST_SKIP() << "one usable CPU";
  options.threads = 2;
  EXPECT_EQ(FirstDifference(codes, Run(options, floats.tokens)), kTokens);
}

INSTANTIATE_TEST_SUITE_P(Models, RoutesReal, testing::Values("smollm2", "gemma3"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace boltbeam::engine
