// The judge on real kernels of two threads: the same plan twice, and one that was made slower in its generated code. On
// a machine that others use the tests skip: what they would judge is the others. No other refusal is an excuse.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "chip/facts.h"
#include "judge/judge.h"
#include "model/synth.h"

namespace boltbeam::judge {
namespace {

class JudgeOfKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::filesystem::path(testing::TempDir()) / fmt::format("boltbeam_judge_{}", ::getpid());
    std::filesystem::create_directories(folder_);
    model::SynthOptions synth;
    synth.layers = 8;
    const std::string path = (folder_ / "model.gguf").string();
    const auto plan = model::PlanSynth("qwen3-0.6b:Q4_K_M", synth);
    ASSERT_TRUE(plan && model::WriteSynth(*plan, path, synth));
    model_ = std::make_unique<model::Model>(model::Model::Load(path).value());
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static std::unique_ptr<engine::Engine> Load(std::uint32_t slow_turns) {
    engine::Options options;
    options.context = 256;
    options.threads = 2;
    options.cache_folder = folder_.string();
    if (slow_turns != 0) options.slow_part = "ffn_down";
    options.slow_turns = slow_turns;
    return engine::Engine::Load(*model_, chip::DetectThisMachine().value(), options).value();
  }

  // Again while other programs disturb it, a few times.
  static Judgement JudgeQuietly(engine::Engine& a, engine::Engine& b, std::uint64_t seed) {
    constexpr std::uint64_t kTries = 3;
    Judgement judgement = Judge(a, b, seed);
    for (std::uint64_t i = 1; i < kTries && IsDisturbed(judgement); ++i) judgement = Judge(a, b, seed + 100 * i);
    return judgement;
  }

  static bool IsDisturbed(const Judgement& judgement) { return StateOf(judgement.conditions, kQuiet) == State::kFail; }

  static Judgement Judge(engine::Engine& a, engine::Engine& b, std::uint64_t seed) {
    Request request;
    // The full protocol on request: BOLTBEAM_JUDGE_SECONDS=30.
    const char* seconds = std::getenv("BOLTBEAM_JUDGE_SECONDS");
    request.budget_s = seconds != nullptr ? std::atof(seconds) : 4;
    request.seed = seed;
    request.output_tokens = 8;
    const Thresholds thresholds = LoadThresholds().value();
    const auto run = CompareEngines({&a, {}, {}}, {&b, {}, {}}, {}, request, thresholds);
    EXPECT_TRUE(run) << run.error().Message();
    if (!run) return {};
    Judgement judgement = Decide(run->findings, thresholds);
    const auto work = std::ranges::find(judgement.conditions, kTimedWork, &Condition::name);
    std::cout << fmt::format("{}: {:.4f} ({:.4f} to {:.4f}), {}; {}\n", measure::OutcomeName(judgement.outcome),
                             judgement.ratio.estimate, judgement.ratio.low, judgement.ratio.high, judgement.reason,
                             work->detail);
    return judgement;
  }

  static inline std::filesystem::path folder_;
  static inline std::unique_ptr<model::Model> model_;
};

TEST_F(JudgeOfKernels, TheSamePlanTwiceIsNoDifference) {
  const auto a = Load(0), b = Load(0);
  const Judgement judgement = JudgeQuietly(*a, *b, 1);
  // Nothing that disturbs a measurement changes an output.
  for (const std::string_view name : {kOutput, kDeterministic, kTimedOutput}) {
    EXPECT_EQ(StateOf(judgement.conditions, name), State::kPass) << judgement.reason;
  }
  if (IsDisturbed(judgement)) GTEST_SKIP() << judgement.reason;
  EXPECT_FALSE(judgement.refused) << judgement.reason;
  EXPECT_EQ(StateOf(judgement.conditions, kTimedWork), State::kPass) << judgement.reason;
  EXPECT_EQ(judgement.outcome, measure::Outcome::kNoDifference);
}

TEST_F(JudgeOfKernels, ASlowedKernelIsSlowerAndTheOtherWayRoundFaster) {
  constexpr std::uint32_t kTurns = 3000;  // several per cent of this token
  const auto plain = Load(0), slowed = Load(kTurns);
  const Judgement slower = JudgeQuietly(*plain, *slowed, 2), faster = JudgeQuietly(*slowed, *plain, 3);
  if (IsDisturbed(slower) || IsDisturbed(faster)) GTEST_SKIP() << slower.reason << "; " << faster.reason;
  EXPECT_EQ(slower.outcome, measure::Outcome::kSlower);
  EXPECT_EQ(slower.ruling, Ruling::kInconclusive) << "seen once: no fresh process was asked";
  EXPECT_EQ(faster.outcome, measure::Outcome::kFaster);
  EXPECT_FALSE(faster.refused) << faster.reason;
}

}  // namespace
}  // namespace boltbeam::judge
