// boltbeam plan list|show|remove: the plans that searches installed.
#include <fmt/format.h>

#include <memory>

#include "base/paths.h"
#include "chip/facts.h"
#include "commands.h"
#include "report/plans.h"
#include "search/plan_store.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

search::PlanStore Store(const Globals& globals) { return search::PlanStore::In(base::ResolvePaths(globals.home)); }

Result<void> List(const Globals& globals) {
  const search::PlanStore::Listing listing = Store(globals).List();
  for (const Error& damaged : listing.damaged) Note("left out: " + damaged.Message());
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::DetectThisMachine());
  return WriteOutput(globals, report::PlanListReport(listing.plans, machine.id, report::FormOf(globals.format)));
}

Result<void> Show(const Globals& globals, const std::string& name) {
  BOLTBEAM_ASSIGN(const search::PlanFile plan, Store(globals).Find(name));
  return WriteOutput(globals, report::PlanReport(plan, report::FormOf(globals.format)));
}

Result<void> Remove(const Globals& globals, const std::string& name) {
  const search::PlanStore store = Store(globals);
  BOLTBEAM_ASSIGN(const search::PlanFile plan, store.Find(name));
  BOLTBEAM_TRY(store.Remove(plan));
  Note(fmt::format("removed plan {}", plan.name));
  return {};
}

}  // namespace

void AddPlan(CLI::App& app, Globals& globals) {
  CLI::App* plan = app.add_subcommand("plan", "The plans that searches installed: list, show, remove");
  plan->require_subcommand(1);
  const auto name = std::make_shared<std::string>();

  CLI::App* list = plan->add_subcommand("list", "List the plans, the newest first, and which of them are this chip's");
  AddOutputFlags(*list, globals, report::FormNames());
  list->callback([&globals] { Finish(globals, List(globals)); });

  CLI::App* show = plan->add_subcommand("show", "Show a plan's tables, and what proved it");
  show->add_option("plan", *name, "Its name, or the beginning of it")->required()->type_name("PLAN");
  AddOutputFlags(*show, globals, report::FormNames());
  show->callback([name, &globals] { Finish(globals, Show(globals, *name)); });

  CLI::App* remove = plan->add_subcommand("remove", "Remove a plan: its models run the default one again");
  remove->add_option("plan", *name, "Its name, or the beginning of it")->required()->type_name("PLAN");
  remove->callback([name, &globals] { Finish(globals, Remove(globals, *name)); });
}

}  // namespace boltbeam::app
