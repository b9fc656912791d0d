// One judgement of a model against itself with one side slowed inside its generated code, as JSON: a known difference
// for judge_series.py. The judge is the one that `boltbeam judge` calls.
//
//   judge_slowed MODEL PART SHARE BUDGET_S SEED [DEPTH]
//
// B's kernels of PART wait for some turns of a useless loop: as many as make the token longer by SHARE, such as 0.02.
// That is tried out first, in paired windows, until the estimate lies within a tenth of SHARE with a standard error of
// a twentieth of it; the result's name of B says what was found. "norm" is the part for it: every thread computes every
// norm, so that all of them wait together. Of a product's waiting the memory hides a part, and how much hangs on how
// fast it is just then: another thread's stream goes on meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/paths.h"
#include "base/ticks.h"
#include "chip/facts.h"
#include "judge/engine_rounds.h"
#include "judge/judge.h"
#include "measure/clock.h"
#include "measure/signed_rank.h"
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

constexpr double kNear = 0.1, kSure = 0.05;  // of the share that is aimed at

// By how much B's token is longer, and how well that is known.
struct Longer {
  double estimate = 0, error = 0;
  [[nodiscard]] bool IsNear(double share) const {
    return std::abs(estimate / share - 1) <= kNear && error <= kSure * share;
  }
  // Two standard errors, so that few tries that were good are given up.
  [[nodiscard]] bool IsFar(double share) const { return std::abs(estimate - share) > kNear * share + 2 * error; }
};

Longer FromContrasts(const std::vector<double>& contrasts) {
  constexpr double kTail = 0.1587;  // the normal law's beyond one standard deviation
  const measure::Interval interval = measure::HodgesLehmann(contrasts, kTail);
  return {std::exp(interval.estimate) - 1, (interval.high - interval.low) / 2};
}

// Rounds until it is clear whether the share is met.
Result<Longer> Weigh(engine::Engine& a, engine::Engine& b, double share, std::uint64_t seed) {
  constexpr double kStep_s = 2, kMost_s = 45;
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
  std::mt19937_64 lots(seed);
  std::vector<double> contrasts;
  Longer longer;
  const std::uint64_t begin = base::MonotonicNs();
  for (double step_s = kStep_s; step_s <= kMost_s; step_s += kStep_s) {
    while (base::SecondsSince(begin) < step_s) {
      BOLTBEAM_ASSIGN(const measure::PairedRound round, rounds.Next(lots() % 2 == 0));
      if (!round.AllCauses().any()) contrasts.push_back(round.LogRatio());
    }
    constexpr std::size_t kLeast = 20;
    if (contrasts.size() < kLeast) continue;
    longer = FromContrasts(contrasts);
    if (longer.error <= kSure * share || longer.IsFar(share)) break;
  }
  if (contrasts.empty()) return Fail(Code::kMeasurementUnstable, "weighing", "no round that nothing spoiled");
  return longer;
}

struct Slowed {
  std::unique_ptr<engine::Engine> engine;
  std::uint32_t turns = 0;
  Longer longer;
};

// Two copies of a model differ by up to 1 % by where their pages lie: the engine that was weighed is the one that is
// judged, and a copy that lies badly is given up. What a turn costs is learnt from all tries together.
Result<Slowed> SlowedBy(const model::Model& model, const chip::Chip& machine, const Arguments& arguments,
                        engine::Engine& a) {
  constexpr double kFirst = 350, kLeastStep = 0.4, kMostStep = 2.5;
  constexpr std::uint64_t kTries = 16;
  double turns = kFirst, by_turns = 0, turns_squared = 0;
  for (std::uint64_t attempt = 1; attempt <= kTries; ++attempt) {
    Slowed slowed{nullptr, static_cast<std::uint32_t>(turns), {}};
    BOLTBEAM_ASSIGN(slowed.engine, Load(model, machine, arguments, slowed.turns));
    BOLTBEAM_ASSIGN(slowed.longer, Weigh(a, *slowed.engine, arguments.share, arguments.request.seed + attempt));
    fmt::print(stderr, "{} turns: {:+.2f} %, standard error {:.2f} %\n", slowed.turns, slowed.longer.estimate * 100,
               slowed.longer.error * 100);
    if (slowed.longer.IsNear(arguments.share)) return slowed;
    by_turns += slowed.longer.estimate * slowed.turns;
    turns_squared += static_cast<double>(slowed.turns) * slowed.turns;
    const double wanted = by_turns > 0 ? arguments.share * turns_squared / by_turns : turns * kMostStep;
    turns *= std::clamp(wanted / turns, kLeastStep, kMostStep);
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
  const std::string b_name = fmt::format("{} slowed by {} turns: {:+.2f} %, standard error {:.2f} %", arguments.part,
                                         b.turns, b.longer.estimate * 100, b.longer.error * 100);
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
