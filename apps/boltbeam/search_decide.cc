#include "search_decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "arguments.h"
#include "audit/floors.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/ticks.h"
#include "chip/instruction_sets.h"
#include "codegen/codegen.h"
#include "engine/thread_choice.h"
#include "judge/thresholds.h"
#include "kernel/space.h"
#include "ledger/index.h"
#include "ledger_commands.h"
#include "measure/bench.h"
#include "report/decision.h"
#include "report/form.h"
#include "roofline/formulas.h"
#include "search/decide.h"
#include "search/fit.h"
#include "search/plan_use.h"
#include "search_ideas.h"
#include "terminal.h"
#include "whole_token.h"

namespace boltbeam::app {
namespace {

constexpr double kJudgeShare = 0.55;  // of the budget, kept for whole tokens
constexpr double kLeastJudge_s = 5, kLeastBudget_s = 5, kLeastIdeas_s = 30;

bool IsInstructionSet(const std::string& name) {
  return std::ranges::any_of(chip::InstructionSets(), [&](const auto& set) { return set.name == name; });
}

/// One search from the command line: everything that its steps share.
class SearchRun {
 public:
  SearchRun(Globals& globals, const DecideArguments& arguments)
      : globals_(globals), arguments_(arguments), paths_(base::ResolvePaths(globals.home)) {}

  Result<void> Go() {
    const std::uint64_t begin = base::MonotonicNs();
    BOLTBEAM_TRY(Prepare());
    BOLTBEAM_TRY(Start());
    BOLTBEAM_ASSIGN(search::Decision decision, Decide());
    outcome_.model = std::filesystem::path(arguments_.model).filename().string();
    outcome_.chip = machine_.name;
    outcome_.start = arguments_.from;
    outcome_.threads = threads_;
    if (IsInstructionSet(arguments_.from)) BOLTBEAM_TRY(SayWhatWasRestored(decision));
    bench_.reset();  // its memory, before two engines are loaded
    if (!arguments_.no_judge && !decision.is_interrupted && decision.HasGain()) {
      const double spent = base::SecondsSince(begin);
      BOLTBEAM_TRY(JudgeAndInstall(decision, budget_s_ - spent));
    }
    if (HasIdeas() && !arguments_.no_judge && !decision.is_interrupted) {
      BOLTBEAM_TRY(AlsoTry(decision, budget_s_ - base::SecondsSince(begin)));
    }
    BOLTBEAM_TRY(WriteOutput(globals_, report::SearchReport(decision, outcome_, report::FormOf(globals_.format))));
    if (decision.is_interrupted) {
      return Fail(Code::kInterrupted, "search", "stopped by the user", "the same command, which goes on from there");
    }
    return {};
  }

 private:
  Result<void> Prepare() {
    BOLTBEAM_ASSIGN(budget_s_, ParseBudget(arguments_.budget, kLeastBudget_s));
    BOLTBEAM_ASSIGN(model::Model model, model::Model::Load(arguments_.model));
    BOLTBEAM_TRY(model::CheckRunnable(model));
    BOLTBEAM_TRY(measure::RefuseSparse(model));
    model_.emplace(std::move(model));
    BOLTBEAM_ASSIGN(machine_, MachineFor(globals_, arguments_.engine));
    threads_ = arguments_.engine.threads != 0 ? arguments_.engine.threads : engine::ChooseThreads(machine_).threads;
    kernels_.emplace(codegen::TargetFor(machine_), (paths_.cache / "kernels").string());
    const kernel::VectorFacts facts = kernel::VectorFactsOf(machine_);
    BOLTBEAM_ASSIGN(const search::LargestTable largest, search::LargestOf(*model_, facts));
    BOLTBEAM_ASSIGN(bench_, search::TimingBench::Create(machine_, *kernels_, threads_, largest.rows, largest.cols));
    BOLTBEAM_ASSIGN(known_, search::WithRates(machine_, *kernels_, *bench_));
    BOLTBEAM_ASSIGN(ledger::Ledger opened, ledger::Ledger::Open(ledger::OptionsFor(paths_)));
    BOLTBEAM_TRY(opened.CheckWritable());
    ledger_.emplace(std::move(opened));
    judge_.emplace(globals_, arguments_.model, arguments_.engine.isa, arguments_.reference, machine_.id, threads_,
                   *ledger_);
    BOLTBEAM_ASSIGN(memory_, search::TrialMemory::Open(*ledger_, {machine_.id, threads_, bench_->cold_bytes()}));
    std::vector<std::string> own;
    BOLTBEAM_ASSIGN(const std::vector<search::Group> groups, search::GroupsOf(*model_, facts, {}));
    for (const search::Group& group : groups) own.push_back(group.part.table);
    BOLTBEAM_ASSIGN(ledger::Index index, OpenIndex(*ledger_));
    BOLTBEAM_ASSIGN(const std::optional<search::Fit> fit, search::FitFromLedger(index, known_, threads_, own));
    if (fit) {
      coefficients_ = fit->coefficients;
      Note(search::Describe(*fit));
    }
    return {};
  }

  /// What runs now, as choices and as the judge's word for it.
  Result<void> Start() {
    if (arguments_.from == search::kDefaultPlan) {
      start_word_ = "default";
      return {};
    }
    if (arguments_.from == "worst") {
      BOLTBEAM_ASSIGN(start_, search::WorstChoices(*model_, known_, threads_, coefficients_));
    } else if (IsInstructionSet(arguments_.from)) {
      BOLTBEAM_ASSIGN(start_, search::ChoicesOfSet(*model_, machine_, arguments_.from));
    } else {
      BOLTBEAM_ASSIGN(const search::PlanUse use, search::UsePlan(*model_, machine_, search::PlanStore::In(paths_),
                                                                 arguments_.from, *kernels_, threads_));
      for (const std::string& note : use.notes) Note("note: " + note);
      start_ = use.geometry;
    }
    BOLTBEAM_ASSIGN(start_word_, WritePlan(start_));
    return {};
  }

  Result<search::Decision> Decide() {
    search::DecideRequest request;
    request.start = start_;
    request.threads = threads_;
    request.budget_s = budget_s_ * (arguments_.no_judge ? 1 : 1 - kJudgeShare);
    request.coefficients = coefficients_;
    request.rules.most_timed = arguments_.most_timed;
    request.rules.compilers = static_cast<unsigned>(chip::UsableCpus().size());
    Status status("searching");
    search::DecideHooks hooks;
    hooks.cancelled = Interrupted;
    hooks.progress = [&](const search::DecideStatus& now) {
      status.Show(fmt::format("{}/{} {} {:.0f} s, trying {}, best {}", now.part, now.parts, now.table, now.seconds,
                              now.trying, now.best));
    };
    return search::DecidePlan(*model_, known_, *bench_, *kernels_, memory_, request, hooks);
  }

  /// Why a chip held down to the start's instruction set would not have found what was found.
  Result<void> SayWhatWasRestored(const search::Decision& decision) {
    chip::Chip held = machine_;
    BOLTBEAM_TRY(chip::HoldTo(held, arguments_.from));
    const kernel::SpaceFacts facts = kernel::SpaceFactsOf(held);
    for (const search::GroupSearch& search : decision.groups) {
      if (!search.found.IsGain()) continue;
      const search::Part& part = search.group.part;
      std::string text;
      for (const kernel::Reason& reason : kernel::Refusals(search.found.best, *part.format, part.shape(), facts)) {
        text += (text.empty() ? "" : ", ") + reason.evidence;
      }
      if (!text.empty()) outcome_.restored[part.table] = text;
    }
    return {};
  }

  /// A plan's file below the cache folder, named by what it says: the judge's word for the same plan is always the
  /// same.
  Result<std::string> WritePlan(const std::vector<engine::GeometryChoice>& choices) {
    BOLTBEAM_ASSIGN(const search::PlanFile plan,
                    search::PlanOf(*model_, machine_, kernels_->target(), choices, threads_));
    std::string text;
    for (const search::PlanTable& table : plan.tables) text += table.table + " " + table.knobs + "\n";
    const std::string path = (paths_.cache / "search" / (base::Sha256Hex(text).substr(0, 16) + ".json")).string();
    BOLTBEAM_TRY(base::WriteFileAtomically(path, search::ToJson(plan)));
    return "plan=" + path;
  }

  Result<void> JudgeAndInstall(const search::Decision& decision, double left_s) {
    BOLTBEAM_ASSIGN(const std::string found_word, WritePlan(decision.choices));
    const bool is_from_default = arguments_.from == search::kDefaultPlan;
    constexpr double kLoad_s = 4;
    const double budget_s = std::max(kLeastJudge_s, left_s / (is_from_default ? 2 : 3) - kLoad_s);
    const std::uint64_t begin = base::MonotonicNs();
    BOLTBEAM_ASSIGN(const Whole whole, judge_->Judge({start_word_}, {found_word}, budget_s, 1));
    outcome_.verdict = whole.verdict;
    outcome_.reason = whole.reason;
    outcome_.ratio = whole.ratio;
    outcome_.low = whole.low;
    outcome_.high = whole.high;
    outcome_.record = whole.record;
    if (whole.IsPromoted() && !is_from_default) {
      // A start may be so bad that what beats it is still worse than the default.
      BOLTBEAM_ASSIGN(const Whole other, judge_->Judge({std::string(search::kDefaultPlan)}, {found_word}, budget_s, 0));
      outcome_.against_default = other.outcome.empty() ? "not timed: " + other.reason : other.outcome;
      outcome_.default_ratio = other.ratio;
    }
    outcome_.judge_seconds = base::SecondsSince(begin);
    if (!whole.IsPromoted() || !outcome_.IsGoodAgainstDefault()) return {};
    BOLTBEAM_ASSIGN(search::PlanFile plan,
                    search::PlanOf(*model_, machine_, kernels_->target(), decision.choices, threads_));
    plan.baseline = arguments_.from;
    plan.gain = search::PlanGain{outcome_.ratio, outcome_.low, outcome_.high, outcome_.verdict, outcome_.record};
    BOLTBEAM_ASSIGN(plan, search::PlanStore::In(paths_).Install(std::move(plan)));
    outcome_.plan = plan.name;
    return {};
  }

  [[nodiscard]] bool HasIdeas() const { return arguments_.fusions || arguments_.attention; }

  /// Beside what was installed, or the default: what beats another start may still be worse than the default.
  Result<void> AlsoTry(const search::Decision& decision, double left_s) {
    const bool is_found = !outcome_.plan.empty();
    IdeaRequest request;
    request.fusions = arguments_.fusions;
    request.attention = arguments_.attention;
    request.depth = arguments_.depth;
    request.budget_s = std::max(kLeastIdeas_s, left_s);
    request.plan = search::kDefaultPlan;
    if (is_found) {
      request.choices = decision.choices;
      BOLTBEAM_ASSIGN(request.plan, WritePlan(decision.choices));
    }
    EngineFlags flags = arguments_.engine;
    flags.plan = search::kDefaultPlan;
    flags.geometry = request.choices;
    flags.threads = threads_;
    BOLTBEAM_ASSIGN(const auto engine, LoadEngine(globals_, *model_, flags, 1));
    const std::uint64_t bytes = audit::MemoryBytes(audit::PartFloors(*model_, 0, engine->options().cache));
    request.token_ns = roofline::MemoryFloorNs(static_cast<double>(bytes), known_.Bandwidth()->value);
    BOLTBEAM_ASSIGN(const judge::Thresholds thresholds, judge::LoadThresholds());
    request.smallest_claim = thresholds.equivalence;
    Status status("judging");
    BOLTBEAM_ASSIGN(const IdeaOutcome ideas,
                    TryIdeas(
                        *engine, known_, *judge_, request, [this](const auto& choices) { return WritePlan(choices); },
                        [&](const std::string& trying) { status.Show(trying); }));
    outcome_.ideas = ideas.rows;
    return ideas.last ? Install(ideas) : Result<void>{};
  }

  Result<void> Install(const IdeaOutcome& ideas) {
    BOLTBEAM_ASSIGN(search::PlanFile plan,
                    search::PlanOf(*model_, machine_, kernels_->target(), ideas.choices, threads_));
    plan.with = ideas.with;
    plan.without = ideas.without;
    plan.baseline = outcome_.plan.empty() ? std::string(search::kDefaultPlan) : "what the parts' search found";
    const Whole& last = *ideas.last;
    plan.gain = search::PlanGain{last.ratio, last.low, last.high, last.verdict, last.record};
    BOLTBEAM_ASSIGN(plan, search::PlanStore::In(paths_).Install(std::move(plan)));
    outcome_.plan = plan.name;
    return {};
  }

  Globals& globals_;
  const DecideArguments& arguments_;
  const base::Paths paths_;
  double budget_s_ = 0;
  std::uint32_t threads_ = 1;
  std::optional<model::Model> model_;
  chip::Chip machine_, known_;  // as it is declared; with the rates that predictions need
  std::optional<runtime::KernelCache> kernels_;
  std::unique_ptr<search::TimingBench> bench_;
  std::optional<ledger::Ledger> ledger_;
  std::optional<WholeTokens> judge_;
  search::TrialMemory memory_;
  search::Coefficients coefficients_;
  std::vector<engine::GeometryChoice> start_;
  std::string start_word_;
  report::SearchOutcome outcome_;
};

}  // namespace

void AddDecideFlags(CLI::App& command, DecideArguments& arguments) {
  command
      .add_option("--from", arguments.from,
                  "What to start from and to be compared with: default, worst (every knob at its worst), an "
                  "instruction set, an installed plan or a plan's file")
      ->type_name("PLAN")
      ->capture_default_str();
  command.add_option("--budget", arguments.budget, "Time for all of it")->capture_default_str();
  command.add_option("--most-timed", arguments.most_timed, "Candidates timed for each part, at most")
      ->check(CLI::Range(2, 10000))
      ->capture_default_str();
  command.add_option("-t,--threads", arguments.engine.threads, "Threads (as few as read at full speed)")
      ->check(CLI::Range(1, 1024));
  AddIsa(command, arguments.engine.isa);
  command.add_flag("--fusions", arguments.fusions,
                   "Also judge each fusion switched the other way, where its bound is worth a claim");
  command.add_flag("--attention", arguments.attention,
                   "Also judge attention's most promising geometries, at depth 0 and at --depth");
  command
      .add_option("--reference", arguments.reference,
                  "Logits of a full-precision model: the judge's, where outputs differ by their rounding")
      ->type_name("FILE");
  command.add_flag("--uninstall", arguments.uninstall,
                   "Remove what a search installed for this model's tables, and do nothing else");
}

Result<void> SearchAndDecide(Globals& globals, const DecideArguments& arguments) {
  CatchInterrupts();
  return SearchRun(globals, arguments).Go();
}

Result<void> UninstallPlans(const Globals& globals, const DecideArguments& arguments) {
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  BOLTBEAM_ASSIGN(const chip::Chip machine, MachineFor(globals, arguments.engine));
  std::vector<std::string> names;
  for (const search::Part& part : search::PartsOf(model)) names.push_back(part.table);
  std::ranges::sort(names);
  const search::PlanStore store = search::PlanStore::In(base::ResolvePaths(globals.home));
  std::size_t removed = 0;
  for (const search::PlanFile& plan : store.ForChip(machine.id)) {
    if (search::TableNames(plan) != names) continue;
    BOLTBEAM_TRY(store.Remove(plan));
    Note(fmt::format("removed plan {}", plan.name));
    ++removed;
  }
  if (removed > 0) return {};
  return Fail(Code::kPlanUnknown, arguments.model, "no plan is installed for its tables on this chip",
              "a model that `boltbeam plan list` shows");
}

}  // namespace boltbeam::app
