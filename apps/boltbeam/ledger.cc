// boltbeam ledger: the memory. Here what its parts share; they are in ledger_read.cc and ledger_write.cc.
#include "base/version.h"
#include "chip/facts.h"
#include "codegen/codegen.h"
#include "commands.h"
#include "judge/record.h"
#include "judge/samples.h"
#include "ledger_commands.h"
#include "search/trial_samples.h"
#include "terminal.h"

namespace boltbeam::app {

Result<ledger::Ledger> OpenLedger(const Globals& globals) {
  return ledger::Ledger::Open(ledger::OptionsFor(base::ResolvePaths(globals.home)));
}

Result<ledger::Index> OpenIndex(const ledger::Ledger& memory) {
  BOLTBEAM_ASSIGN(ledger::Index index, ledger::Index::Open(memory));
  for (const Error& fault : index.faults()) Note("left out: " + fault.Message());
  return index;
}

std::map<std::string, std::string> BuildFacts() {
  const std::string compiler = codegen::CompilerVersion();  // "19.1.7-<revision of the lowering>"
  const std::size_t dash = compiler.find('-');
  std::map<std::string, std::string> facts = {{"llvm_version", compiler.substr(0, dash)}};
  if (dash != std::string::npos) facts["lowering_version"] = compiler.substr(dash + 1);
  return facts;
}

ledger::Facts CurrentFacts(const Globals& globals) {
  ledger::Facts facts;
  facts["boltbeam_version"] = base::kVersion;
  for (const auto& [fact, value] : BuildFacts()) facts[fact] = value;
  if (const auto chip = chip::ThisMachine(base::ResolvePaths(globals.home).data.string())) {
    facts["chip.id"] = chip->id;
    for (const chip::Fact& fact : chip->facts) {
      if (fact.provenance != chip::Provenance::kUnknown) facts["chip." + fact.name] = fact.value;
    }
  }
  return facts;
}

ledger::RederiveTable Rederivations() {
  ledger::RederiveTable table;
  for (const std::string_view format : {judge::kSamplesFormat, judge::kOlderSamplesFormat}) {
    table.Register(std::string(format),
                   [](const ledger::Record&, std::string_view samples) { return judge::RederiveFields(samples); });
  }
  table.Register(std::string(search::kTrialSamplesFormat),
                 [](const ledger::Record&, std::string_view samples) -> Result<ledger::DerivedFields> {
                   BOLTBEAM_ASSIGN(nlohmann::json fields, search::RederiveTrial(samples));
                   return ledger::DerivedFields{std::move(fields), {}, {}};
                 });
  return table;
}

void AddLedger(CLI::App& app, Globals& globals) {
  CLI::App* ledger = app.add_subcommand("ledger", "The memory: list, show, report, verify, repair, ...");
  ledger->require_subcommand(1);
  AddLedgerRead(*ledger, globals);
  AddLedgerWrite(*ledger, globals);
}

}  // namespace boltbeam::app
