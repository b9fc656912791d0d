// boltbeam ledger verify, repair, reopen, export, import: what guards the memory, adds to it and moves it.
#include <fmt/format.h>

#include <memory>

#include "base/json_members.h"
#include "ledger/index.h"
#include "ledger/merge.h"
#include "ledger/repair.h"
#include "ledger/verify.h"
#include "ledger_commands.h"
#include "report/ledger.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

struct ReopenArguments {
  std::string id, reason;
};

struct ExportArguments {
  std::string writer;
  bool without_samples = false;
};

/// The first fault goes to stderr with the exit status, all of them into the result.
Result<void> Verify(const Globals& globals) {
  BOLTBEAM_ASSIGN(const ledger::Ledger memory, OpenLedger(globals));
  BOLTBEAM_ASSIGN(const ledger::Verification result, ledger::Verify(*memory.options().files, memory.options().folder));
  BOLTBEAM_TRY(WriteOutput(globals, report::VerificationReport(result, report::FormOf(globals.format))));
  if (!result.faults.empty()) return std::unexpected(result.faults.front());
  return {};
}

std::string Describe(const ledger::Repaired& repaired) {
  std::string text = fmt::format("{}: {}\n", repaired.writer, repaired.fault);
  text += fmt::format("  {} records stay; {} bytes were cut at byte {}\n", repaired.records, repaired.cut_bytes,
                      repaired.cut_at_byte);
  if (repaired.whole_records > 0) {
    text += fmt::format(
        "  {} whole records lie behind the damage, in what was cut: read them there; an export that was made before "
        "goes into a ledger of its own (import, with another --home)\n",
        repaired.whole_records);
  }
  if (!repaired.kept.empty()) text += fmt::format("  kept: blobs/{}\n", repaired.kept);
  if (!repaired.kept_anchor.empty()) text += fmt::format("  its anchor: blobs/{}\n", repaired.kept_anchor);
  return text + fmt::format("  record {} of this writer says so\n", repaired.recovery.seq);
}

Result<void> Repair(const Globals& globals, const std::string& writer) {
  BOLTBEAM_ASSIGN(ledger::Ledger memory, OpenLedger(globals));
  BOLTBEAM_ASSIGN(const std::vector<ledger::Repaired> all, ledger::Repair(memory, writer));
  std::string text = all.empty() ? "no chain is damaged or torn\n" : "";
  for (const ledger::Repaired& repaired : all) text += Describe(repaired);
  return WriteOutput(globals, text);
}

Result<void> Reopen(const Globals& globals, const ReopenArguments& arguments) {
  BOLTBEAM_ASSIGN(ledger::Ledger memory, OpenLedger(globals));
  BOLTBEAM_ASSIGN(ledger::Index index, OpenIndex(memory));
  BOLTBEAM_ASSIGN(const ledger::Row row, index.Find(arguments.id));
  BOLTBEAM_ASSIGN(const std::vector<ledger::Receipt> receipts,
                  ledger::Reopen(memory, index, arguments.id, arguments.reason));
  std::string text;
  for (const ledger::Receipt& receipt : receipts)
    text += fmt::format("{}{}", text.empty() ? "record " : ", ", receipt.seq);
  text += ": it may be searched and judged again; nothing is promoted by it\n";
  const std::string command = base::TextOf(row.payload.value("details", nlohmann::json::object()), "command");
  if (!command.empty()) text += fmt::format("it was judged by: boltbeam {}\n", command);
  return WriteOutput(globals, text);
}

Result<void> Export(const Globals& globals, const ExportArguments& arguments) {
  BOLTBEAM_ASSIGN(const ledger::Ledger memory, OpenLedger(globals));
  BOLTBEAM_ASSIGN(const std::string text, ledger::Export(memory, arguments.writer, !arguments.without_samples));
  BOLTBEAM_ASSIGN(const std::vector<ledger::Chain> chains, memory.ReadChains());
  for (const ledger::Chain& chain : chains) {
    if (chain.state != ledger::ChainState::kTorn || (!arguments.writer.empty() && chain.writer != arguments.writer)) {
      continue;
    }
    Note(fmt::format("left out: {} bytes at the end of {}, which are no record", chain.torn_bytes, chain.path));
  }
  return WriteOutput(globals, text);
}

std::string Describe(const ledger::ImportResult& result) {
  std::string text;
  const auto add = [&](const char* what, const std::vector<std::string>& writers) {
    for (const std::string& writer : writers) text += fmt::format("{}: {}\n", writer, what);
  };
  add("a new chain", result.new_chains);
  add("extended", result.extended_chains);
  add("nothing new", result.known_chains);
  if (result.foreign + result.known_foreign > 0) {
    text += fmt::format("route entries: {} became verdicts, {} were imported before\n", result.foreign,
                        result.known_foreign);
  }
  text += fmt::format("{} records and {} blobs added\n", result.records + result.foreign, result.blobs);
  if (result.missing_blobs > 0)
    text += fmt::format("{} blobs of samples did not come with them\n", result.missing_blobs);
  return text;
}

Result<void> Import(const Globals& globals, const std::vector<std::string>& files) {
  BOLTBEAM_ASSIGN(ledger::Ledger memory, OpenLedger(globals));
  std::string text;
  for (const std::string& file : files) {
    BOLTBEAM_ASSIGN(const std::string bytes, base::ReadWholeFile(file));
    BOLTBEAM_ASSIGN(const ledger::ImportResult result, ledger::Import(memory, bytes, file));
    text += Describe(result);
  }
  return WriteOutput(globals, text);
}

void AddVerify(CLI::App& ledger, Globals& globals) {
  CLI::App* command = ledger.add_subcommand("verify", "Check every line, anchor and blob; name what was changed");
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([&globals] { Finish(globals, Verify(globals)); });
}

void AddRepair(CLI::App& ledger, Globals& globals) {
  CLI::App* command =
      ledger.add_subcommand("repair", "Mend damaged or torn chains: what is cut is kept aside, a record says so");
  const auto writer = std::make_shared<std::string>();
  command->add_option("writer", *writer, "Only the chain of one writer")->type_name("NAME");
  command->callback([writer, &globals] { Finish(globals, Repair(globals, *writer)); });
}

void AddReopen(CLI::App& ledger, Globals& globals) {
  CLI::App* command = ledger.add_subcommand("reopen", "Let a refuted candidate be judged again; promotes nothing");
  const auto arguments = std::make_shared<ReopenArguments>();
  command->add_option("record", arguments->id, "The refutation: its number or hash")->required()->type_name("N");
  command->add_option("--reason", arguments->reason, "Why it is worth another look")->required()->type_name("TEXT");
  command->callback([arguments, &globals] { Finish(globals, Reopen(globals, *arguments)); });
}

void AddExport(CLI::App& ledger, Globals& globals) {
  CLI::App* command = ledger.add_subcommand("export", "Write chains and samples as one file of lines for import");
  const auto arguments = std::make_shared<ExportArguments>();
  command->add_option("--writer", arguments->writer, "Only the chain of one writer")->type_name("NAME");
  command->add_flag("--without-samples", arguments->without_samples, "Leave the raw samples out");
  command->add_option("--out", globals.out_file, "Write the result to FILE instead of stdout");
  command->callback([arguments, &globals] { Finish(globals, Export(globals, *arguments)); });
}

void AddImport(CLI::App& ledger, Globals& globals) {
  CLI::App* command = ledger.add_subcommand("import", "Merge exported chains, or route entries of the Python tool");
  const auto files = std::make_shared<std::vector<std::string>>();
  command->add_option("files", *files, "Files that `ledger export` wrote, chains, or JSONL of route entries")
      ->required()
      ->type_name("FILE");
  command->callback([files, &globals] { Finish(globals, Import(globals, *files)); });
}

}  // namespace

void AddLedgerWrite(CLI::App& ledger, Globals& globals) {
  AddVerify(ledger, globals);
  AddRepair(ledger, globals);
  AddReopen(ledger, globals);
  AddExport(ledger, globals);
  AddImport(ledger, globals);
}

}  // namespace boltbeam::app
