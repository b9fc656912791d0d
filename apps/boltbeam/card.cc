// boltbeam card: a machine's two numbers and what they stand beside.
#include <memory>

#include "base/paths.h"
#include "chip/facts.h"
#include "lab_commands.h"
#include "report/lab_format.h"
#include "report/png.h"

namespace boltbeam::app {
namespace {

Result<std::string> Drawn(const Globals& globals, const std::vector<lab::Card>& cards) {
  if (globals.format == "svg") return report::CardSvg(cards);
  if (globals.format == "png") return report::PngOf(report::CardSvg(cards));
  return report::CardReport(cards, report::FormOf(globals.format));
}

Result<void> Card(const Globals& globals, const LineFlags& line) {
  if (globals.format == "png" && globals.out_file.empty()) {
    return Fail(Code::kUsage, "-o png", "no file to write it to", "--out FILE");
  }
  BOLTBEAM_ASSIGN(const std::vector<lab::Row> rows, line.Rows(globals));
  BOLTBEAM_ASSIGN(const std::vector<lab::MachineFit> fits, line.Fits(rows));
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(base::ResolvePaths(globals.home).data.string()));
  std::vector<lab::Card> cards;
  for (const lab::MachineFit& fit : fits) {
    // What was measured of this machine belongs to no other's card.
    const bool is_this = fit.alias == HostName() && fit.device == machine.name;
    cards.push_back(lab::MakeCard(fit, is_this ? &machine : nullptr));
  }
  BOLTBEAM_ASSIGN(const std::string text, Drawn(globals, cards));
  return WriteOutput(globals, text);
}

}  // namespace

void AddCard(CLI::App& app, Globals& globals) {
  const auto line = std::make_shared<LineFlags>();
  CLI::App* command = app.add_subcommand("card", "This machine's card, or those of several beside each other");
  command->add_option("files", line->files, "Rows of ladders (those of `boltbeam ladder` without it)")
      ->type_name("FILE");
  line->Add(*command);
  AddOutputFlags(*command, globals, {"text", "json", "csv", "md", "svg", "png"});
  command->callback([line, &globals] { Finish(globals, Card(globals, *line)); });
}

}  // namespace boltbeam::app
