// One judgement of a model against itself with one side slowed inside its generated code, as JSON: a known difference
// for judge_series.py. The judge is the one that `boltbeam judge` calls.
//
//   judge_slowed MODEL PART SHARE BUDGET_S SEED [DEPTH]
//
// B's kernels of PART wait for some turns of a useless loop: as many as make the token longer by SHARE, such as 0.02,
// within three tenths of it, which is tried out first. "norm" is the part for it: every thread computes every norm, so
// that all of them wait together. Of a product's waiting the memory hides a part, and how much hangs on how fast it is
// just then: another thread's stream goes on meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/paths.h"
#include "chip/facts.h"
#include "judge/engine_rounds.h"
#include "judge/judge.h"
#include "measure/clock.h"
#include "report/judge_format.h"

namespace {

using namespace boltbeam;

struct Arguments {
  std::string model, part;
  double share = 0;
  judge::Request request;
};

Result<std::unique_ptr<engine::Engine>> Load(const model::Model& model, const chip::Chip& machine,
                                             const Arguments& arguments, std::uint32_t turns) {
  engine::Options options;
  options.context = judge::ContextNeeded(arguments.request);
  options.cache_folder = (base::ResolvePaths("").cache / "kernels").string();
  options.slow_part = turns != 0 ? arguments.part : "";
  options.slow_turns = turns;
  return engine::Engine::Load(model, machine, options);
}

// By how much B's token is longer, from so many seconds of rounds.
Result<double> Longer(engine::Engine& a, engine::Engine& b, std::uint64_t seed, double seconds) {
  BOLTBEAM_ASSIGN(const measure::Clock clock, measure::GetClock());
  BOLTBEAM_ASSIGN(const auto session_a, a.NewSession());
  BOLTBEAM_ASSIGN(const auto session_b, b.NewSession());
  const std::uint32_t vocabulary = a.model().hyper().vocab;
  BOLTBEAM_ASSIGN(const std::uint32_t tokens, judge::ChooseWindow(*session_a, *session_b, vocabulary, clock));
  judge::EngineRounds rounds({.a = session_a.get(),
                              .b = session_b.get(),
                              .clock = clock,
                              .vocabulary = vocabulary,
                              .window_tokens = tokens,
                              .limit = {},
                              .seed = seed});
  measure::PairedRules rules;
  rules.budget_s = seconds;
  rules.looks = {1};
  rules.resamples = 0;
  BOLTBEAM_ASSIGN(const measure::PairedSession session, measure::RunPaired(rounds, rules));
  return session.result.ratio.estimate - 1;
}

struct Slowed {
  std::unique_ptr<engine::Engine> engine;
  std::uint32_t turns = 0;
};

// Two copies of a model differ by up to 1 % by where their pages lie: the engine that was weighed is the one that is
// judged.
Result<Slowed> SlowedBy(const model::Model& model, const chip::Chip& machine, const Arguments& arguments,
                        engine::Engine& a) {
  constexpr double kFirst = 350, kLeastShare = 0.001, kLeastStep = 0.4, kMostStep = 2.5, kNear = 0.3, kSeconds = 6;
  constexpr std::uint64_t kTries = 12;
  double turns = kFirst;
  for (std::uint64_t attempt = 1; attempt <= kTries; ++attempt) {
    Slowed slowed{nullptr, static_cast<std::uint32_t>(turns)};
    BOLTBEAM_ASSIGN(slowed.engine, Load(model, machine, arguments, slowed.turns));
    const double seconds = attempt == 1 ? kSeconds / 3 : kSeconds;
    BOLTBEAM_ASSIGN(const double longer, Longer(a, *slowed.engine, arguments.request.seed + attempt, seconds));
    if (attempt > 1 && std::abs(longer / arguments.share - 1) <= kNear) return slowed;
    // A reading may be far off: no step is taken too far on its word.
    const double step = std::clamp(arguments.share / std::max(longer, kLeastShare), kLeastStep, kMostStep);
    turns *= attempt == 1 ? step : std::sqrt(step);
  }
  return Fail(Code::kMeasurementUnstable, arguments.part,
              fmt::format("not {} longer in {} tries", arguments.share, kTries), "a quieter machine");
}

Result<std::string> Judge(const Arguments& arguments) {
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(base::ResolvePaths("").data.string()));
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  BOLTBEAM_ASSIGN(const auto a, Load(model, machine, arguments, 0));
  BOLTBEAM_ASSIGN(const Slowed b, SlowedBy(model, machine, arguments, *a));
  BOLTBEAM_ASSIGN(const judge::Thresholds thresholds, judge::LoadThresholds());
  BOLTBEAM_ASSIGN(const judge::Run run, judge::CompareEngines({a.get(), {}, {}}, {b.engine.get(), {}, {}}, {},
                                                              arguments.request, thresholds));
  const std::string b_name = fmt::format("{} slowed by {} turns", arguments.part, b.turns);
  return report::JudgeJson({arguments.model, "default", b_name, machine.name, "", arguments.request.seed}, run,
                           judge::Decide(run.findings, thresholds));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    fmt::print(stderr, "judge_slowed MODEL PART SHARE BUDGET_S SEED [DEPTH]\n");
    return 2;
  }
  Arguments arguments{argv[1], argv[2], std::atof(argv[3]), {}};
  arguments.request.budget_s = std::atof(argv[4]);
  arguments.request.seed = static_cast<std::uint64_t>(std::atoll(argv[5]));
  arguments.request.depths = {argc > 6 ? static_cast<std::uint64_t>(std::atoll(argv[6])) : 0};
  const auto text = Judge(arguments);
  if (!text) {
    fmt::print(stderr, "{}\n", text.error().Message());
    return 1;
  }
  fmt::print("{}", *text);
  return 0;
}
