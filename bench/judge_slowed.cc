// One judgement of a model against itself with one side slowed inside its generated code, as JSON: a known difference
// for judge_series.py. The judge is the one that `boltbeam judge` calls.
//
//   judge_slowed MODEL PART SHARE BUDGET_S SEED [DEPTH]
//
// B's products of PART wait for some turns of a useless loop before every row group: as many as make the token longer
// by SHARE, such as 0.02. How many that are depends on how fast the memory is just then, so it is tried out first.
#include <fmt/format.h>

#include <algorithm>
#include <array>
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

Result<std::uint32_t> TurnsFor(const model::Model& model, const chip::Chip& machine, const Arguments& arguments,
                               engine::Engine& a) {
  constexpr double kFirst = 350, kLeastShare = 0.001, kLeastStep = 0.4, kMostStep = 2.5;
  double turns = kFirst;
  constexpr std::array kSeconds = {2.0, 6.0};  // the second one's error is a quarter of a share of 2 %
  for (std::size_t step = 0; step < kSeconds.size(); ++step) {
    BOLTBEAM_ASSIGN(const auto b, Load(model, machine, arguments, static_cast<std::uint32_t>(turns)));
    BOLTBEAM_ASSIGN(const double longer, Longer(a, *b, arguments.request.seed + step + 1, kSeconds[step]));
    // The first reading may be far off: no step is taken too far on its word.
    turns *= std::clamp(arguments.share / std::max(longer, kLeastShare), kLeastStep, kMostStep);
  }
  return static_cast<std::uint32_t>(turns);
}

Result<std::string> Judge(const Arguments& arguments) {
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(base::ResolvePaths("").data.string()));
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  BOLTBEAM_ASSIGN(const auto a, Load(model, machine, arguments, 0));
  BOLTBEAM_ASSIGN(const std::uint32_t turns, TurnsFor(model, machine, arguments, *a));
  BOLTBEAM_ASSIGN(const auto b, Load(model, machine, arguments, turns));
  BOLTBEAM_ASSIGN(const judge::Thresholds thresholds, judge::LoadThresholds());
  BOLTBEAM_ASSIGN(const judge::Run run,
                  judge::CompareEngines({a.get(), {}, {}}, {b.get(), {}, {}}, {}, arguments.request, thresholds));
  const std::string b_name = fmt::format("{} slowed by {} turns", arguments.part, turns);
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
