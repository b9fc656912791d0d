// doctor: what this machine has and lacks, and how to mend it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/paths.h"
#include "command.h"
#include "doctor_checks.h"
#include "report/table.h"

namespace boltbeam::app {
namespace {

std::string AsJson(const std::vector<Finding>& findings) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    rows.push_back(
        {{"item", finding.item}, {"state", finding.state}, {"detail", finding.detail}, {"fix", finding.fix}});
  }
  const nlohmann::ordered_json document = {{"schema", "boltbeam.doctor.v1"}, {"findings", std::move(rows)}};
  // A path need not be UTF-8.
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string AsText(const std::vector<Finding>& findings) {
  std::size_t item_width = 0, state_width = 0;
  for (const Finding& finding : findings) {
    item_width = std::max(item_width, finding.item.size());
    state_width = std::max(state_width, finding.state.size());
  }
  std::string text;
  for (const Finding& finding : findings) {
    const std::size_t indent = item_width + state_width + 4;
    text += fmt::format("{:<{}}  {:<{}}  {}\n", finding.item, item_width, finding.state, state_width,
                        report::Wrap(finding.detail, indent, 80, indent));
    if (finding.fix.empty()) continue;
    text += fmt::format("{:{}}-> {}\n", "", indent, report::Wrap(finding.fix, indent + 3, 80, indent + 3));
  }
  return text;
}

}  // namespace

void AddDoctor(CLI::App& app, Globals& globals) {
  CLI::App* command = app.add_subcommand("doctor", "Tell what this machine has and lacks, and how to mend it");
  AddOutputFlags(*command, globals, {"text", "json"});
  command->callback([&globals] {
    const std::vector<Finding> findings = Examine(base::ResolvePaths(globals.home));
    Finish(globals, WriteOutput(globals, globals.format == "json" ? AsJson(findings) : AsText(findings)));
  });
}

}  // namespace boltbeam::app
