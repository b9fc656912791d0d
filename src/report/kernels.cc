#include "report/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kShownId = 12;

std::string JsonText(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string TableText(const Table& table, Form form) {
  if (form == Form::kCsv) return table.Csv();
  return form == Form::kMarkdown ? table.Markdown() : table.Text();
}

std::string_view ShortProvenance(kernel::Provenance provenance) {
  const std::string_view name = kernel::ProvenanceName(provenance);
  return name.substr(0, name.find('_'));
}

std::string AtMost(const engine::RouteBound& bound) {
  return bound.at_most_ns ? Duration(*bound.at_most_ns) : "not measured";
}

std::string RoutesText(const measure::RouteList& list) {
  const std::vector<engine::RouteBound>& bounds = list.bounds;
  Table table(
      {{"route", "", Align::kLeft}, {"uses", ""}, {"barriers", ""}, {"calls", ""}, {"waits", ""}, {"at most", ""}});
  const auto count = [](double value) { return fmt::format("{:.0f}", value); };
  bool is_measured = true;
  for (const engine::RouteBound& bound : bounds) {
    const std::string uses = bound.uses == 0 ? "off" : std::to_string(bound.uses);
    table.Add({bound.route->name, uses, count(bound.saved.barriers), count(bound.saved.calls),
               bound.waits_ns ? Duration(*bound.waits_ns) : "", AtMost(bound)});
    is_measured = is_measured && bound.missing.empty();
  }
  std::string text = table.Text() + "\n";
  for (const engine::RouteBound& bound : bounds) {
    const engine::Route& route = *bound.route;
    text += Wrap(fmt::format("{}: {}; needs {}.{}", route.name, route.does, route.needs,
                             route.refuted.empty() ? "" : " Off: " + route.refuted + "."),
                 2) +
            "\n";
  }
  text +=
      "\n" +
      Wrap(
          "barriers, calls: what a token is spared by the route. waits: what its threads wait for each other at so "
          "many barriers, the longest of those measured in tokens of this plan, and for the thread that streams most; "
          "of shared-tails, at those of its products while no tails are shared. "
          "at most: what all that can save, with the measured cost of a barrier, of small vectors' bytes and "
          "instructions, and of a cold call.") +
      "\n";
  for (const std::string& cause : list.spoiled)
    text += Wrap("waits are longer than usual, as meanwhile: " + cause + ".", 2) + "\n";
  if (!is_measured) text += Wrap("not measured: run `boltbeam chip measure` first.") + "\n";
  return text;
}

ordered_json RoutesJson(const std::vector<engine::RouteBound>& bounds) {
  ordered_json rows = ordered_json::array();
  for (const engine::RouteBound& bound : bounds) {
    rows.push_back({{"route", bound.route->name},
                    {"does", bound.route->does},
                    {"needs", bound.route->needs},
                    {"bitwise", bound.route->bitwise},
                    {"on_by_default", bound.route->on},
                    {"refuted", bound.route->refuted},
                    {"uses", bound.uses},
                    {"barriers_saved", bound.saved.barriers},
                    {"calls_saved", bound.saved.calls},
                    {"bytes_saved", bound.saved.bytes},
                    {"instructions_saved", bound.saved.instructions},
                    {"streamed_bytes_saved", bound.saved.streamed},
                    {"waits_ns", bound.waits_ns ? ordered_json(*bound.waits_ns) : ordered_json(nullptr)},
                    {"waits_from", bound.waits_from},
                    {"at_most_ns", bound.at_most_ns ? ordered_json(*bound.at_most_ns) : ordered_json(nullptr)},
                    {"missing", bound.missing}});
  }
  return rows;
}

/// Costs are in the order of the kernels.
ordered_json ListJson(const std::vector<PlannedKernel>& kernels, const std::vector<KernelCost>& costs,
                      const measure::RouteList& routes) {
  ordered_json rows = ordered_json::array();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const PlannedKernel& kernel = kernels[i];
    rows.push_back({{"part", kernel.part},
                    {"format", kernel.format},
                    {"kernel", kernel.program->name},
                    {"kernel_id", kernel.id},
                    {"description", kernel.program->description},
                    {"provenance", kernel::ProvenanceName(kernel.program->provenance)},
                    {"steps", kernel.steps},
                    {"stored_bytes", kernel.stored_bytes}});
    for (const auto& [name, value] : CostFields(costs[i])) {
      rows.back()[name] = value ? ordered_json(*value) : ordered_json(nullptr);
    }
  }
  return {{"schema", "boltbeam.kernels.v1"},
          {"kernels", std::move(rows)},
          {"routes", RoutesJson(routes.bounds)},
          {"waits_spoiled", routes.spoiled}};
}

ordered_json CheckJson(const std::vector<engine::KernelCheck>& checks) {
  ordered_json rows = ordered_json::array();
  for (const engine::KernelCheck& check : checks) {
    rows.push_back({{"part", check.part},
                    {"tensor", check.tensor},
                    {"format", check.format},
                    {"kernel", check.kernel},
                    {"kernel_id", check.kernel_id},
                    {"error", check.error},
                    {"worst_row", check.worst_row},
                    {"ok", check.ok}});
  }
  return {{"schema", "boltbeam.kernel-check.v1"}, {"limit", engine::kKernelErrorLimit}, {"checks", std::move(rows)}};
}

Table CheckTable(Column which) {
  return Table({{"part", "part", Align::kLeft},
                std::move(which),
                {"format", "format", Align::kLeft},
                {"kernel", "kernel", Align::kLeft},
                {"error", "error"},
                {"ok", "ok", Align::kLeft}});
}

void AddCheck(Table& table, const engine::KernelCheck& check, std::string which) {
  table.Add({check.part,
             std::move(which),
             check.format,
             check.kernel,
             {fmt::format("{:.1e}", check.error), fmt::format("{}", check.error)},
             check.ok ? "yes" : "NO: " + check.tensor});
}

Table TensorTable(const std::vector<engine::KernelCheck>& checks) {
  Table table = CheckTable({"tensor", "tensor", Align::kLeft});
  for (const engine::KernelCheck& check : checks) AddCheck(table, check, check.tensor);
  return table;
}

/// One row for each kernel of a part: its worst tensor.
Table KernelTable(const std::vector<engine::KernelCheck>& checks) {
  std::vector<std::pair<engine::KernelCheck, std::uint64_t>> rows;
  for (const engine::KernelCheck& check : checks) {
    const auto place = std::ranges::find_if(
        rows, [&](const auto& row) { return row.first.part == check.part && row.first.kernel_id == check.kernel_id; });
    if (place == rows.end()) {
      rows.emplace_back(check, 1);
      continue;
    }
    ++place->second;
    if (check.error > place->first.error) place->first = check;
  }
  Table table = CheckTable({"tables", "tables"});
  for (const auto& [worst, tables] : rows) AddCheck(table, worst, std::to_string(tables));
  return table;
}

}  // namespace

std::vector<PlannedKernel> KernelsOf(const engine::Engine& engine) {
  std::vector<PlannedKernel> kernels;
  for (const engine::StepInfo& step : engine.steps()) {
    auto place = std::ranges::find(kernels, step.kernel_id, &PlannedKernel::id);
    if (place == kernels.end()) {
      const kernel::Program& program = engine.programs().at(step.kernel_id);
      place = kernels.insert(place, {&program, step.kernel_id, step.role, step.format, 0, 0, step.streams});
    }
    // Parts of one shape share a kernel.
    std::vector<std::string> roles{step.role};
    for (const auto& [role, bytes] : step.parts) roles.push_back(role);
    for (const std::string& role : roles) {
      if (place->part.find(role) == std::string::npos) place->part += ", " + role;
    }
    ++place->steps;
    place->stored_bytes += step.stored_bytes;
  }
  for (const auto& [id, program] : engine.programs()) {
    const bool is_known = std::ranges::find(kernels, id, &PlannedKernel::id) != kernels.end();
    if (!is_known) kernels.push_back({&program, id, "prompt", "", 0, 0, false});
  }
  return kernels;
}

std::string KernelListReport(const engine::Engine& engine, const measure::RouteList& routes,
                             const std::vector<KernelCost>& costs, Form form) {
  const std::vector<PlannedKernel> kernels = KernelsOf(engine);
  if (form == Form::kJson) return JsonText(ListJson(kernels, costs, routes));
  // A terminal shows the family: the shape is in the full name, which the id stands for.
  const auto shown_name = [form](const std::string& name) {
    return form == Form::kText ? name.substr(0, name.find('.')) : name;
  };
  std::vector<Column> columns{
      {"part", "part", Align::kLeft},    {"format", "format", Align::kLeft},     {"kernel", "kernel", Align::kLeft},
      {"id", "kernel_id", Align::kLeft}, {"origin", "provenance", Align::kLeft}, {"steps", "steps"},
      {"bytes", "stored_bytes"}};
  // A terminal has no room beside them: there the costs are a table of their own.
  const bool is_wide = form != Form::kText;
  if (is_wide) {
    for (const auto& [name, value] : CostFields({})) columns.push_back({name, name});
  }
  Table table(columns);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const PlannedKernel& kernel = kernels[i];
    std::vector<Cell> cells{kernel.part,
                            kernel.format,
                            {shown_name(kernel.program->name), kernel.program->name},
                            {kernel.id.substr(0, kShownId), kernel.id},
                            {std::string(is_wide ? kernel::ProvenanceName(kernel.program->provenance)
                                                 : ShortProvenance(kernel.program->provenance)),
                             std::string(kernel::ProvenanceName(kernel.program->provenance))},
                            std::to_string(kernel.steps),
                            {Thousands(kernel.stored_bytes), std::to_string(kernel.stored_bytes)}};
    if (is_wide) {
      for (const auto& [name, value] : CostFields(costs[i])) cells.emplace_back(value ? fmt::format("{}", *value) : "");
    }
    table.Add(std::move(cells));
  }
  if (form != Form::kText) return TableText(table, form);
  return table.Text() + "\n" + CostText(kernels, costs) + "\n" + RoutesText(routes) + "\n" +
         Wrap(
             "origin: compiler, generated from the format's layout and a formula over the chip's facts; search, with a "
             "geometry that a search chose. `boltbeam kernel show MODEL --part PART|ID` prints a kernel.") +
         "\n";
}

std::string KernelCheckReport(const std::vector<engine::KernelCheck>& checks, Form form) {
  if (form == Form::kJson) return JsonText(CheckJson(checks));
  const auto wrong = std::ranges::count(checks, false, &engine::KernelCheck::ok);
  std::string text = TableText(form == Form::kCsv ? TensorTable(checks) : KernelTable(checks), form);
  if (form != Form::kText) return text;
  return text + "\n" +
         Wrap(fmt::format("{} of {} checks agree with double arithmetic, those without a table with the interpreter "
                          "bit for bit. error: the worst row's difference over the sum "
                          "of the absolute values of its terms, at most {:.0e}.",
                          checks.size() - static_cast<std::size_t>(wrong), checks.size(), engine::kKernelErrorLimit)) +
         "\n";
}

Result<std::string> KernelText(const PlannedKernel& kernel, const codegen::Target& target, Stage stage) {
  std::string text = fmt::format("# {}\n# part {}, {} steps a token\n# identity {}\n", kernel.program->name,
                                 kernel.part, kernel.steps, kernel.id);
  const auto wanted = [stage](Stage one) { return stage == Stage::kAll || stage == one; };
  if (wanted(Stage::kProgram)) text += "\n## Loop program\n" + kernel::Print(*kernel.program);
  if (wanted(Stage::kIr)) {
    BOLTBEAM_ASSIGN(const std::string ir, codegen::EmitListing(*kernel.program, target, codegen::Listing::kLlvmIr));
    text += "\n## LLVM IR\n" + ir;
  }
  if (wanted(Stage::kAssembly)) {
    BOLTBEAM_ASSIGN(const std::string assembly,
                    codegen::EmitListing(*kernel.program, target, codegen::Listing::kAssembly));
    text += "\n## Machine code\n" + assembly;
  }
  return text;
}

}  // namespace boltbeam::report
