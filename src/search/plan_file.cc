#include "search/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/paths.h"
#include "base/printable.h"
#include "engine/routes.h"

namespace boltbeam::search {
namespace {

using nlohmann::json;

constexpr std::string_view kSchema = "boltbeam.plan.v1";
constexpr std::size_t kMostTables = 4096;

/// Fields of an object, each with the rule that it breaks.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[nodiscard]] std::unexpected<Error> Broken(std::string_view field, std::string expected) const {
    const auto found = object_.find(field);
    const std::string text =
        found == object_.end() ? "nothing" : base::Printable(found->dump(-1, ' ', true).substr(0, 80));
    return Fail(Code::kPlanFile, fmt::format("{}: {}", where_, field), text, std::move(expected));
  }
  Result<std::string> Text(std::string_view field, bool is_needed = true) const {
    const auto found = object_.find(field);
    if (found == object_.end() && !is_needed) return std::string();
    if (found == object_.end() || !found->is_string()) return Broken(field, "a text");
    auto text = found->get<std::string>();
    if (is_needed && text.empty()) return Broken(field, "a text that is not empty");
    return text;
  }
  Result<std::vector<std::string>> Texts(std::string_view field) const {
    std::vector<std::string> texts;
    const auto found = object_.find(field);
    if (found == object_.end()) return texts;
    if (!found->is_array()) return Broken(field, "a list of texts");
    for (const json& one : *found) {
      if (!one.is_string()) return Broken(field, "a list of texts");
      texts.push_back(one.get<std::string>());
    }
    return texts;
  }
  Result<double> Number(std::string_view field) const {
    const auto found = object_.find(field);
    if (found == object_.end() || !found->is_number() || !std::isfinite(found->get<double>())) {
      return Broken(field, "a number");
    }
    return found->get<double>();
  }

 private:
  const json& object_;
  std::string where_;
};

Result<PlanTable> ParseTable(const json& row, const std::string& where) {
  if (!row.is_object()) return Fail(Code::kPlanFile, where, "no object", "an object with a table and its knobs");
  const Fields fields(row, where);
  PlanTable table;
  BOLTBEAM_ASSIGN(table.table, fields.Text("table"));
  BOLTBEAM_ASSIGN(table.knobs, fields.Text("knobs"));
  BOLTBEAM_ASSIGN(table.checked, fields.Text("checked", false));
  if (const auto parsed = engine::ParseGeometryChoice(table.table + ":" + table.knobs); !parsed) {
    return fields.Broken("knobs", parsed.error().expected);
  }
  return table;
}

Result<std::optional<PlanGain>> ParseGain(const json& object, const std::string& where) {
  const auto found = object.find("gain");
  if (found == object.end() || found->is_null()) return std::nullopt;
  if (!found->is_object()) return Fail(Code::kPlanFile, where + ": gain", "no object", "an object or nothing");
  const Fields fields(*found, where + ": gain");
  PlanGain gain;
  BOLTBEAM_ASSIGN(gain.ratio, fields.Number("ratio"));
  BOLTBEAM_ASSIGN(gain.low, fields.Number("ratio_low"));
  BOLTBEAM_ASSIGN(gain.high, fields.Number("ratio_high"));
  BOLTBEAM_ASSIGN(gain.ruling, fields.Text("ruling"));
  BOLTBEAM_ASSIGN(gain.verdict, fields.Text("verdict", false));
  return gain;
}

Result<std::vector<std::string>> ParseRoutes(const Fields& fields, std::string_view field) {
  BOLTBEAM_ASSIGN(std::vector<std::string> routes, fields.Texts(field));
  for (const std::string& route : routes) {
    if (engine::FindRoute(route) == nullptr)
      return fields.Broken(field, "names of routes, as `kernel list` shows them");
  }
  return routes;
}

Result<std::vector<PlanTable>> ParseTables(const json& object, const std::string& where) {
  const auto rows = object.find("tables");
  if (rows == object.end() || !rows->is_array() || rows->size() > kMostTables) {
    return Fields(object, where).Broken("tables", fmt::format("a list of at most {} tables", kMostTables));
  }
  std::vector<PlanTable> tables;
  std::set<std::string> names;
  for (const json& row : *rows) {
    BOLTBEAM_ASSIGN(PlanTable table, ParseTable(row, fmt::format("{}: tables[{}]", where, tables.size())));
    if (!names.insert(table.table).second) {
      return Fail(Code::kPlanFile, where + ": tables", base::Printable(table.table) + " twice", "each table once");
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace

std::vector<engine::GeometryChoice> PlanFile::Choices() const {
  std::vector<engine::GeometryChoice> choices;
  for (const PlanTable& table : tables) choices.push_back({table.table, table.knobs});
  return choices;
}

const PlanTable* PlanFile::Find(std::string_view table) const {
  const auto found = std::ranges::find(tables, table, &PlanTable::table);
  return found == tables.end() ? nullptr : &*found;
}

std::string ToJson(const PlanFile& plan) {
  nlohmann::ordered_json object;
  object["schema"] = kSchema;
  object["chip"] = plan.chip;
  object["chip_name"] = plan.chip_name;
  object["made_for"] = plan.made_for;
  object["baseline"] = plan.baseline;
  object["threads"] = plan.threads;
  object["date"] = plan.date;
  object["boltbeam_version"] = plan.boltbeam_version;
  object["llvm"] = plan.llvm;
  object["features"] = plan.features;
  object["tables"] = nlohmann::ordered_json::array();
  for (const PlanTable& table : plan.tables) {
    object["tables"].push_back({{"table", table.table}, {"knobs", table.knobs}, {"checked", table.checked}});
  }
  object["with"] = plan.with;
  object["without"] = plan.without;
  if (plan.gain) {
    object["gain"] = {{"ratio", plan.gain->ratio},
                      {"ratio_low", plan.gain->low},
                      {"ratio_high", plan.gain->high},
                      {"ruling", plan.gain->ruling},
                      {"verdict", plan.gain->verdict}};
  }
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<PlanFile> ParsePlan(std::string_view text, const std::string& where) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return Fail(Code::kPlanFile, where, "no JSON object", "a plan as a search writes it");
  const Fields fields(object, where);
  BOLTBEAM_ASSIGN(const std::string schema, fields.Text("schema"));
  if (schema != kSchema) return fields.Broken("schema", std::string(kSchema));
  PlanFile plan;
  BOLTBEAM_ASSIGN(plan.chip, fields.Text("chip"));
  BOLTBEAM_ASSIGN(plan.chip_name, fields.Text("chip_name", false));
  BOLTBEAM_ASSIGN(plan.made_for, fields.Text("made_for", false));
  BOLTBEAM_ASSIGN(plan.baseline, fields.Text("baseline", false));
  BOLTBEAM_ASSIGN(const double threads, fields.Number("threads"));
  if (threads < 0 || threads > 65536 || threads != std::floor(threads))
    return fields.Broken("threads", "a number of threads");
  plan.threads = static_cast<std::uint32_t>(threads);
  BOLTBEAM_ASSIGN(plan.date, fields.Text("date", false));
  BOLTBEAM_ASSIGN(plan.boltbeam_version, fields.Text("boltbeam_version", false));
  BOLTBEAM_ASSIGN(plan.llvm, fields.Text("llvm", false));
  BOLTBEAM_ASSIGN(plan.features, fields.Texts("features"));
  BOLTBEAM_ASSIGN(plan.tables, ParseTables(object, where));
  BOLTBEAM_ASSIGN(plan.with, ParseRoutes(fields, "with"));
  BOLTBEAM_ASSIGN(plan.without, ParseRoutes(fields, "without"));
  BOLTBEAM_ASSIGN(plan.gain, ParseGain(object, where));
  return plan;
}

Result<PlanFile> LoadPlanFile(const std::string& path) {
  BOLTBEAM_ASSIGN(const std::string text, base::ReadWholeFile(path));
  return ParsePlan(text, path);
}

}  // namespace boltbeam::search
