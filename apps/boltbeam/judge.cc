// boltbeam judge: two plans, files or programs, the whole token, under the protocol, to a verdict.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "base/hash.h"
#include "base/json_members.h"
#include "base/paths.h"
#include "base/shell.h"
#include "commands.h"
#include "judge/record.h"
#include "judge/samples.h"
#include "judge_sides.h"
#include "ledger/ledger.h"
#include "ledger/reopen.h"
#include "ledger_commands.h"
#include "measure/bench.h"
#include "report/judge_format.h"
#include "runtime/placement.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

constexpr double kLeastBudget_s = 0.1;

struct Expected {
  double low = 0, high = 0;
};

// "0.93..0.97", or one number.
Result<Expected> ParsePrediction(const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto number = [](std::string_view part) {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size() ? value : 0.0;
  };
  const std::string_view view = text;
  const double low = number(view.substr(0, dots));
  const double high = dots == std::string::npos ? low : number(view.substr(dots + 2));
  if (low > 0 && high >= low && std::isfinite(high)) return Expected{low, high};
  return Fail(Code::kUsage, "--predict", text, "B's time over A's, such as 0.93..0.97");
}

Result<void> Prepare(JudgeArguments& arguments) {
  BOLTBEAM_ASSIGN(arguments.a, judge::ParseSide("--a", arguments.a_words, RouteNames()));
  BOLTBEAM_ASSIGN(arguments.b, judge::ParseSide("--b", arguments.b_words, RouteNames()));
  BOLTBEAM_ASSIGN(arguments.request.depths, measure::ParseRanges("--depth", arguments.depths));
  BOLTBEAM_ASSIGN(arguments.request.budget_s, ParseBudget(arguments.budget, kLeastBudget_s));
  arguments.request.seed = arguments.seed;
  return {};
}

ledger::Subject SubjectOf(const JudgeArguments& arguments, const JudgedSubject& found) {
  ledger::Subject subject;
  subject.candidate = found.b.name;
  subject.baseline = found.a.name;
  subject.candidate_words = arguments.b.Describe();
  subject.baseline_words = arguments.a.Describe();
  subject.chip = found.chip;
  const std::string& file = arguments.b.file.empty() ? arguments.model : arguments.b.file;
  subject.model = std::filesystem::path(file).filename().string();
  subject.model_hash = found.model_hash;
  subject.plan = found.b_plan;
  return subject;
}

// The memory of this run: absent with --no-record.
class Memory {
 public:
  Result<void> Open(const Globals& globals, const JudgeArguments& arguments) {
    if (arguments.no_record) return {};
    BOLTBEAM_ASSIGN(ledger::Ledger opened, ledger::Ledger::Open(ledger::OptionsFor(base::ResolvePaths(globals.home))));
    BOLTBEAM_TRY(opened.CheckWritable());
    ledger_.emplace(std::move(opened));
    return {};
  }

  // Before anything is measured: what was typed, else what follows from what is known of the two sides.
  Result<void> Predict(const JudgeArguments& arguments, const JudgedSubject& found) {
    if (!ledger_) return {};
    ledger::Prediction prediction;
    prediction.subject = SubjectOf(arguments, found);
    BOLTBEAM_TRY(TellRefutation(prediction.subject));
    prediction.quantity = "ratio";
    std::optional<Expected> expected;
    if (!arguments.prediction.empty()) {
      BOLTBEAM_ASSIGN(expected, ParsePrediction(arguments.prediction));
      prediction.method = "judge --predict";
    } else if (found.a.name == found.b.name) {
      expected = Expected{1 - kSame, 1 + kSame};
      prediction.method = "judge: the same sides";
    } else {
      BOLTBEAM_ASSIGN(expected, OfLastVerdict(prediction.subject));
      prediction.method = "judge: the last verdict on these sides";
    }
    if (!expected) {
      Note("note: nothing was judged of these sides before, so nothing is foretold; --predict writes what you expect");
      return {};
    }
    prediction.low = expected->low;
    prediction.high = expected->high;
    prediction.value = std::sqrt(expected->low * expected->high);
    BOLTBEAM_ASSIGN(const ledger::Receipt receipt, ledger_->AppendPrediction(prediction));
    prediction_ = receipt.hash;
    return {};
  }

  /// The record's hash; empty without a ledger.
  Result<std::string> Record(const JudgeArguments& arguments, const JudgedRun& judged,
                             const judge::Judgement& judgement, const judge::Thresholds& thresholds) {
    if (!ledger_) return std::string();
    BOLTBEAM_ASSIGN(const std::string blob, ledger_->StoreSamples(judge::SamplesText(judged.run, thresholds)));
    const judge::RecordContext context{
        SubjectOf(arguments, judged.subject),
        judged.subject.off_switch,
        prediction_,
        {blob, std::string(judge::kSamplesFormat)},
        fmt::format("judge {} --a {} --b {}", arguments.model, arguments.a.Describe(), arguments.b.Describe()),
        BuildFacts()};
    ledger::Verdict verdict = judge::ToVerdict(judgement, judged.run, thresholds, context);
    verdict.details["placement"] = arguments.placement;
    verdict.details["swap_load"] = arguments.swap_load;
    BOLTBEAM_ASSIGN(verdict.environment["program_sha256"], base::Sha256OfFile("/proc/self/exe"));
    verdict.details["threads"] = judged.subject.threads;
    verdict.details["sides"] = {{"a", judged.subject.a.parts}, {"b", judged.subject.b.parts}};
    if (!judged.processes.is_null()) verdict.details["processes"] = judged.processes;
    BOLTBEAM_ASSIGN(const ledger::Receipt receipt, ledger_->AppendVerdict(verdict));
    return receipt.hash;
  }

 private:
  Result<void> TellRefutation(const ledger::Subject& subject) {
    BOLTBEAM_ASSIGN(ledger::Index index, OpenIndex(*ledger_));
    BOLTBEAM_ASSIGN(const std::optional<ledger::Refutation> standing,
                    ledger::FindRefutation(index, subject.candidate, subject.chip, subject.shape));
    if (standing && standing->verdict.subject.model_hash == subject.model_hash) {
      Note(fmt::format("note: record {} refuted this candidate: {}", standing->row.seq, standing->verdict.reason));
    }
    return {};
  }

  /// Its interval, as much wider on either side as two sessions of the same sides differ.
  Result<std::optional<Expected>> OfLastVerdict(const ledger::Subject& subject) {
    BOLTBEAM_ASSIGN(ledger::Index index, OpenIndex(*ledger_));
    ledger::Filter filter;
    filter.kind = ledger::Kind::kVerdict;
    filter.candidate = subject.candidate;
    filter.chip = subject.chip;
    BOLTBEAM_ASSIGN(const std::vector<ledger::Row> rows, index.List(filter));
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
      const auto verdict = ledger::VerdictFrom(row->payload);
      if (!verdict || verdict->refused || !verdict->ratio || verdict->subject.baseline != subject.baseline) continue;
      if (verdict->subject.model_hash != subject.model_hash) continue;
      return Expected{*verdict->ratio_low * (1 - kSame), *verdict->ratio_high * (1 + kSame)};
    }
    return std::nullopt;
  }

  static constexpr double kSame = 0.01;  // of two sessions of the same sides
  std::optional<ledger::Ledger> ledger_;
  std::string prediction_;
};

// How a fresh process differs: the code lies elsewhere in each, and every other one loads the sides in the other order.
bool SwapsLoad(std::uint32_t number) { return number % 2 == 1; }
std::uint32_t PlacementOf(const JudgeArguments& arguments, std::uint32_t number) {
  return arguments.placement + number;
}

// What fresh processes are to find again: a gain wherever judged (the others are protected), or a regression where it
// was.
struct Finding {
  measure::Outcome outcome;
  std::vector<std::uint64_t> depths;
};

// The same comparison in a process of its own; what it printed.
Result<nlohmann::json> RunFreshProcess(const Globals& globals, const JudgeArguments& arguments, const Finding& finding,
                                       std::uint32_t number) {
  std::string command = OwnProgram();
  if (!globals.home.empty()) command += " --home " + base::ShellQuoted(globals.home);
  command += " judge " + base::ShellQuoted(arguments.model);
  for (const std::string& word : arguments.a_words) command += " --a " + base::ShellQuoted(word);
  for (const std::string& word : arguments.b_words) command += " --b " + base::ShellQuoted(word);
  command += ForShell(arguments.engine);
  if (!arguments.reference.empty()) command += " --reference " + base::ShellQuoted(arguments.reference);
  command += fmt::format(" -d {} --budget {} --seed {} --placement {} --confirm 0 --no-record -o json{}; true",
                         fmt::join(finding.depths, ","), arguments.request.budget_s, arguments.seed + number,
                         PlacementOf(arguments, number), SwapsLoad(number) ? " --swap-load" : "");
  BOLTBEAM_ASSIGN(const std::string text, base::RunProgram(command));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return Fail(Code::kMeasurementUnstable, "fresh process", "no verdict", "one as before");
  return json;
}

struct Repetition {
  double ratio = 0;
  std::string outcome;
};
// A process that refused its own measurement repeats nothing.
Repetition ReadRepetition(const nlohmann::json& json) {
  Repetition repetition{base::NumberAt(json, "ratio").value_or(0), base::TextOf(json, "outcome")};
  const bool is_refused = json.value("refused", nlohmann::json(true)) != nlohmann::json(false);
  if (is_refused) repetition.outcome = "refused: " + base::TextOf(json, "reason");
  if (repetition.outcome.empty()) repetition.outcome = "nothing was timed";
  return repetition;
}

// A finding counts when fresh processes repeat it: other addresses and pages, the code elsewhere in them, the other
// order of loading.
judge::Condition Repeat(const Globals& globals, const JudgeArguments& arguments, const Finding& finding,
                        nlohmann::json& processes) {
  judge::Condition condition{std::string(judge::kRepeated), judge::State::kPass, ""};
  for (std::uint32_t number = 1; number <= arguments.confirm; ++number) {
    // What was measured already is recorded all the same.
    if (Interrupted()) {
      return judge::Condition{std::string(judge::kRepeated), judge::State::kUnknown, "stopped by the user"};
    }
    const Result<nlohmann::json> process = RunFreshProcess(globals, arguments, finding, number);
    if (!process) {
      return judge::Condition{
          std::string(judge::kRepeated), judge::State::kUnknown,
          fmt::format("process {} of {}: {}", number, arguments.confirm, process.error().Message())};
    }
    const nlohmann::json& json = *process;
    const Repetition repetition = ReadRepetition(json);
    processes.push_back({{"placement", PlacementOf(arguments, number)},
                         {"swap_load", SwapsLoad(number)},
                         {"outcome", repetition.outcome},
                         {"ratio", json.value("ratio", nlohmann::json())},
                         {"reason", base::TextOf(json, "reason")}});
    if (repetition.outcome != measure::OutcomeName(finding.outcome) || repetition.ratio <= 0) {
      return judge::Condition{std::string(judge::kRepeated), judge::State::kFail,
                              fmt::format("process {} of {}: {}", number, arguments.confirm, repetition.outcome)};
    }
    condition.detail += fmt::format("{}{:+.2f} %", number == 1 ? "again " : ", ", (repetition.ratio - 1) * 100);
  }
  return condition;
}

// What would be promoted when repeated, or is refuted by its speed: that is put to the test; nothing else needs to be.
std::optional<Finding> ToRepeat(judge::Findings findings, const judge::Thresholds& thresholds) {
  findings.conditions.push_back({std::string(judge::kRepeated), judge::State::kPass, ""});
  const judge::Judgement judgement = judge::Decide(findings, thresholds);
  const bool is_slower = judgement.ruling == judge::Ruling::kRefute && judgement.outcome == measure::Outcome::kSlower;
  if (!is_slower && judgement.ruling != judge::Ruling::kPromote) return std::nullopt;
  Finding finding{judgement.outcome, {}};
  for (const judge::DepthFinding& depth : findings.depths) {
    if (!is_slower || depth.paired.outcome == measure::Outcome::kSlower) finding.depths.push_back(depth.depth);
  }
  return finding;
}

std::string Show(const Globals& globals, const report::JudgeSubject& subject, const judge::Run& run,
                 const judge::Judgement& judgement) {
  if (globals.format == "json") return report::JudgeJson(subject, run, judgement);
  return globals.format == "md" ? report::JudgeMarkdown(subject, run, judgement)
                                : report::JudgeText(subject, run, judgement);
}

int ExitStatus(const judge::Judgement& judgement) {
  if (judgement.refused) return kExitMeasurement;
  const bool worse = judgement.ruling == judge::Ruling::kRefute || judgement.outcome == measure::Outcome::kSlower;
  return worse ? kExitWorse : kExitFine;
}

Result<void> RunJudge(JudgeArguments& arguments, Globals& globals) {
  BOLTBEAM_TRY(Prepare(arguments));
  BOLTBEAM_ASSIGN(const judge::Thresholds thresholds, judge::LoadThresholds());
  if (!arguments.prediction.empty()) BOLTBEAM_TRY(ParsePrediction(arguments.prediction));
  Memory memory;
  BOLTBEAM_TRY(memory.Open(globals, arguments));
  CatchInterrupts();
  for (const std::string& doubt : measure::ReadEnvironment().doubts) Note("before anything is timed: " + doubt);
  runtime::SetCodePlacement(arguments.placement);
  BOLTBEAM_ASSIGN(JudgedRun judged, RunJudgedSides(globals, arguments, thresholds, [&](const JudgedSubject& subject) {
                    return memory.Predict(arguments, subject);
                  }));
  if (const std::optional<Finding> finding = ToRepeat(judged.run.findings, thresholds);
      finding && arguments.confirm > 0) {
    judged.run.findings.conditions.push_back(Repeat(globals, arguments, *finding, judged.processes));
  }
  const judge::Judgement judgement = judge::Decide(judged.run.findings, thresholds);
  const Result<std::string> record = memory.Record(arguments, judged, judgement, thresholds);
  const report::JudgeSubject subject{arguments.model,        arguments.a.Describe(), arguments.b.Describe(),
                                     judged.subject.machine, record.value_or(""),    arguments.seed};
  BOLTBEAM_TRY(WriteOutput(globals, Show(globals, subject, judged.run, judgement)));
  for (const std::string& disturbance : judged.run.disturbances) Note("note: " + disturbance);
  BOLTBEAM_TRY(record);  // a ledger that can't be written costs the record, not what was measured
  globals.exit_status = ExitStatus(judgement);
  return {};
}

}  // namespace

void AddJudge(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<JudgeArguments>();
  CLI::App* command = app.add_subcommand("judge", "Is B better than A? The whole token, to one of eight verdicts");
  command->add_option("model", arguments->model, "A GGUF file; not needed for two commands");
  constexpr const char* kSide =
      "without=ROUTE+ROUTE, with=ROUTE, plan=FILE, file=MODEL, binary=BOLTBEAM or command=TEXT, a shell command that "
      "prints tokens per second, {depth} in it the tokens in the context; can be repeated (what runs without any)";
  command->add_option("--a", arguments->a_words, std::string("What is: ") + kSide)
      ->type_name("SIDE")
      ->allow_extra_args(false)
      ->delimiter('\0');
  command->add_option("--b", arguments->b_words, "What is proposed, in the same words")
      ->type_name("SIDE")
      ->allow_extra_args(false)
      ->delimiter('\0');
  command->add_option("-d,--depth", arguments->depths, "Tokens in the context: a list or a range")
      ->capture_default_str();
  command->add_option("--budget", arguments->budget, "Time to measure for at most, at each depth")
      ->capture_default_str();
  command->add_option("--predict", arguments->prediction,
                      "What you expect, B's time over A's: LOW..HIGH, recorded before anything is measured");
  command->add_option("--reference", arguments->reference,
                      "Logits of a full-precision model, as llama-perplexity writes them: decides when the outputs "
                      "of A and B differ");
  command
      ->add_option("--confirm", arguments->confirm,
                   "Fresh processes that must repeat a gain before it is promoted, and a loss before it is refuted")
      ->check(CLI::Range(0, 20))
      ->capture_default_str();
  command->add_option("--tokens", arguments->tokens, "Tokens of a window, where a side is a program")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "Of tokens, order and resampling")->capture_default_str();
  command->add_flag("--swap-load", arguments->swap_load, "Load B before A");
  command
      ->add_option("--placement", arguments->placement,
                   "Lay the kernels' code elsewhere in memory, for each number otherwise; 0: as always")
      ->capture_default_str();
  command->add_flag("--no-record", arguments->no_record, "Keep nothing in the ledger");
  arguments->engine.Add(*command);
  AddOutputFlags(*command, globals, {"text", "json", "md"});
  command->callback([arguments, &globals] { Finish(globals, RunJudge(*arguments, globals)); });
}

}  // namespace boltbeam::app
