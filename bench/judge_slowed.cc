// One judgement of a model against itself with one side slowed inside its generated code, as JSON: a known difference
// for judge_series.py. The judge is the one that `boltbeam judge` calls.
//
//   judge_slowed MODEL PART TURNS BUDGET_S SEED [DEPTH]
//
// B's products of PART wait for TURNS turns of a useless loop before every row group; 0 turns: the sides are the same.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/paths.h"
#include "chip/facts.h"
#include "judge/judge.h"
#include "report/judge_format.h"

namespace {

using namespace boltbeam;

struct Arguments {
  std::string model, part;
  std::uint32_t turns = 0;
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

Result<std::string> Judge(const Arguments& arguments) {
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(base::ResolvePaths("").data.string()));
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  // Which side is loaded first takes turns, as the seeds do.
  const bool swap = arguments.request.seed % 2 == 1;
  BOLTBEAM_ASSIGN(auto first, Load(model, machine, arguments, swap ? arguments.turns : 0));
  BOLTBEAM_ASSIGN(auto second, Load(model, machine, arguments, swap ? 0 : arguments.turns));
  BOLTBEAM_ASSIGN(const judge::Thresholds thresholds, judge::LoadThresholds());
  engine::Engine& a = swap ? *second : *first;
  engine::Engine& b = swap ? *first : *second;
  BOLTBEAM_ASSIGN(const judge::Run run,
                  judge::CompareEngines({&a, {}, {}}, {&b, {}, {}}, {}, arguments.request, thresholds));
  const std::string b_name = fmt::format("{} slowed by {} turns", arguments.part, arguments.turns);
  return report::JudgeJson({arguments.model, "default", b_name, machine.name, "", arguments.request.seed}, run,
                           judge::Decide(run.findings, thresholds));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    fmt::print(stderr, "judge_slowed MODEL PART TURNS BUDGET_S SEED [DEPTH]\n");
    return 2;
  }
  Arguments arguments{argv[1], argv[2], static_cast<std::uint32_t>(std::atoi(argv[3])), {}};
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
