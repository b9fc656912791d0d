// boltbeam fit: fixed cost and bandwidth of every machine in files of ladder rows.
#include <memory>

#include "lab_commands.h"
#include "report/lab_format.h"

namespace boltbeam::app {
namespace {

Result<void> Fit(const Globals& globals, const LineFlags& line) {
  BOLTBEAM_ASSIGN(const std::vector<lab::Row> rows, line.Rows(globals));
  BOLTBEAM_ASSIGN(const std::vector<lab::MachineFit> fits, line.Fits(rows));
  return WriteOutput(globals, report::FitReport(fits, report::FormOf(globals.format)));
}

}  // namespace

void AddFit(CLI::App& app, Globals& globals) {
  const auto line = std::make_shared<LineFlags>();
  CLI::App* command = app.add_subcommand("fit", "The line of a ladder: fixed cost per token and fitted bandwidth");
  command->add_option("files", line->files, "Rows of ladders (those of `boltbeam ladder` without it)")
      ->type_name("FILE");
  line->Add(*command);
  command->add_option("--reached", line->options.reached_gb_s, "GB/s that another kernel reached on this machine")
      ->check(NumberFrom(kLeastGbS, kMostGbS));
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([line, &globals] { Finish(globals, Fit(globals, *line)); });
}

}  // namespace boltbeam::app
