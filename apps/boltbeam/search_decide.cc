#include "search_decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "arguments.h"
#include "base/hash.h"
#include "base/json_members.h"
#include "base/paths.h"
#include "base/shell.h"
#include "base/ticks.h"
#include "chip/instruction_sets.h"
#include "codegen/codegen.h"
#include "engine/thread_choice.h"
#include "judge_sides.h"
#include "kernel/space.h"
#include "ledger/index.h"
#include "ledger/reopen.h"
#include "ledger_commands.h"
#include "measure/bench.h"
#include "measure/paired.h"
#include "report/decision.h"
#include "report/form.h"
#include "search/decide.h"
#include "search/fit.h"
#include "search/plan_use.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

constexpr double kJudgeShare = 0.55;  // of the budget, kept for whole tokens
constexpr double kLeastJudge_s = 5, kLeastBudget_s = 5;

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
    BOLTBEAM_ASSIGN(memory_, search::TrialMemory::Open(*ledger_, {machine_.id, threads_, bench_->cold_bytes()}));
    std::vector<std::string> own;
    BOLTBEAM_ASSIGN(const std::vector<search::Group> groups, search::GroupsOf(*model_, facts, {}));
    for (const search::Group& group : groups) own.push_back(group.part.table);
    BOLTBEAM_ASSIGN(ledger::Index index, ledger::Index::Open(*ledger_));
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
      BOLTBEAM_ASSIGN(const search::PlanUse use,
                      search::UsePlan(*model_, machine_, search::PlanStore::In(paths_), arguments_.from, *kernels_));
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
    BOLTBEAM_ASSIGN(const Whole whole, JudgeWhole(start_word_, found_word, budget_s, 1));
    outcome_.verdict = whole.verdict;
    outcome_.reason = whole.reason;
    outcome_.ratio = whole.ratio;
    outcome_.low = whole.low;
    outcome_.high = whole.high;
    outcome_.record = whole.record;
    const bool is_promoted = whole.verdict == ledger::RulingName(ledger::Ruling::kPromote);
    if (is_promoted && !is_from_default) {
      // A start may be so bad that what beats it is still worse than the default.
      BOLTBEAM_ASSIGN(const Whole other, JudgeWhole(std::string(search::kDefaultPlan), found_word, budget_s, 0));
      outcome_.against_default = other.outcome.empty() ? "not timed: " + other.reason : other.outcome;
      outcome_.default_ratio = other.ratio;
    }
    outcome_.judge_seconds = base::SecondsSince(begin);
    if (!is_promoted || !outcome_.IsGoodAgainstDefault()) return {};
    BOLTBEAM_ASSIGN(search::PlanFile plan,
                    search::PlanOf(*model_, machine_, kernels_->target(), decision.choices, threads_));
    plan.baseline = arguments_.from;
    plan.gain = search::PlanGain{outcome_.ratio, outcome_.low, outcome_.high, outcome_.verdict, outcome_.record};
    BOLTBEAM_ASSIGN(plan, search::PlanStore::In(paths_).Install(std::move(plan)));
    outcome_.plan = plan.name;
    return {};
  }

  /// What the judge said of two plans on the whole token.
  struct Whole {
    std::string verdict, outcome, reason, record;
    double ratio = 0, low = 0, high = 0;
  };

  /// The newest decided verdict on these two plans of this model with these threads and kernels, if it still stands.
  Result<std::optional<Whole>> JudgedBefore(const std::string& a_word, const std::string& b_word) {
    BOLTBEAM_ASSIGN(ledger::Index index, ledger::Index::Open(*ledger_));
    ledger::Filter filter;
    filter.kind = ledger::Kind::kVerdict;
    filter.candidate = b_word;
    filter.chip = machine_.id;
    BOLTBEAM_ASSIGN(const std::vector<ledger::Row> rows, index.List(filter));
    BOLTBEAM_ASSIGN(const std::vector<ledger::Refutation> standing, ledger::StandingRefutations(index, {}));
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
      const auto verdict = ledger::VerdictFrom(row->payload);
      if (!verdict || verdict->subject.baseline != a_word || !verdict->ratio) continue;
      if (verdict->subject.model_hash != HeaderHash(arguments_.model)) continue;
      const bool is_same_setting = verdict->details.value("threads", nlohmann::json()) == threads_ &&
                                   verdict->details.value("build", nlohmann::json()) == nlohmann::json(BuildFacts());
      const bool is_standing =
          std::ranges::any_of(standing, [&](const auto& one) { return one.row.hash == row->hash; });
      const bool is_decided = verdict->ruling == ledger::Ruling::kPromote ||
                              verdict->ruling == ledger::Ruling::kDiagnostic ||
                              (verdict->ruling == ledger::Ruling::kRefute && is_standing);
      if (!is_same_setting || !is_decided) continue;
      return Whole{std::string(ledger::RulingName(verdict->ruling)),
                   verdict->outcome,
                   verdict->reason + ", judged before",
                   row->hash,
                   *verdict->ratio,
                   *verdict->ratio_low,
                   *verdict->ratio_high};
    }
    return std::nullopt;
  }

  /// In a process of its own, and in as many more as `confirm` says when it is to be promoted; remembered.
  Result<Whole> JudgeWhole(const std::string& a_word, const std::string& b_word, double budget_s, int confirm) {
    BOLTBEAM_ASSIGN(std::optional<Whole> known, JudgedBefore(a_word, b_word));
    if (known) return std::move(*known);
    BOLTBEAM_ASSIGN(const nlohmann::json json, RunJudge(a_word, b_word, budget_s, confirm));
    return Whole{base::TextOf(json, "verdict"),
                 base::TextOf(json, "outcome"),
                 base::TextOf(json, "reason"),
                 base::TextOf(json, "record"),
                 base::NumberAt(json, "ratio").value_or(0),
                 base::NumberAt(json, "ratio_low").value_or(0),
                 base::NumberAt(json, "ratio_high").value_or(0)};
  }

  Result<nlohmann::json> RunJudge(const std::string& a_word, const std::string& b_word, double budget_s, int confirm) {
    std::string command = OwnProgram();
    if (!globals_.home.empty()) command += " --home " + base::ShellQuoted(globals_.home);
    command += fmt::format(" judge {} --a {} --b {} -t {} -d 0 --budget {:.0f}s --confirm {} -o json --plan default",
                           base::ShellQuoted(arguments_.model), base::ShellQuoted(a_word), base::ShellQuoted(b_word),
                           threads_, budget_s, confirm);
    if (!arguments_.engine.isa.empty()) command += " --isa " + arguments_.engine.isa;
    BOLTBEAM_ASSIGN(const std::string text, base::RunProgram(command + "; true"));
    nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return Fail(Code::kMeasurementUnstable, "search", "the judge gave no verdict", "a verdict");
    return json;
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
