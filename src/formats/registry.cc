// Reads and checks the registry of weight formats: data/formats/types.json and rows.json.
#include <fmt/format.h>

#include <algorithm>

#include "base/embedded.h"
#include "formats/coding.h"
#include "formats/layout_check.h"
#include "formats/row_json.h"
#include "formats/scale_word.h"

namespace boltbeam::formats {
namespace {

Result<ScaleWord> ParseScaleWord(const Json& json, const std::string& where, bool with_sign) {
  BOLTBEAM_TRY(with_sign ? CheckKeys(json, where, {"base_bit", "encoding", "sign"})
                         : CheckKeys(json, where, {"base_bit", "encoding", "factor"}));
  ScaleWord word;
  BOLTBEAM_ASSIGN(word.factor, GetFactor(json, where));
  BOLTBEAM_ASSIGN(word.base_bit, GetU32(json, where, "base_bit", 0, 1U << 20));
  BOLTBEAM_ASSIGN(word.encoding, ParseEncoding(json, where));
  if (with_sign) {
    BOLTBEAM_ASSIGN(const std::int64_t sign, GetNumber(json, where, "sign", -1, 1));
    if (sign == 0) return Fail(Code::kFormatRow, where, "'sign' is 0", "-1 or 1");
    word.sign = static_cast<std::int32_t>(sign);
  }
  return word;
}

Result<std::vector<std::int32_t>> ParseCodebook(const Json& row, const std::string& where) {
  BOLTBEAM_ASSIGN(const Json* values, GetArray(row, where, "codebook"));
  std::vector<std::int32_t> codebook;
  for (const Json& value : *values) {
    if (!value.is_number_integer() || value < -65536 || value > 65536) {
      return Fail(Code::kFormatRow, where, "a codebook value that is not a small whole number", "-65536 to 65536");
    }
    codebook.push_back(value.get<std::int32_t>());
  }
  return codebook;
}

bool Present(const Json& row, const char* key) { return row.contains(key) && !row[key].is_null(); }

Result<Layout> ParseLayout(const Json& row, const std::string& where) {
  Layout layout;
  BOLTBEAM_ASSIGN(layout.elements_per_scale, GetU32(row, where, "elements_per_scale", 1, 65536));
  if (!row.contains("codes") || !row.contains("d")) {
    return Fail(Code::kFormatRow, where, "'codes' or 'd' is absent", "both");
  }
  BOLTBEAM_ASSIGN(layout.codes, ParseField(row["codes"], where + " codes"));
  if (Present(row, "scales")) {
    BOLTBEAM_ASSIGN(layout.scales, ParseField(row["scales"], where + " scales"));
  }
  if (Present(row, "minimums")) {
    BOLTBEAM_ASSIGN(layout.minimums, ParseField(row["minimums"], where + " minimums"));
  }
  BOLTBEAM_ASSIGN(layout.d, ParseScaleWord(row["d"], where + " d", false));
  if (Present(row, "m")) {
    BOLTBEAM_ASSIGN(layout.m, ParseScaleWord(row["m"], where + " m", true));
  }
  BOLTBEAM_ASSIGN(layout.codebook, ParseCodebook(row, where));
  if (row.contains("unused_bits")) {
    BOLTBEAM_ASSIGN(layout.unused_bits, GetU32(row, where, "unused_bits", 0, 64));
  }
  return layout;
}

Result<Format> ParseType(const Json& row, std::size_t index) {
  const std::string where = fmt::format("types.json row {}", index);
  BOLTBEAM_TRY(CheckKeys(row, where, {"name", "type", "elements", "bytes", "encoding", "source", "note"}));
  Format format;
  BOLTBEAM_ASSIGN(format.name, GetText(row, where, "name"));
  BOLTBEAM_TRY(GetText(row, where, "source"));
  BOLTBEAM_ASSIGN(format.type, GetU32(row, where, "type", 0, 65535));
  BOLTBEAM_ASSIGN(format.elements, GetU32(row, where, "elements", 1, 65536));
  BOLTBEAM_ASSIGN(format.bytes, GetU32(row, where, "bytes", 1, 65536));
  if (!row.contains("encoding")) return format;
  Layout layout;
  layout.elements_per_scale = 1;
  BOLTBEAM_ASSIGN(layout.encoding, ParseEncoding(row, where));
  if (format.elements != 1 || format.bytes * 8 != EncodingBits(*layout.encoding)) {
    return Fail(Code::kFormatRow, where, "the size is not that of the encoding", "one element of the encoding's size");
  }
  format.layout = std::move(layout);
  return format;
}

Result<void> ParseTypes(const Json& types, Registry& registry) {
  BOLTBEAM_TRY(CheckKeys(types, "types.json", {"schema", "what", "source", "removed_types", "types"}));
  BOLTBEAM_ASSIGN(const Json* removed, GetArray(types, "types.json", "removed_types"));
  for (const Json& number : *removed) {
    if (!number.is_number_unsigned() || number > 65535) {
      return Fail(Code::kFormatRow, "types.json removed_types", "not a type number", "0 to 65535");
    }
    registry.removed_types.push_back(number.get<std::uint32_t>());
  }
  BOLTBEAM_ASSIGN(const Json* rows, GetArray(types, "types.json", "types"));
  for (const Json& row : *rows) {
    BOLTBEAM_ASSIGN(Format format, ParseType(row, registry.formats.size()));
    for (const Format& other : registry.formats) {
      if (other.name == format.name || other.type == format.type) {
        return Fail(Code::kFormatRow, fmt::format("types.json '{}'", format.name),
                    fmt::format("name or number of '{}' again", other.name), "each once");
      }
    }
    if (std::ranges::find(registry.removed_types, format.type) != registry.removed_types.end()) {
      return Fail(Code::kFormatRow, fmt::format("types.json '{}'", format.name), "a number that is listed as removed",
                  "one or the other");
    }
    registry.formats.push_back(std::move(format));
  }
  return {};
}

Result<void> ParseRow(const Json& row, Registry& registry) {
  BOLTBEAM_TRY(CheckKeys(row, "rows.json",
                         {"name", "elements", "bytes", "elements_per_scale", "codes", "scales", "minimums", "d", "m",
                          "codebook", "unused_bits"}));
  BOLTBEAM_ASSIGN(const std::string name, GetText(row, "rows.json", "name"));
  const std::string where = fmt::format("rows.json '{}'", name);
  const auto format = std::ranges::find(registry.formats, name, &Format::name);
  if (format == registry.formats.end()) return Fail(Code::kFormatRow, where, "no such type", "a name of types.json");
  if (format->layout) return Fail(Code::kFormatRow, where, "a second layout of this type", "one row for a type");
  BOLTBEAM_ASSIGN(const std::uint32_t elements, GetU32(row, where, "elements", 1, 65536));
  BOLTBEAM_ASSIGN(const std::uint32_t bytes, GetU32(row, where, "bytes", 1, 65536));
  if (elements != format->elements || bytes != format->bytes) {
    return Fail(Code::kFormatRow, where, fmt::format("{} elements in {} bytes", elements, bytes),
                fmt::format("{} in {}, as in types.json", format->elements, format->bytes));
  }
  BOLTBEAM_ASSIGN(Layout layout, ParseLayout(row, where));
  BOLTBEAM_TRY(CheckLayout(layout, elements, bytes, where));
  format->layout = std::move(layout);
  return {};
}

/// A row of the numbers that are no bits of their own.
Result<void> ParseCodedRow(const Json& row, const GridTables& grids, Registry& registry) {
  BOLTBEAM_ASSIGN(const std::string name, GetText(row, "rows.json", "name"));
  const std::string where = fmt::format("rows.json '{}'", name);
  const auto format = std::ranges::find(registry.formats, name, &Format::name);
  if (format == registry.formats.end()) return Fail(Code::kFormatRow, where, "no such type", "a name of types.json");
  if (format->IsKnown()) return Fail(Code::kFormatRow, where, "a second layout of this type", "one row for a type");
  BOLTBEAM_ASSIGN(Coding coding, ParseCoding(row, where, *format, grids));
  BOLTBEAM_ASSIGN(Format plain, PlainOf(*format, coding, where));
  BOLTBEAM_TRY(CheckLayout(*plain.layout, plain.elements, plain.bytes, where));
  format->coding = std::make_shared<const Coding>(std::move(coding));
  format->plain = std::make_shared<const Format>(std::move(plain));
  return {};
}

Result<Registry> ParseRegistryOrThrow(std::string_view types_json, std::string_view rows_json,
                                      std::string_view grids_json) {
  const Json types = Json::parse(types_json, nullptr, false);
  const Json rows = Json::parse(rows_json, nullptr, false);
  if (types.is_discarded() || rows.is_discarded()) {
    return Fail(Code::kFormatRow, types.is_discarded() ? "types.json" : "rows.json", "not JSON", "a JSON object");
  }
  Registry registry;
  BOLTBEAM_TRY(ParseTypes(types, registry));
  BOLTBEAM_TRY(CheckKeys(rows, "rows.json", {"schema", "what", "source", "formats", "coded"}));
  BOLTBEAM_ASSIGN(const Json* list, GetArray(rows, "rows.json", "formats"));
  for (const Json& row : *list) BOLTBEAM_TRY(ParseRow(row, registry));
  if (!rows.contains("coded")) return registry;
  BOLTBEAM_ASSIGN(const GridTables grids, ParseGrids(grids_json));
  BOLTBEAM_ASSIGN(list, GetArray(rows, "rows.json", "coded"));
  for (const Json& row : *list) BOLTBEAM_TRY(ParseCodedRow(row, grids, registry));
  return registry;
}

/// The embedded registry, read once. A registry that is wrong is a bug of the build, which formats_test finds; a
/// program that has one knows no format and refuses every file.
const Registry& Builtin() {
  static const Registry kRegistry = [] {
    const auto types = base::Embedded("formats/types.json");
    const auto rows = base::Embedded("formats/rows.json");
    const auto grids = base::Embedded("formats/grids.json");
    if (!types || !rows || !grids) return Registry{};
    return ParseRegistry(*types, *rows, *grids).value_or(Registry{});
  }();
  return kRegistry;
}

}  // namespace

Result<Registry> ParseRegistry(std::string_view types_json, std::string_view rows_json, std::string_view grids_json) {
  try {
    return ParseRegistryOrThrow(types_json, rows_json, grids_json);
  } catch (const std::exception& error) {  // out of memory; the JSON library's own exceptions are checked for above
    return Fail(Code::kFormatRow, "format registry", error.what(), "a registry that can be read");
  }
}

std::span<const Format> AllFormats() { return Builtin().formats; }

const Format* FindType(std::uint32_t ggml_type) {
  const auto found = std::ranges::find(Builtin().formats, ggml_type, &Format::type);
  return found == Builtin().formats.end() ? nullptr : &*found;
}

const Format* FindFormat(std::string_view name) {
  const auto found = std::ranges::find(Builtin().formats, name, &Format::name);
  return found == Builtin().formats.end() ? nullptr : &*found;
}

bool IsRemovedType(std::uint32_t ggml_type) {
  return std::ranges::find(Builtin().removed_types, ggml_type) != Builtin().removed_types.end();
}

}  // namespace boltbeam::formats
