#include "measure/chip_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/paths.h"
#include "base/ticks.h"
#include "chip/facts.h"
#include "command.h"
#include "judge/record.h"
#include "ledger/ledger.h"
#include "measure/environment.h"
#include "report/table.h"
#include "report/units.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::uint32_t threads = 0;
};

std::string ValueText(const chip::Fact& fact) {
  if (fact.unit == "ns") return report::Duration(fact.value);
  return fact.value < 1e6 ? fmt::format("{} {}", report::Decimal(fact.value, 2), fact.unit)
                          : report::Scaled(fact.value) + fact.unit;
}

std::string FactsJson(const chip::Chip& machine, const std::vector<chip::Fact>& facts) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const chip::Fact& fact : facts) {
    rows.push_back({{"name", fact.name},
                    {"value", fact.value},
                    {"unit", fact.unit},
                    {"provenance", chip::ProvenanceName(fact.provenance)},
                    {"method", fact.method},
                    {"date", fact.date},
                    {"spread", fact.spread}});
  }
  const nlohmann::ordered_json document = {
      {"schema", "boltbeam.chip-measure.v1"}, {"id", machine.id}, {"name", machine.name}, {"facts", std::move(rows)}};
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string FactsTable(const Globals& globals, const chip::Chip& machine, const std::vector<chip::Fact>& facts) {
  report::Table table({{"fact", "name", report::Align::kLeft}, {"value", "value"}, {"spread", "spread"}});
  for (const chip::Fact& fact : facts) table.Add({fact.name, ValueText(fact), report::Percent(fact.spread)});
  if (globals.format == "md") return table.Markdown();
  std::string text = fmt::format("{}\n\n{}\n", machine.name, table.Text());
  for (const chip::Fact& fact : facts) text += report::Wrap(fmt::format("{}: {}", fact.name, fact.method), 2) + "\n";
  return text;
}

/// So that what the chip was like when something was judged can be looked up later.
Result<void> Remember(const base::Paths& paths, const chip::Chip& machine, const std::vector<chip::Fact>& facts) {
  ledger::ChipFacts record;
  record.chip = machine.id;
  for (const chip::Fact& fact : facts) {
    record.facts[fact.name] = {
        {"value", fact.value}, {"unit", fact.unit}, {"spread", fact.spread}, {"date", fact.date}};
  }
  record.environment = judge::EnvironmentJson(measure::ReadEnvironment());
  BOLTBEAM_ASSIGN(ledger::Ledger ledger, ledger::Ledger::Open(ledger::OptionsFor(paths)));
  BOLTBEAM_TRY(ledger.AppendChipFacts(record));
  return {};
}

Result<void> RunChipMeasure(const Arguments& arguments, const Globals& globals) {
  CatchInterrupts();
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(chip::Chip machine, chip::DetectThisMachine());
  std::vector<int> cpus = chip::UsableCpus();
  if (arguments.threads > cpus.size()) {
    return Fail(Code::kUsage, "-t", std::to_string(arguments.threads), fmt::format("1 to {} usable CPUs", cpus.size()));
  }
  // More threads than the quota has CPUs for are stopped within each period, which looks like a slow memory.
  const auto quota = static_cast<std::size_t>(std::max(1.0, chip::CpuQuota()));
  const std::size_t usable = std::min(cpus.size(), quota);
  cpus.resize(arguments.threads != 0 ? arguments.threads : usable);
  runtime::KernelCache kernels(codegen::TargetFor(machine), (paths.cache / "kernels").string());
  std::vector<chip::Fact> facts;
  const measure::Counters counters = measure::ReadCounters();
  const std::uint64_t begin = base::MonotonicNs();
  {
    Progress progress("measuring");
    measure::MeasureHooks hooks;
    hooks.cancelled = Interrupted;
    hooks.progress = [&](std::uint32_t done, std::uint32_t total) { progress.Show(done, total); };
    BOLTBEAM_ASSIGN(facts, measure::MeasureChip(machine, kernels, cpus, hooks));
  }
  const auto wall_ns = static_cast<double>(base::MonotonicNs() - begin);
  for (const std::string& cause : measure::SpoilingCauses(counters, measure::ReadCounters(), wall_ns)) {
    Note("measured on a disturbed machine: " + cause);
  }
  machine.facts.insert(machine.facts.end(), facts.begin(), facts.end());
  const std::string file = chip::MeasuredFile(paths.data.string(), machine.id);
  if (cpus.size() < usable) {
    Note(fmt::format("not kept: measured on {} of {} CPUs; without -t the figures become this machine's", cpus.size(),
                     usable));
  } else {
    BOLTBEAM_TRY(base::WriteFileAtomically(file, chip::ChipToJson(machine)));
    BOLTBEAM_TRY(Remember(paths, machine, facts));
    Note(fmt::format("written to {}, and remembered in the ledger", file));
  }
  return WriteOutput(globals,
                     globals.format == "json" ? FactsJson(machine, facts) : FactsTable(globals, machine, facts));
}

}  // namespace

void AddChipMeasure(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  const auto found = app.get_subcommands([](const CLI::App* other) { return other->get_name() == "chip"; });
  CLI::App* chip =
      found.empty() ? app.add_subcommand("chip", "Facts about chips")->require_subcommand(1) : found.front();
  CLI::App* command = chip->add_subcommand("measure", "Measure this machine with generated probe kernels");
  command->add_option("-t,--threads", arguments->threads, "Threads (all usable CPUs, or the quota)")
      ->check(CLI::Range(1, 1024));
  AddOutputFlags(*command, globals, {"text", "json", "md"});
  command->callback([arguments, &globals] { Finish(globals, RunChipMeasure(*arguments, globals)); });
}

}  // namespace boltbeam::app
