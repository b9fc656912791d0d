// boltbeam chip list, boltbeam chip show [NAME]: the registry, the user's rows and this machine.
#include <memory>

#include "base/paths.h"
#include "chip/facts.h"
#include "chip_commands.h"
#include "commands.h"
#include "report/chips.h"

namespace boltbeam::app {
namespace {

Result<void> List(const Globals& globals) {
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(std::vector<chip::Chip> chips, chip::LoadRegistry(paths.config.string()));
  BOLTBEAM_ASSIGN(chip::Chip machine, chip::ThisMachine(paths.data.string()));
  const std::string id = machine.id;
  chips.insert(chips.begin(), std::move(machine));
  return WriteOutput(globals, report::ChipListReport(chips, id, report::FormOf(globals.format)));
}

Result<void> Show(const Globals& globals, const std::string& name) {
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip chip,
                  name.empty() ? chip::ThisMachine(paths.data.string()) : chip::FindChip(name, paths.config.string()));
  return WriteOutput(globals, report::ChipReport(chip, report::FormOf(globals.format)));
}

}  // namespace

void AddChipList(CLI::App& chip, Globals& globals) {
  CLI::App* command = chip.add_subcommand("list", "List the chips that limits can be computed for");
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([&globals] { Finish(globals, List(globals)); });
}

void AddChipShow(CLI::App& chip, Globals& globals) {
  CLI::App* command = chip.add_subcommand("show", "Show every fact about a chip, and where it comes from");
  const auto name = std::make_shared<std::string>();
  command->add_option("name", *name, "A chip of the list or a JSON file; without it, this machine")->type_name("NAME");
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([name, &globals] { Finish(globals, Show(globals, *name)); });
}

void AddChip(CLI::App& app, Globals& globals) {
  CLI::App* chip = app.add_subcommand("chip", "What is known about chips: list, show, measure");
  chip->require_subcommand(1);
  AddChipList(*chip, globals);
  AddChipShow(*chip, globals);
}

}  // namespace boltbeam::app
