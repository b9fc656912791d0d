#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "chip/facts.h"

namespace boltbeam::chip {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kSchema = "boltbeam.chip.v1";

std::optional<Provenance> ParseProvenance(std::string_view name) {
  for (const Provenance provenance : {Provenance::kMeasured, Provenance::kVendor, Provenance::kDerived,
                                      Provenance::kDetected, Provenance::kUnknown}) {
    if (ProvenanceName(provenance) == name) return provenance;
  }
  return std::nullopt;
}

std::string_view UseName(Use use) { return use == Use::kBandwidth ? "bandwidth" : "peak"; }

Result<Fact> ParseFact(const json& row, const std::string& where, const std::string& source) {
  Fact fact;
  fact.name = row.at("name").get<std::string>();
  const std::string place = where + ": fact " + fact.name;
  const std::string provenance = row.at("provenance").get<std::string>();
  const std::optional<Provenance> parsed = ParseProvenance(provenance);
  if (!parsed) {
    return Fail(Code::kChipRow, place, "provenance " + provenance, "measured, vendor, derived, detected or unknown");
  }
  fact.provenance = *parsed;
  const json& value = row.at("value");
  if (value.is_null() != (fact.provenance == Provenance::kUnknown)) {
    return Fail(Code::kChipRow, place, "value " + value.dump() + ", " + provenance,
                "null for an unknown fact and only for that");
  }
  if (!value.is_null()) fact.value = value.get<double>();
  if (!std::isfinite(fact.value) || fact.value < 0) {
    return Fail(Code::kChipRow, place, value.dump(), "a finite number that is not negative");
  }
  fact.unit = row.value("unit", "");
  fact.method = row.value("method", "");
  fact.date = row.value("date", "");
  fact.spread = row.value("spread", 0.0);
  fact.source = row.value("source", source);
  const std::string use = row.value("use", "");
  if (use == UseName(Use::kBandwidth)) fact.use = Use::kBandwidth;
  if (use == UseName(Use::kPeak)) fact.use = Use::kPeak;
  if ((!use.empty() && fact.use == Use::kNone) || (fact.use != Use::kNone && fact.value <= 0)) {
    return Fail(Code::kChipRow, place, "use " + use, "bandwidth or peak, of a value above 0");
  }
  return fact;
}

Result<Chip> ParseChip(const json& row, const std::string& where) {
  if (row.value("schema", "") != kSchema) {
    return Fail(Code::kChipRow, where, "schema " + row.value("schema", "(none)"), std::string(kSchema));
  }
  Chip chip;
  chip.id = row.at("id").get<std::string>();
  chip.name = row.value("name", chip.id);
  chip.backend = row.value("backend", "");
  chip.note = row.value("note", "");
  chip.features = row.value("features", std::vector<std::string>());
  if (chip.id.empty()) return Fail(Code::kChipRow, where, "an empty id", "a name such as my-chip");
  const std::string source = row.value("source", "");
  for (const json& fact : row.at("facts")) {
    BOLTBEAM_ASSIGN(Fact parsed, ParseFact(fact, where, source));
    chip.facts.push_back(std::move(parsed));
  }
  return chip;
}

ordered_json FactToJson(const Fact& fact) {
  ordered_json row;
  row["name"] = fact.name;
  if (fact.provenance == Provenance::kUnknown) {
    row["value"] = nullptr;
  } else {
    row["value"] = fact.value;
  }
  row["unit"] = fact.unit;
  row["provenance"] = ProvenanceName(fact.provenance);
  row["method"] = fact.method;
  row["date"] = fact.date;
  row["spread"] = fact.spread;
  if (!fact.source.empty()) row["source"] = fact.source;
  if (fact.use != Use::kNone) row["use"] = UseName(fact.use);
  return row;
}

}  // namespace

std::string ChipToJson(const Chip& chip) {
  ordered_json row;
  row["schema"] = kSchema;
  row["id"] = chip.id;
  row["name"] = chip.name;
  row["backend"] = chip.backend;
  if (!chip.note.empty()) row["note"] = chip.note;
  row["features"] = chip.features;
  row["facts"] = ordered_json::array();
  for (const Fact& fact : chip.facts) row["facts"].push_back(FactToJson(fact));
  // Names that the system or a user's file gives need not be UTF-8.
  return row.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<Chip> ChipFromJson(std::string_view text, const std::string& where) {
  try {
    return ParseChip(json::parse(text), where);
  } catch (const json::exception& error) {
    // The library's own name and number of the error mean nothing to who wrote the file.
    const std::string_view what = error.what();
    const std::size_t end = what.find("] ");
    return Fail(Code::kJson, where, std::string(end == std::string_view::npos ? what : what.substr(end + 2)),
                "the layout of " + std::string(kSchema));
  }
}

}  // namespace boltbeam::chip
