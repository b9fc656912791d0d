// One judgement of a model against itself with one side slowed inside its generated code, as JSON: a known difference
// for judge_series.py. The judge is the one that `boltbeam judge` calls.
//
//   judge_slowed MODEL PART SHARE BUDGET_S SEED [DEPTH]
//
// B's kernels of PART wait for some turns of a useless loop inside their generated code: as many as take SHARE of A's
// token, such as 0.02. How long a turn and the token take is read from time stamps, before anything is judged and from
// another copy of B; then B is loaded anew and judged, whatever comes out. Nothing is chosen by what the judge would
// say. "norm" is the part for it: every thread computes every norm, so that all of them wait together. Of a product's
// waiting the memory hides a part, and how much hangs on how fast it is just then: another thread's stream goes on.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/paths.h"
#include "chip/facts.h"
#include "judge/judge.h"
#include "measure/bench.h"
#include "measure/clock.h"
#include "measure/statistics.h"
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

// Of decoded tokens, by their own time stamps: medians, ns.
struct Stamped {
  double part_ns = 0;  // the steps of the part on the first thread
  double token_ns = 0;
};

Result<Stamped> ReadStamps(engine::Engine& engine, const Arguments& arguments) {
  constexpr std::size_t kTokens = 384, kWarm = 32;
  BOLTBEAM_ASSIGN(const measure::Clock clock, measure::GetClock());
  BOLTBEAM_ASSIGN(const auto session, engine.NewSession());
  const std::uint64_t depth = arguments.request.depths.front();
  BOLTBEAM_TRY(measure::FillContext(engine, *session, depth, arguments.request.seed));
  const std::vector<std::int32_t> tokens =
      measure::RandomTokens(engine.model().hyper().vocab, kTokens, arguments.request.seed + 1);
  std::vector<double> part_ns, token_ns;
  for (std::size_t i = 0; i < kTokens; ++i) {
    engine::Trace stamps;
    BOLTBEAM_TRY(session->Decode(tokens[i], &stamps));
    BOLTBEAM_TRY(session->Truncate(depth));
    if (i < kWarm) continue;
    std::uint64_t ticks = 0;
    for (std::size_t step = 0; step < engine.steps().size(); ++step) {
      if (engine.steps()[step].role == arguments.part) ticks += stamps.step_end[0][step] - stamps.step_begin[0][step];
    }
    part_ns.push_back(clock.ToNs(ticks));
    token_ns.push_back(clock.ToNs(stamps.token_end - stamps.token_begin));
  }
  return Stamped{measure::Median(part_ns), measure::Median(token_ns)};
}

// How many turns take `share` of A's token: what a turn takes is read from a copy of B that nobody judges.
Result<std::uint32_t> TurnsFor(const model::Model& model, const chip::Chip& machine, const Arguments& arguments,
                               const Stamped& a) {
  constexpr std::uint32_t kProbe = 4000;
  BOLTBEAM_ASSIGN(const auto probe, Load(model, machine, arguments, kProbe));
  BOLTBEAM_ASSIGN(const Stamped slowed, ReadStamps(*probe, arguments));
  const double turn_ns = (slowed.part_ns - a.part_ns) / kProbe;
  if (turn_ns <= 0) {
    return Fail(Code::kMeasurementUnstable, arguments.part, "no longer with turns than without",
                "a part whose kernels take them, such as norm");
  }
  return static_cast<std::uint32_t>(std::lround(arguments.share * a.token_ns / turn_ns));
}

Result<std::string> Judge(const Arguments& arguments) {
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(base::ResolvePaths("").data.string()));
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  BOLTBEAM_ASSIGN(const auto a, Load(model, machine, arguments, 0));
  BOLTBEAM_ASSIGN(const Stamped without, ReadStamps(*a, arguments));
  BOLTBEAM_ASSIGN(const std::uint32_t turns, TurnsFor(model, machine, arguments, without));
  BOLTBEAM_ASSIGN(const auto b, Load(model, machine, arguments, turns));
  BOLTBEAM_ASSIGN(const Stamped with, ReadStamps(*b, arguments));
  BOLTBEAM_ASSIGN(const judge::Thresholds thresholds, judge::LoadThresholds());
  BOLTBEAM_ASSIGN(const judge::Run run,
                  judge::CompareEngines({a.get(), {}, {}}, {b.get(), {}, {}}, {}, arguments.request, thresholds));
  const std::string b_name =
      fmt::format("{} slowed by {} turns: {:+.2f} % of A's token by their stamps", arguments.part, turns,
                  (with.part_ns - without.part_ns) / without.token_ns * 100);
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
