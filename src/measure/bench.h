// llama-bench's measurement: what its flags mean, the list of tests they make, and the timing of one.
//
// A test processes a prompt of n_prompt random tokens, generates n_gen more one by one, or both, with n_depth
// tokens already in the context. A sample is one whole repetition. The context is computed through the model once and
// restored for every repetition, outside the timer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

namespace boltbeam::measure {

struct BenchTest {
  std::uint32_t threads = 0;
  std::uint64_t n_prompt = 0;
  std::uint64_t n_gen = 0;
  std::uint64_t n_depth = 0;
  model::CacheFormats cache = {};

  [[nodiscard]] std::uint64_t Positions() const { return n_depth + n_prompt + n_gen; }
};

struct BenchRequest {
  std::vector<std::uint64_t> prompts{512}, generated{128}, depths{0}, threads;
  std::vector<const formats::Format*> keys{formats::FindFormat("F16")}, values{formats::FindFormat("F16")};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> prompt_then_generated;  // -pg
  std::uint32_t repetitions = 5;
  double delay_s = 0;  // before each test
  bool warm_up = true;
  std::uint64_t seed = 1;
};

/// "1,2,4", "1-4", "0-512+128", "16-128*2" and any list of them; flag is named in the error.
Result<std::vector<std::uint64_t>> ParseRanges(std::string_view flag, std::string_view text);

/// "512,128": a prompt and what is generated after it.
Result<std::pair<std::uint64_t, std::uint64_t>> ParsePromptThenGenerated(std::string_view text);

/// In llama-bench's order: formats of keys, of values, threads, then depths, then prompts, generations and pairs; tests
/// that do nothing are left out.
std::vector<BenchTest> BuildBenchTests(const BenchRequest& request);

/// Random valid token ids, the same for the same seed: a longer sequence begins with the shorter one.
std::vector<std::int32_t> RandomTokens(std::uint32_t vocabulary, std::uint64_t count, std::uint64_t seed);

struct BenchHooks {
  std::function<void(std::uint32_t done, std::uint32_t total)> progress;  // repetitions, between the timed parts
  std::function<bool()> cancelled;
};

struct BenchSamples {
  BenchTest test;
  std::string date;  // UTC, when the test began
  std::vector<std::uint64_t> ns;

  [[nodiscard]] std::vector<double> TokensPerSecond() const;
};

/// Times one test on a session, which may hold a context of an earlier test: that is cut or extended.
Result<BenchSamples> RunBenchTest(engine::Engine& engine, engine::Session& session, const BenchTest& test,
                                  const BenchRequest& request, const BenchHooks& hooks = {});

/// Brings the session to exactly depth positions of the context that the seed stands for. The session's own positions
/// must have been made by this function (others are cut off by the caller).
Result<void> FillContext(engine::Engine& engine, engine::Session& session, std::uint64_t depth, std::uint64_t seed,
                         const BenchHooks& hooks = {});

/// kSparseModel when the file has holes in place of weights: zeroes are not what a model reads.
Result<void> RefuseSparse(const model::Model& model);

}  // namespace boltbeam::measure
