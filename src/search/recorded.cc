#include "search/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/embedded.h"
#include "formats/format.h"

namespace boltbeam::search {
namespace {

using nlohmann::json;

constexpr std::string_view kSchema = "boltbeam.recorded_routes.v1";
constexpr std::string_view kFile = "routes/recorded.json";

Result<void> Refuse(const std::string& where, const std::string& found, const std::string& expected) {
  return Fail(Code::kJson, where, found, expected);
}

/// A rule may only speak of what can be read off an operation or declared of a chip.
Result<void> CheckRule(const json& rule, const std::string& where) {
  static const std::set<std::string> kKnown = {"shapes", "rows_multiple", "cols_multiple", "cols_least", "facts"};
  for (const auto& [key, value] : rule.items()) {
    if (kKnown.contains(key)) continue;
    const bool is_model = key.contains("model") || key.contains("architecture");
    return Refuse(where, fmt::format("a rule about '{}'", key),
                  is_model ? "shapes, formats and facts: a rule never asks which model it is"
                           : "shapes, rows_multiple, cols_multiple, cols_least or facts");
  }
  return {};
}

/// Fields of a row; others, such as one that names a model, are refused.
Result<void> CheckFields(const json& row, const std::string& where) {
  static const std::set<std::string> kKnown = {"name",  "workload",        "status", "reason",  "chip",  "when",
                                               "knobs", "recorded_family", "family", "why_not", "fuses", "formats",
                                               "roles"};
  for (const auto& [key, value] : row.items()) {
    if (!kKnown.contains(key)) return Refuse(where, fmt::format("a field '{}'", key), "a field of the schema");
  }
  return {};
}

Result<void> CheckNames(const RecordedRoute& route, const std::string& where) {
  static const std::set<std::string> kRoles = {"attn_qo", "attn_kv",   "ffn_gate_up", "ffn_down", "lm_head", "norm",
                                               "gate",    "attention", "moe_expert",  "ssm",      "prompt",  "token"};
  static const std::set<std::string> kStatuses = {"promoted", "refuted",    "candidate",
                                                  "deferred", "diagnostic", "search-space-incomplete"};
  for (const std::string& role : route.roles) {
    if (!kRoles.contains(role)) return Refuse(where, "a role '" + role + "'", "a part of the token");
  }
  for (const std::string& format : route.formats) {
    if (format != "any" && formats::FindFormat(format) == nullptr) {
      return Refuse(where, "a format '" + format + "'", "a format of data/formats, or any");
    }
  }
  if (!kStatuses.contains(route.status)) return Refuse(where, "a status '" + route.status + "'", "a recorded status");
  if (route.family.empty() == route.why_not.empty()) {
    return Refuse(where, "a family and a reason why not, or neither", "one of them");
  }
  if (!route.family.empty() && !Contains(FamilyNames(), route.family)) {
    return Refuse(where, "a family '" + route.family + "'", "a family of this program");
  }
  return {};
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('|', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Result<RecordedRoute> ParseRoute(const json& row, const std::string& file) {
  RecordedRoute route;
  route.name = row.at("name").get<std::string>();
  const std::string where = file + ": " + route.name;
  BOLTBEAM_TRY(CheckFields(row, where));
  route.workload = row.at("workload").get<std::string>();
  route.status = row.at("status").get<std::string>();
  route.reason = row.at("reason").get<std::string>();
  route.recorded_family = row.at("recorded_family").get<std::string>();
  route.chip = row.value("chip", "");
  route.family = row.value("family", "");
  route.why_not = row.value("why_not", "");
  route.formats = row.at("formats").get<std::vector<std::string>>();
  route.roles = row.at("roles").get<std::vector<std::string>>();
  route.fuses = row.value("fuses", std::vector<std::string>());
  const json rule = row.value("when", json::object());
  BOLTBEAM_TRY(CheckRule(rule, where));
  route.when = {rule.value("shapes", std::vector<std::string>()), rule.value("rows_multiple", std::uint64_t{0}),
                rule.value("cols_multiple", std::uint64_t{0}), rule.value("cols_least", std::uint64_t{0}),
                rule.value("facts", std::vector<std::string>())};
  const json conditions = row.value("knobs", json::object());
  for (const auto& [knob, values] : conditions.items()) {
    route.knobs.emplace_back(knob, Split(values.get<std::string>()));
  }
  BOLTBEAM_TRY(CheckNames(route, where));
  return route;
}

bool Matches(const RecordedRoute& route, const KnobSpace& space, const KnobPoint& point) {
  if (route.knobs.empty()) return false;
  return std::ranges::all_of(route.knobs, [&](const auto& condition) {
    const auto knob = std::ranges::find(space.knobs, condition.first, &SpaceKnob::name);
    if (knob == space.knobs.end()) return false;
    const std::int64_t value = point.values[static_cast<std::size_t>(knob - space.knobs.begin())];
    return Contains(condition.second, knob->ValueText(value));
  });
}

bool HasShape(const std::vector<Part>& parts, const std::string& shape) {
  return std::ranges::any_of(parts, [&](const Part& part) { return part.ShapeText() == shape; });
}

std::string Applies(const RecordedRoute& route, const std::vector<Part>& parts, const chip::Chip& chip) {
  if (route.family.empty()) return "not here";
  for (const std::string& fact : route.when.facts) {
    if (!chip.Get(fact)) return "missing-fact:" + fact;
  }
  if (!route.IsRefuted()) return "proposed";
  if (route.chip != chip.id) return "another chip";
  const bool covers = route.family == "fusion"
                          ? std::ranges::all_of(route.when.shapes, [&](const auto& s) { return HasShape(parts, s); })
                          : std::ranges::any_of(parts, [&](const Part& part) { return route.Covers(part); });
  return covers ? "inherited" : "other shapes";
}

}  // namespace

bool RecordedRoute::Covers(const Part& part) const {
  const auto has_role = [&](const std::string& role) { return ("+" + part.role + "+").contains("+" + role + "+"); };
  const bool format = Contains(formats, "any") || Contains(formats, part.format->name);
  return format && std::ranges::any_of(roles, has_role) &&
         (when.shapes.empty() || Contains(when.shapes, part.ShapeText())) &&
         (when.rows_multiple == 0 || part.rows % when.rows_multiple == 0) &&
         (when.cols_multiple == 0 || part.cols % when.cols_multiple == 0) && part.cols >= when.cols_least;
}

Result<std::vector<RecordedRoute>> ReadRecordedRoutes(std::string_view text, const std::string& where) {
  try {
    const json registry = json::parse(text);
    if (registry.value("schema", "") != kSchema) {
      return Fail(Code::kJson, where, "schema " + registry.value("schema", "none"), std::string(kSchema));
    }
    std::vector<RecordedRoute> routes;
    for (const json& row : registry.at("routes")) {
      BOLTBEAM_ASSIGN(RecordedRoute route, ParseRoute(row, where));
      routes.push_back(std::move(route));
    }
    return routes;
  } catch (const json::exception& error) {
    return Fail(Code::kJson, where, error.what(), "rows of " + std::string(kSchema));
  }
}

Result<std::vector<RecordedRoute>> LoadRecordedRoutes() {
  BOLTBEAM_ASSIGN(const std::string_view text, base::Embedded(kFile));
  return ReadRecordedRoutes(text, std::string(kFile));
}

const std::vector<std::string>& FamilyNames() {
  static const std::vector<std::string> kNames = {"product", "attention", "gpu-product", "flash-tile", "fusion"};
  return kNames;
}

std::uint64_t DropRefuted(KnobSpace& space, const Part& part, const std::string& chip,
                          const std::vector<RecordedRoute>& routes) {
  return std::erase_if(space.points, [&](const KnobPoint& point) {
    return std::ranges::any_of(routes, [&](const RecordedRoute& route) {
      return route.IsRefuted() && route.chip == chip && route.Covers(part) && Matches(route, space, point);
    });
  });
}

void CloseRefuted(std::vector<FusionIdea>& ideas, const std::vector<Part>& parts, const std::string& chip,
                  const std::vector<RecordedRoute>& routes) {
  for (const RecordedRoute& route : routes) {
    if (!route.IsRefuted() || route.chip != chip || route.family != "fusion") continue;
    if (!std::ranges::all_of(route.when.shapes, [&](const auto& shape) { return HasShape(parts, shape); })) continue;
    for (FusionIdea& idea : ideas) {
      if (idea.steps == route.fuses) idea.closed = fmt::format("refuted ({}): {}", route.name, route.reason);
    }
  }
}

std::vector<RecordedNote> NotesOn(const std::vector<RecordedRoute>& routes, const std::vector<Part>& parts,
                                  const chip::Chip& chip) {
  std::vector<RecordedNote> notes;
  for (const RecordedRoute& route : routes) {
    const std::string reason = route.why_not.empty() ? route.reason : route.why_not;
    notes.push_back({route.name, route.family, route.status, Applies(route, parts, chip), reason});
  }
  return notes;
}

}  // namespace boltbeam::search
