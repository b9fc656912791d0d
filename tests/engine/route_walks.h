// Test support: 256 tokens of a model, and the same ones with every route of the registry switched the other way.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/routes.h"

namespace boltbeam::engine {

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

/// The token after which two runs' logits were no longer the same bits; kTokens when they always were.
inline std::size_t FirstDifference(const Walk& a, const Walk& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a.bits, b.bits).in1 - a.bits.begin());
}

/// In double precision: log of the sum of e^logit.
inline double LogSum(const std::vector<float>& logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

/// Mean over the tokens of sum of p (log p - log q).
inline double MeanDivergence(const Walk& base, const Walk& other) {
  double total = 0;
  for (std::size_t i = 0; i < base.logits.size(); ++i) {
    const std::vector<float>&p = base.logits[i], &q = other.logits[i];
    const double log_p = LogSum(p), log_q = LogSum(q);
    for (std::size_t k = 0; k < p.size(); ++k) total += std::exp(p[k] - log_p) * ((p[k] - log_p) - (q[k] - log_q));
  }
  return total / static_cast<double>(base.logits.size());
}

/// A route that no plan of a model takes.
struct ClosedRoute {
  std::string_view route, why;
  std::uint32_t threads = 0;  // with so many; 0: with any
};

class RouteWalks {
 public:
  RouteWalks(const model::Model& model, std::vector<std::int32_t> prompt) : model_(model), prompt_(std::move(prompt)) {}

  /// Decodes kTokens after the prompt: those that it finds most probable, or those of another run.
  [[nodiscard]] Walk Run(const Options& options, const std::vector<std::int32_t>& tokens = {}) const {
    const std::unique_ptr<Engine> engine = Load(options);
    const auto session = engine->NewSession();
    EXPECT_TRUE(session) << session.error().Message();
    EXPECT_TRUE((*session)->Prompt(prompt_));
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

  /// The same logits at one thread and at two, and with each route the other way: to the last bit, or within a bound on
  /// the divergence where the route's row says that its arithmetic differs. A route that changes no plan fails, unless
  /// it is among the closed ones, and then if it is taken.
  void ExpectTheSameOnEveryRoute(const std::vector<ClosedRoute>& closed) const {
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
        const std::string where = route.name + (route.on ? " off, " : " on, ") + std::to_string(threads) + " thread(s)";
        const auto found = std::ranges::find_if(closed, [&](const ClosedRoute& one) {
          return one.route == route.name && (one.threads == 0 || one.threads == threads);
        });
        const auto [with, without] = BothWays(options, route);
        EXPECT_EQ(Takes(with, route), found == closed.end()) << where << (found == closed.end() ? "" : found->why);
        EXPECT_FALSE(Takes(without, route)) << where;
        if (found != closed.end()) continue;
        const Walk walk = Run(route.on ? without : with, base.tokens);
        if (route.bitwise) {
          EXPECT_EQ(FirstDifference(base, walk), kTokens) << where;
        } else {
          EXPECT_LE(MeanDivergence(base, walk), kMostDivergence) << where;
        }
      }
    }
  }

 private:
  [[nodiscard]] std::unique_ptr<Engine> Load(Options options) const {
    options.context = 512;
    options.cache_folder = (std::filesystem::current_path() / "kernel-cache").string();
    auto engine = Engine::Load(model_, chip::DetectThisMachine().value(), options);
    EXPECT_TRUE(engine) << engine.error().Message();
    return std::move(*engine);
  }

  [[nodiscard]] bool Takes(const Options& options, const Route& route) const {
    return Load(options)->route_uses().contains(route.name);
  }

  /// With the route and without; what would stand in its place is off in both.
  static std::pair<Options, Options> BothWays(const Options& options, const Route& route) {
    Options with = options;
    for (const Route& other : Routes()) {
      if (other.in_place_of == route.name) with.without.push_back(other.name);
    }
    Options without = with;
    with.with.push_back(route.name);
    without.without.push_back(route.name);
    return {with, without};
  }

  const model::Model& model_;
  std::vector<std::int32_t> prompt_;
};

}  // namespace boltbeam::engine
