// boltbeam ledger list, show, report: what is remembered.
#include <memory>

#include "ledger/index.h"
#include "ledger/score.h"
#include "ledger_commands.h"
#include "report/ledger.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

struct ListArguments {
  std::string kind, chip, model, candidate, verdict;
  std::uint64_t count = 0;
  bool refuted = false;
};

struct ShowArguments {
  std::string id;
  bool rederive = false;
};

Result<void> List(const Globals& globals, const ListArguments& arguments) {
  BOLTBEAM_ASSIGN(const ledger::Ledger memory, OpenLedger(globals));
  BOLTBEAM_ASSIGN(ledger::Index index, OpenIndex(memory));
  ledger::Filter filter;
  if (!arguments.kind.empty()) {
    BOLTBEAM_ASSIGN(filter.kind, ledger::ParseKind(arguments.kind));
  }
  filter.chip = arguments.chip;
  filter.model = arguments.model;
  filter.candidate = arguments.candidate;
  filter.verdict = arguments.verdict;
  filter.limit = arguments.count;
  std::vector<ledger::Row> rows;
  if (arguments.refuted) {
    BOLTBEAM_ASSIGN(rows, index.StandingRefutations());
  } else {
    BOLTBEAM_ASSIGN(rows, index.List(filter));
  }
  return WriteOutput(globals, report::LedgerListReport(rows, memory.options().writer, report::FormOf(globals.format)));
}

Result<void> AddRefutation(const Globals& globals, ledger::Index& index, const ledger::Verdict& verdict,
                           report::ShownRecord& shown) {
  BOLTBEAM_ASSIGN(shown.sightings, ledger::CountSightings(index, verdict));
  if (verdict.reopen_when.empty()) return {};
  const ledger::Facts facts = CurrentFacts(globals);
  for (const ledger::ReopenWhen& when : verdict.reopen_when) {
    const bool holds = ledger::Holds(when, facts) == ledger::Truth::kTrue;
    shown.is_due = shown.is_due || holds;
    shown.reopen_when.push_back(ledger::Describe(when, facts) + (holds ? ": come true" : ""));
  }
  return {};
}

Result<void> Show(Globals& globals, const ShowArguments& arguments) {
  BOLTBEAM_ASSIGN(const ledger::Ledger memory, OpenLedger(globals));
  BOLTBEAM_ASSIGN(ledger::Index index, OpenIndex(memory));
  BOLTBEAM_ASSIGN(const ledger::Row row, index.Find(arguments.id));
  report::ShownRecord shown;
  BOLTBEAM_ASSIGN(shown.record, ledger::LoadRecord(memory, row));
  if (shown.record.kind == ledger::Kind::kVerdict) {
    BOLTBEAM_ASSIGN(const ledger::Verdict verdict, ledger::VerdictFrom(shown.record.payload));
    BOLTBEAM_TRY(AddRefutation(globals, index, verdict, shown));
  }
  if (arguments.rederive) {
    BOLTBEAM_ASSIGN(shown.rederivation, Rederivations().Run(memory, shown.record));
  }
  BOLTBEAM_TRY(WriteOutput(globals, report::LedgerRecordReport(shown, report::FormOf(globals.format))));
  return shown.rederivation ? shown.rederivation->AsRecorded(arguments.id) : Result<void>();
}

report::LedgerForm LedgerFormOf(const std::string& name) {
  if (name == "json") return report::LedgerForm::kJson;
  if (name == "html") return report::LedgerForm::kHtml;
  return name == "md" ? report::LedgerForm::kMarkdown : report::LedgerForm::kText;
}

Result<void> Report(const Globals& globals, bool predictions) {
  BOLTBEAM_ASSIGN(const ledger::Ledger memory, OpenLedger(globals));
  BOLTBEAM_ASSIGN(ledger::Index index, OpenIndex(memory));
  if (predictions) {
    BOLTBEAM_ASSIGN(const ledger::Scores scores, ledger::ScorePredictions(index));
    return WriteOutput(globals, report::PredictionsReport(scores, LedgerFormOf(globals.format)));
  }
  report::LedgerReportData data;
  ledger::Filter verdicts;
  verdicts.kind = ledger::Kind::kVerdict;
  data.facts = CurrentFacts(globals);
  BOLTBEAM_ASSIGN(data.verdicts, index.List(verdicts));
  BOLTBEAM_ASSIGN(data.refutations, ledger::StandingRefutations(index, data.facts));
  BOLTBEAM_ASSIGN(data.chains, memory.ReadChains());
  return WriteOutput(globals, report::LedgerReport(data, LedgerFormOf(globals.format)));
}

void AddList(CLI::App& ledger, Globals& globals) {
  CLI::App* command = ledger.add_subcommand("list", "List records, the oldest first");
  const auto arguments = std::make_shared<ListArguments>();
  std::vector<std::string> kinds;
  for (const ledger::Kind kind : ledger::kKinds) kinds.emplace_back(ledger::KindName(kind));
  command->add_option("--kind", arguments->kind, "Only one kind, such as verdict")
      ->check(CLI::IsMember(kinds).description(""))
      ->type_name("KIND");
  command->add_option("--chip", arguments->chip, "Only records of one chip")->type_name("ID");
  command->add_option("--model", arguments->model, "Only one model: its name or the beginning of its hash");
  command->add_option("--candidate", arguments->candidate, "Only records of one candidate");
  command->add_option("--verdict", arguments->verdict, "Only one of the eight, such as refute")
      ->check(CLI::IsMember(ledger::RulingNames()).description(""))
      ->type_name("NAME");
  command->add_option("-n,--count", arguments->count, "Only the newest N records")->check(CLI::PositiveNumber);
  command->add_flag("--refuted", arguments->refuted, "Only refutations that stand");
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([arguments, &globals] { Finish(globals, List(globals, *arguments)); });
}

void AddShow(CLI::App& ledger, Globals& globals) {
  CLI::App* command = ledger.add_subcommand("show", "Show a record as it stands in its chain");
  const auto arguments = std::make_shared<ShowArguments>();
  command->add_option("record", arguments->id, "Its number, WRITER:NUMBER, or 8 digits of its hash")
      ->required()
      ->type_name("N");
  command->add_flag("--rederive", arguments->rederive, "Compute its figures again from its stored samples");
  AddOutputFlags(*command, globals, {"text", "json"});
  command->callback([arguments, &globals] { Finish(globals, Show(globals, *arguments)); });
}

void AddReport(CLI::App& ledger, Globals& globals) {
  CLI::App* command = ledger.add_subcommand("report", "Every verdict, what is refuted and what would reopen it");
  const auto predictions = std::make_shared<bool>(false);
  command->add_flag("--predictions", *predictions, "Score the predictions instead: hits, bias, width");
  AddOutputFlags(*command, globals, {"text", "json", "md", "html"});
  command->callback([predictions, &globals] { Finish(globals, Report(globals, *predictions)); });
}

}  // namespace

void AddLedgerRead(CLI::App& ledger, Globals& globals) {
  AddList(ledger, globals);
  AddShow(ledger, globals);
  AddReport(ledger, globals);
}

}  // namespace boltbeam::app
