#include "measure/bench.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <random>
#include <thread>

#include "measure/clock.h"
#include "measure/environment.h"

namespace boltbeam::measure {
namespace {

// Beyond any model's context; the bound also keeps a range from filling the memory.
constexpr std::uint64_t kMostTokens = 1U << 24;
constexpr std::size_t kMostValues = 100'000;

/// Takes the number at the front of text; nullopt when there is none or it is too large.
std::optional<std::uint64_t> TakeNumber(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value > kMostTokens) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

Error BadRange(std::string_view flag, std::string_view text) {
  return {
      Code::kUsage, std::string(flag), fmt::format("\"{}\"", text),
      fmt::format("numbers up to {} such as 512 or 1,2,4, or ranges such as 1-4, 0-512+128 or 16-128*2", kMostTokens)};
}

Result<void> AppendRange(std::string_view flag, std::string_view item, std::vector<std::uint64_t>& values) {
  std::string_view rest = item;
  const auto first = TakeNumber(rest);
  if (!first) return std::unexpected(BadRange(flag, item));
  std::uint64_t last = *first, step = 1;
  char operation = '+';
  if (rest.starts_with('-')) {
    rest.remove_prefix(1);
    const auto number = TakeNumber(rest);
    if (!number) return std::unexpected(BadRange(flag, item));
    last = *number;
    if (rest.starts_with('+') || rest.starts_with('*')) {
      operation = rest.front();
      rest.remove_prefix(1);
      const auto size = TakeNumber(rest);
      if (!size) return std::unexpected(BadRange(flag, item));
      step = *size;
    }
  }
  if (!rest.empty() || last < *first) return std::unexpected(BadRange(flag, item));
  for (std::uint64_t value = *first; value <= last;) {
    values.push_back(value);
    const std::uint64_t next = operation == '+' ? value + step : value * step;
    if (values.size() > kMostValues || next <= value) {
      return std::unexpected(BadRange(flag, item));  // a range that never ends
    }
    value = next;
  }
  return {};
}

Result<void> Check(const BenchHooks& hooks) {
  if (hooks.cancelled && hooks.cancelled()) return Fail(Code::kInterrupted, "bench", "stopped by the user");
  return {};
}

/// In pieces, so that a long prompt can be stopped.
Result<void> RunPrompt(engine::Session& session, std::span<const std::int32_t> tokens, const BenchHooks& hooks) {
  constexpr std::size_t kPiece = 2048;
  while (!tokens.empty()) {
    BOLTBEAM_TRY(Check(hooks));
    const std::size_t count = std::min(kPiece, tokens.size());
    BOLTBEAM_TRY(session.Prompt(tokens.first(count)));
    tokens = tokens.subspan(count);
  }
  return {};
}

Result<void> RunOnce(engine::Session& session, std::span<const std::int32_t> prompt,
                     std::span<const std::int32_t> generated, const BenchHooks& hooks) {
  BOLTBEAM_TRY(RunPrompt(session, prompt, hooks));
  session.KeepLogits(false);  // nobody reads them
  for (const std::int32_t token : generated) {
    BOLTBEAM_TRY(Check(hooks));
    BOLTBEAM_TRY(session.Decode(token));
  }
  return {};
}

}  // namespace

Result<std::vector<std::uint64_t>> ParseRanges(std::string_view flag, std::string_view text) {
  std::vector<std::uint64_t> values;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    BOLTBEAM_TRY(AppendRange(flag, rest.substr(0, comma), values));
    if (comma == std::string_view::npos) return values;
    rest.remove_prefix(comma + 1);
  }
}

Result<std::pair<std::uint64_t, std::uint64_t>> ParsePromptThenGenerated(std::string_view text) {
  std::string_view rest = text;
  const auto prompt = TakeNumber(rest);
  const bool comma = rest.starts_with(',');
  if (comma) rest.remove_prefix(1);
  const auto generated = TakeNumber(rest);
  if (!prompt || !comma || !generated || !rest.empty()) {
    return Fail(Code::kUsage, "-pg", fmt::format("\"{}\"", text), "a prompt and a generation, such as 512,128");
  }
  return std::pair(*prompt, *generated);
}

std::vector<BenchTest> BuildBenchTests(const BenchRequest& request) {
  std::vector<BenchTest> tests;
  model::CacheFormats cache;
  const auto add = [&](std::uint64_t threads, std::uint64_t prompt, std::uint64_t generated, std::uint64_t depth) {
    if (prompt + generated == 0) return;
    tests.push_back({static_cast<std::uint32_t>(threads), prompt, generated, depth, cache});
  };
  const auto add_all = [&](std::uint64_t threads) {
    for (const std::uint64_t depth : request.depths) {
      for (const std::uint64_t prompt : request.prompts) add(threads, prompt, 0, depth);
      for (const std::uint64_t generated : request.generated) add(threads, 0, generated, depth);
      for (const auto& [prompt, generated] : request.prompt_then_generated) add(threads, prompt, generated, depth);
    }
  };
  const std::vector<std::uint64_t> threads = request.threads.empty() ? std::vector<std::uint64_t>{0} : request.threads;
  for (const formats::Format* keys : request.keys) {
    for (const formats::Format* values : request.values) {
      cache = {keys, values};
      for (const std::uint64_t count : threads) add_all(count);
    }
  }
  return tests;
}

std::vector<std::int32_t> RandomTokens(std::uint32_t vocabulary, std::uint64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % vocabulary);
  return tokens;
}

std::vector<double> BenchSamples::TokensPerSecond() const {
  std::vector<double> rates;
  rates.reserve(ns.size());
  for (const std::uint64_t sample : ns) {
    rates.push_back(1e9 * static_cast<double>(test.n_prompt + test.n_gen) / static_cast<double>(sample));
  }
  return rates;
}

Result<void> FillContext(engine::Engine& engine, engine::Session& session, std::uint64_t depth, std::uint64_t seed,
                         const BenchHooks& hooks) {
  if (session.depth() > depth) BOLTBEAM_TRY(session.Truncate(depth));
  const std::uint64_t have = session.depth();
  if (have == depth) return {};
  const std::vector<std::int32_t> tokens = RandomTokens(engine.model().hyper().vocab, depth, seed);
  return RunPrompt(session, std::span(tokens).subspan(have), hooks);
}

Result<BenchSamples> RunBenchTest(engine::Engine& engine, engine::Session& session, const BenchTest& test,
                                  const BenchRequest& request, const BenchHooks& hooks) {
  BOLTBEAM_ASSIGN(const Clock clock, GetClock());
  const std::uint32_t vocabulary = engine.model().hyper().vocab;
  const std::vector<std::int32_t> tokens = RandomTokens(vocabulary, test.n_prompt + test.n_gen, request.seed + 1);
  const std::span<const std::int32_t> prompt = std::span(tokens).first(test.n_prompt);
  const std::span<const std::int32_t> generated = std::span(tokens).subspan(test.n_prompt);
  if (request.delay_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(request.delay_s));

  BenchSamples samples{test, UtcNow(), {}};
  BOLTBEAM_TRY(FillContext(engine, session, test.n_depth, request.seed, hooks));
  if (request.warm_up) {
    BOLTBEAM_TRY(RunOnce(session, prompt, generated.first(std::min<std::size_t>(1, generated.size())), hooks));
  }
  for (std::uint32_t repetition = 0; repetition < request.repetitions; ++repetition) {
    if (hooks.progress) hooks.progress(repetition, request.repetitions);
    BOLTBEAM_TRY(session.Truncate(test.n_depth));
    const std::uint64_t begin = base::Ticks();
    BOLTBEAM_TRY(RunOnce(session, prompt, generated, hooks));
    samples.ns.push_back(static_cast<std::uint64_t>(clock.ToNs(base::Ticks() - begin)));
    if (samples.ns.back() == 0) {
      return Fail(Code::kMeasurementImpossible, "bench", "a repetition that took no time", "work that takes time");
    }
  }
  BOLTBEAM_TRY(session.Truncate(test.n_depth));  // so that the context of a later test can extend this one's
  return samples;
}

Result<void> RefuseSparse(const model::Model& model) {
  if (!model.file().sparse()) return {};
  return Fail(Code::kSparseModel, model.file().path(), "a sparse file: holes in place of weights",
              "a file with weights; `boltbeam synth` without --sparse writes one");
}

}  // namespace boltbeam::measure
