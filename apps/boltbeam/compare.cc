#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "audit/compare/attribution.h"
#include "audit/compare/matching.h"
#include "audit/compare/peer.h"
#include "audit/compare/stored.h"
#include "audit/floors.h"
#include "audit/import/imported.h"
#include "audit/recorded/recorded.h"
#include "base/paths.h"
#include "command.h"
#include "compare_live.h"
#include "report/compare_format.h"
#include "report/import_format.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::vector<std::string> files;
  std::string import;
  double tokens = 0;  // that the imported trace holds
  LiveArguments live;
};

Result<nlohmann::json> ReadJson(const std::string& path) {
  BOLTBEAM_ASSIGN(const std::string text, base::ReadWholeFile(path));
  nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded())
    return Fail(Code::kJson, path, "text that is no JSON", "an account that audit -o json wrote");
  return document;
}

Result<void> CompareAccounts(const Globals& globals, const std::string& ours, const std::string& theirs) {
  BOLTBEAM_ASSIGN(const nlohmann::json a, ReadJson(ours));
  BOLTBEAM_ASSIGN(const nlohmann::json b, ReadJson(theirs));
  BOLTBEAM_ASSIGN(const audit::StoredAudit one, audit::ReadStoredAudit(ours, a));
  BOLTBEAM_ASSIGN(const audit::StoredAudit two, audit::ReadStoredAudit(theirs, b));
  BOLTBEAM_ASSIGN(const auto comparisons, audit::CompareStored(one, two));
  return WriteOutput(globals, report::CompareReport(comparisons, globals.format));
}

// A published ledger is derived again; everything else is what a program printed.
Result<void> Import(const Globals& globals, const Arguments& arguments) {
  BOLTBEAM_ASSIGN(const std::string bytes, base::ReadWholeFile(arguments.import));
  const nlohmann::json document = nlohmann::json::parse(bytes, nullptr, false);
  if (audit::IsRecorded(document)) {
    BOLTBEAM_ASSIGN(const audit::RecordedAccount account, audit::DeriveRecorded(arguments.import, document));
    BOLTBEAM_TRY(WriteOutput(globals, report::RecordedReport(arguments.import, account, globals.format)));
    if (account.Open().empty()) return {};
    return Fail(Code::kStoredAccount, arguments.import, fmt::format("{} lines stay open", account.Open().size()),
                "lines that follow from the others, or a check that says why not");
  }
  report::ShownImport shown{arguments.import, {}, {}};
  BOLTBEAM_ASSIGN(shown.imported, imports::ImportText(arguments.import, bytes));
  if (!arguments.files.empty()) {
    BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.files.front()));
    const std::vector<audit::TimedOperation> operations = audit::TimedOperations(shown.imported);
    if (!operations.empty()) {
      shown.attributions.push_back(audit::Attribute(audit::MatchOperations(operations, model, arguments.live.depth)));
    } else {
      const std::vector<audit::PartFloor> floors = audit::PartFloors(model, arguments.live.depth, {});
      for (const std::string& group : imports::GroupsOf(shown.imported, imports::RowKind::kKernel)) {
        shown.attributions.push_back(audit::Attribute(shown.imported, floors, arguments.tokens, group));
      }
    }
  }
  return WriteOutput(globals, report::ImportReport(shown, globals.format));
}

Result<void> RunCompare(Arguments& arguments, const Globals& globals) {
  if (!arguments.import.empty()) {
    if (arguments.files.size() > 1) return Fail(Code::kUsage, "compare --import", "two files", "at most a model");
    return Import(globals, arguments);
  }
  if (arguments.files.size() == 2) return CompareAccounts(globals, arguments.files[0], arguments.files[1]);
  if (arguments.files.size() == 1) {
    arguments.live.model = arguments.files.front();
    return CompareWithProgram(globals, arguments.live);
  }
  return Fail(Code::kUsage, "compare", "nothing to compare",
              "MODEL (with llama.cpp, live), two stored accounts, or --import FILE");
}

}  // namespace

void AddCompare(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("compare", "A token beside another program's, another account's or an imported trace");
  command->add_option("files", arguments->files, "A model (llama.cpp is run live), or two accounts of audit -o json")
      ->expected(0, 2);
  command->add_option("--import", arguments->import,
                      "Read another program's output; its kind is told by its content. With a model its kernels are "
                      "attributed to parts");
  command->add_option("--tokens", arguments->tokens, "Tokens that the imported trace holds (0: as its launches divide)")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command->add_option("--peer", arguments->live.peer, "llama.cpp's folder of programs, or its llama-bench; else PATH");
  command->add_option("--command", arguments->live.command,
                      "Compare whole tokens with a command that prints tokens per second");
  command->add_option("-d,--depth", arguments->live.depth, "Tokens in the context")->capture_default_str();
  command->add_option("--window", arguments->live.window, "Tokens of one window")
      ->check(CLI::Range(1U, 4096U))
      ->capture_default_str();
  command->add_option("--seconds", arguments->live.seconds, "Time of each set of interleaved windows, and of the audit")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  arguments->live.engine.Add(*command);
  AddOutputFlags(*command, globals, {"text", "json", "md"});
  command->callback([arguments, &globals] { Finish(globals, RunCompare(*arguments, globals)); });
}

}  // namespace boltbeam::app
