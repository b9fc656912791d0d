// Reads the rows of formats with a coding, and the tables that they name.
#include <fmt/format.h>

#include <algorithm>

#include "formats/coding.h"
#include "formats/layout_check.h"

namespace boltbeam::formats {
namespace {

Result<GridTable> ParseTable(const Json& row, const std::string& where) {
  BOLTBEAM_TRY(CheckKeys(row, where, {"name", "elements", "entries", "values", "digits"}));
  GridTable table;
  BOLTBEAM_ASSIGN(table.elements, GetU32(row, where, "elements", 1, 64));
  BOLTBEAM_ASSIGN(const std::uint32_t entries, GetU32(row, where, "entries", 1, 65536));
  BOLTBEAM_ASSIGN(const Json* values, GetArray(row, where, "values"));
  BOLTBEAM_ASSIGN(const Json* lines, GetArray(row, where, "digits"));
  for (const Json& value : *values) {
    if (!value.is_number_integer() || value < -127 || value > 127) {
      return Fail(Code::kFormatRow, where, "a value that is not a small whole number", "-127 to 127");
    }
  }
  for (const Json& line : *lines) {
    if (!line.is_string()) return Fail(Code::kFormatRow, where, "digits that are not text", "lines of digits");
    for (const char digit : line.get_ref<const std::string&>()) {
      const auto index = static_cast<std::size_t>(digit - '0');
      if (digit < '0' || digit > '9' || index >= values->size()) {
        return Fail(Code::kFormatRow, where, fmt::format("digit '{}'", digit), "the place of a value");
      }
      table.numbers.push_back((*values)[index].get<std::int32_t>());
    }
  }
  if (table.numbers.size() != std::size_t{entries} * table.elements) {
    return Fail(Code::kFormatRow, where, fmt::format("{} digits", table.numbers.size()),
                fmt::format("{}", std::size_t{entries} * table.elements));
  }
  return table;
}

/// {elements, field}, or what else the row has beside them.
Result<GroupField> ParseGroup(const Json& json, const std::string& where, std::uint32_t elements) {
  GroupField group;
  group.elements = elements;
  if (!json.contains("field")) return Fail(Code::kFormatRow, where, "'field' is absent", "a field");
  BOLTBEAM_ASSIGN(group.field, ParseField(json["field"], where));
  return group;
}

Result<void> ParseGrid(const Json& json, const std::string& where, const GridTables& grids, Coding& coding) {
  BOLTBEAM_TRY(CheckKeys(json, where, {"table", "index", "multiplier"}));
  BOLTBEAM_ASSIGN(const std::string name, GetText(json, where, "table"));
  const auto table = grids.find(name);
  if (table == grids.end()) {
    return Fail(Code::kFormatRow, where, fmt::format("table '{}'", name), "a table of grids.json");
  }
  std::int64_t multiplier = 1;
  if (json.contains("multiplier")) {
    BOLTBEAM_ASSIGN(multiplier, GetNumber(json, where, "multiplier", 1, 64));
  }
  if (!json.contains("index")) return Fail(Code::kFormatRow, where, "'index' is absent", "a field");
  coding.index.emplace();
  coding.index->elements = table->second.elements;
  BOLTBEAM_ASSIGN(coding.index->field, ParseField(json["index"], where));
  const Field& index = coding.index->field;
  if (index.is_signed || index.bias != 0 ||
      (std::size_t{1} << index.bits) * table->second.elements != table->second.numbers.size()) {
    return Fail(Code::kFormatRow, where, fmt::format("an index of {} bits", index.bits), "one that fits the table");
  }
  for (const std::int32_t number : table->second.numbers) {
    coding.table.push_back(number * static_cast<std::int32_t>(multiplier));
  }
  return {};
}

Result<void> ParseSigns(const Json& json, const std::string& where, Coding& coding) {
  BOLTBEAM_TRY(CheckKeys(json, where, {"elements", "parity", "field"}));
  BOLTBEAM_ASSIGN(const std::uint32_t elements, GetU32(json, where, "elements", 1, 15));
  BOLTBEAM_ASSIGN(coding.signs, ParseGroup(json, where, elements));
  if (!json.contains("parity") || !json["parity"].is_boolean()) {
    return Fail(Code::kFormatRow, where, "'parity' is absent or not a truth value", "true or false");
  }
  coding.has_parity = json["parity"].get<bool>();
  if (coding.signs->field.bits + (coding.has_parity ? 1 : 0) != elements) {
    return Fail(Code::kFormatRow, where, fmt::format("{} bits of signs", coding.signs->field.bits),
                "one for each element, less one with parity");
  }
  return {};
}

Result<void> ParseShifts(const Json& json, const std::string& where, Coding& coding) {
  BOLTBEAM_TRY(CheckKeys(json, where, {"elements", "field"}));
  BOLTBEAM_ASSIGN(const std::uint32_t elements, GetU32(json, where, "elements", 1, 65536));
  BOLTBEAM_ASSIGN(coding.shifts, ParseGroup(json, where, elements));
  if (coding.shifts->field.bits == 1) return {};
  return Fail(Code::kFormatRow, where, fmt::format("{} bits of a shift", coding.shifts->field.bits), "1");
}

Result<void> ParseTrits(const Json& row, const std::string& where, Coding& coding) {
  BOLTBEAM_ASSIGN(const Json* runs, GetArray(row, where, "trits"));
  for (const Json& json : *runs) {
    BOLTBEAM_TRY(CheckKeys(json, where, {"bytes", "base_byte", "digits"}));
    TritRun run;
    BOLTBEAM_ASSIGN(run.bytes, GetU32(json, where, "bytes", 1, 65536));
    BOLTBEAM_ASSIGN(run.base_byte, GetU32(json, where, "base_byte", 0, 65536));
    BOLTBEAM_ASSIGN(run.digits, GetU32(json, where, "digits", 1, 5));
    coding.trits.push_back(run);
  }
  return {};
}

Result<void> ParseScales(const Json& json, const std::string& where, Coding& coding) {
  Json field = json;
  BOLTBEAM_ASSIGN(const std::int64_t step, GetNumber(json, where, "step", 1, 16));
  field.erase("step");
  BOLTBEAM_ASSIGN(coding.scales, ParseField(field, where));
  coding.step = static_cast<std::int32_t>(step);
  const std::int32_t highest = coding.step * ((1 << coding.scales->bits) - 1) - coding.scales->bias;
  if (coding.scales->is_signed || coding.scales->bits > 8 || coding.scales->bias > 0 || highest > 255) {
    return Fail(Code::kFormatRow, where, fmt::format("scales up to {}", highest), "0 to 255");
  }
  return {};
}

}  // namespace

Result<GridTables> ParseGrids(std::string_view grids_json) {
  const Json grids = Json::parse(grids_json, nullptr, false);
  if (grids.is_discarded()) return Fail(Code::kFormatRow, "grids.json", "not JSON", "a JSON object");
  BOLTBEAM_TRY(CheckKeys(grids, "grids.json", {"schema", "what", "source", "tables"}));
  BOLTBEAM_ASSIGN(const Json* rows, GetArray(grids, "grids.json", "tables"));
  GridTables tables;
  for (const Json& row : *rows) {
    BOLTBEAM_ASSIGN(const std::string name, GetText(row, "grids.json", "name"));
    BOLTBEAM_ASSIGN(GridTable table, ParseTable(row, fmt::format("grids.json '{}'", name)));
    tables[name] = std::move(table);
  }
  return tables;
}

Result<Coding> ParseCoding(const Json& row, const std::string& where, const Format& format, const GridTables& grids) {
  BOLTBEAM_TRY(CheckKeys(row, where,
                         {"name", "elements", "bytes", "elements_per_scale", "grid", "signs", "shifts", "trits",
                          "scales", "d", "factor"}));
  BOLTBEAM_ASSIGN(const std::uint32_t elements, GetU32(row, where, "elements", 1, 65536));
  BOLTBEAM_ASSIGN(const std::uint32_t bytes, GetU32(row, where, "bytes", 1, 65536));
  if (elements != format.elements || bytes != format.bytes) {
    return Fail(Code::kFormatRow, where, fmt::format("{} elements in {} bytes", elements, bytes),
                fmt::format("{} in {}, as in types.json", format.elements, format.bytes));
  }
  Coding coding;
  BOLTBEAM_ASSIGN(coding.elements_per_scale, GetU32(row, where, "elements_per_scale", 1, 65536));
  if (row.contains("grid") == row.contains("trits") || !row.contains("d")) {
    return Fail(Code::kFormatRow, where, "'grid' and 'trits', or neither, or no 'd'", "one of them, and 'd'");
  }
  if (row.contains("grid")) BOLTBEAM_TRY(ParseGrid(row["grid"], where + " grid", grids, coding));
  if (row.contains("trits")) BOLTBEAM_TRY(ParseTrits(row, where + " trits", coding));
  if (row.contains("signs")) BOLTBEAM_TRY(ParseSigns(row["signs"], where + " signs", coding));
  if (row.contains("shifts")) BOLTBEAM_TRY(ParseShifts(row["shifts"], where + " shifts", coding));
  if (row.contains("scales")) BOLTBEAM_TRY(ParseScales(row["scales"], where + " scales", coding));
  BOLTBEAM_ASSIGN(coding.d, ParseField(row["d"], where + " d"));
  BOLTBEAM_ASSIGN(coding.factor, GetFactor(row, where));
  BOLTBEAM_TRY(CheckCoding(coding, elements, bytes, where));
  return coding;
}

}  // namespace boltbeam::formats
