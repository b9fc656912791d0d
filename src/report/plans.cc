#include "report/plans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "report/table.h"

namespace boltbeam::report {
namespace {

using search::PlanFile;
using search::PlanTable;

std::string Write(const Table& table, Form form) {
  if (form == Form::kCsv) return table.Csv();
  return form == Form::kMarkdown ? table.Markdown() : table.Text();
}

std::string GainText(const PlanFile& plan) {
  return plan.gain ? fmt::format("{:+.1f} %", (plan.gain->ratio - 1) * 100) : "";
}

nlohmann::ordered_json ToRow(const PlanFile& plan, const std::string& here) {
  nlohmann::ordered_json row;
  row["name"] = plan.name;
  row["chip"] = plan.chip;
  row["is_here"] = plan.chip == here;
  row["made_for"] = plan.made_for;
  row["threads"] = plan.threads;
  row["date"] = plan.date;
  row["tables"] = plan.tables.size();
  if (plan.gain) {
    row["ratio"] = plan.gain->ratio;
    row["ruling"] = plan.gain->ruling;
    row["verdict"] = plan.gain->verdict;
  }
  return row;
}

}  // namespace

std::string PlanListReport(const std::vector<PlanFile>& plans, const std::string& here, Form form) {
  if (form == Form::kJson) {
    nlohmann::ordered_json list{{"schema", "boltbeam.plans.v1"}, {"plans", nlohmann::ordered_json::array()}};
    for (const PlanFile& plan : plans) list["plans"].push_back(ToRow(plan, here));
    return list.dump(2) + "\n";
  }
  if (plans.empty() && form == Form::kText) return "No plan is installed: boltbeam search MODEL\n";
  Table table({{"plan", "plan", Align::kLeft},
               {"made for", "made_for", Align::kLeft},
               {"tables", "tables"},
               {"token", "ratio"},
               {"verdict", "ruling", Align::kLeft},
               {"chip", "chip", Align::kLeft}});
  for (const PlanFile& plan : plans) {
    table.Add({plan.name, plan.made_for, fmt::format("{}", plan.tables.size()),
               Cell(GainText(plan), plan.gain ? fmt::format("{}", plan.gain->ratio) : ""),
               plan.gain ? plan.gain->ruling : "", plan.chip == here ? Cell("this", plan.chip) : Cell(plan.chip)});
  }
  return Write(table, form);
}

std::string PlanReport(const PlanFile& plan, Form form) {
  if (form == Form::kJson) return ToJson(plan);
  Table table({{"table", "table", Align::kLeft}, {"knobs", "knobs", Align::kLeft}});
  for (const PlanTable& row : plan.tables) {
    if (form != Form::kText) {
      table.Add({row.table, row.knobs});
      continue;
    }
    // A line for every few knobs, so that none is cut off at the edge of a terminal.
    constexpr std::size_t kMost = 50;
    std::string name = row.table, rest = row.knobs;
    while (!rest.empty()) {
      std::size_t end = rest.size() <= kMost ? rest.size() : rest.rfind(',', kMost);
      if (end == std::string::npos) end = rest.size();
      table.Add({name, rest.substr(0, end)});
      rest.erase(0, end + 1);
      name.clear();
    }
  }
  if (form != Form::kText) return Write(table, form);
  std::string text = fmt::format("{}\nmade for {} on {}, {} threads, {}\n", plan.name, plan.made_for,
                                 plan.chip_name.empty() ? plan.chip : plan.chip_name, plan.threads, plan.date);
  if (plan.gain) {
    text += fmt::format("against {}: token time {:+.2f} % ({:+.2f} to {:+.2f}), {}\n", plan.baseline,
                        (plan.gain->ratio - 1) * 100, (plan.gain->low - 1) * 100, (plan.gain->high - 1) * 100,
                        plan.gain->ruling);
    if (!plan.gain->verdict.empty()) text += fmt::format("verdict {}\n", plan.gain->verdict.substr(0, 12));
  }
  if (!plan.with.empty()) text += fmt::format("with {}\n", fmt::join(plan.with, ", "));
  if (!plan.without.empty()) text += fmt::format("without {}\n", fmt::join(plan.without, ", "));
  return text + "\n" + Write(table, form);
}

}  // namespace boltbeam::report
