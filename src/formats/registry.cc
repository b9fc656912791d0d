// Reads and checks the registry of weight formats: data/formats/types.json and rows.json.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/embedded.h"
#include "formats/format.h"
#include "formats/layout_check.h"
#include "formats/scale_word.h"

namespace boltbeam::formats {
namespace {

using Json = nlohmann::json;

/// A row with a field that nothing reads is a typing mistake that would pass in silence.
Result<void> CheckKeys(const Json& object, const std::string& where, std::initializer_list<std::string_view> allowed) {
  if (!object.is_object()) return Fail(Code::kFormatRow, where, "not an object", "an object");
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(allowed, key) == allowed.end()) {
      return Fail(Code::kFormatRow, where, fmt::format("unknown field '{}'", key), "only the documented fields");
    }
  }
  return {};
}

Result<std::int64_t> GetNumber(const Json& object, const std::string& where, const char* key, std::int64_t lowest,
                               std::int64_t highest) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) {
    return Fail(Code::kFormatRow, where, fmt::format("'{}' is absent or not a whole number", key), "a whole number");
  }
  const auto value = found->get<std::int64_t>();
  if (value < lowest || value > highest) {
    return Fail(Code::kFormatRow, where, fmt::format("'{}' is {}", key, value),
                fmt::format("{} to {}", lowest, highest));
  }
  return value;
}

Result<std::uint32_t> GetU32(const Json& object, const std::string& where, const char* key, std::uint32_t lowest,
                             std::uint32_t highest) {
  BOLTBEAM_ASSIGN(const std::int64_t value, GetNumber(object, where, key, lowest, highest));
  return static_cast<std::uint32_t>(value);
}

Result<std::string> GetText(const Json& object, const std::string& where, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string() || found->get_ref<const std::string&>().empty()) {
    return Fail(Code::kFormatRow, where, fmt::format("'{}' is absent or not text", key), "text");
  }
  return found->get<std::string>();
}

Result<const Json*> GetArray(const Json& object, const std::string& where, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) {
    return Fail(Code::kFormatRow, where, fmt::format("'{}' is absent or not a list", key), "a list");
  }
  return &*found;
}

Result<Encoding> ParseEncoding(const Json& object, const std::string& where) {
  BOLTBEAM_ASSIGN(const std::string name, GetText(object, where, "encoding"));
  if (name == "f32") return Encoding::kF32;
  if (name == "f16") return Encoding::kF16;
  if (name == "bf16") return Encoding::kBf16;
  if (name == "e8m0_half") return Encoding::kE8m0Half;
  return Fail(Code::kFormatRow, where, fmt::format("encoding '{}'", name), "f32, f16, bf16 or e8m0_half");
}

Result<Piece> ParsePiece(const Json& json, const std::string& where) {
  BOLTBEAM_TRY(CheckKeys(json, where, {"width", "shift", "base_bit", "digits"}));
  Piece piece;
  BOLTBEAM_ASSIGN(piece.width, GetU32(json, where, "width", 1, 8));
  BOLTBEAM_ASSIGN(piece.shift, GetU32(json, where, "shift", 0, 15));
  BOLTBEAM_ASSIGN(piece.base_bit, GetU32(json, where, "base_bit", 0, 1U << 20));
  BOLTBEAM_ASSIGN(const Json* digits, GetArray(json, where, "digits"));
  for (const Json& digit : *digits) {
    if (!digit.is_array() || digit.size() != 2 || !digit[0].is_number_unsigned() || !digit[1].is_number_unsigned() ||
        digit[0] < 1 || digit[0] > 65536 || digit[1] > 65536) {
      return Fail(Code::kFormatRow, where, "a digit that is not [radix, stride]", "two numbers, each up to 65536");
    }
    piece.digits.emplace_back(digit[0].get<std::uint32_t>(), digit[1].get<std::uint32_t>());
  }
  return piece;
}

Result<Field> ParseField(const Json& json, const std::string& where) {
  BOLTBEAM_TRY(CheckKeys(json, where, {"bits", "signed", "bias", "pieces"}));
  Field field;
  BOLTBEAM_ASSIGN(field.bits, GetU32(json, where, "bits", 1, 16));
  const auto is_signed = json.find("signed");
  if (is_signed == json.end() || !is_signed->is_boolean()) {
    return Fail(Code::kFormatRow, where, "'signed' is absent or not a truth value", "true or false");
  }
  field.is_signed = is_signed->get<bool>();
  BOLTBEAM_ASSIGN(const std::int64_t bias, GetNumber(json, where, "bias", -65536, 65536));
  field.bias = static_cast<std::int32_t>(bias);
  BOLTBEAM_ASSIGN(const Json* pieces, GetArray(json, where, "pieces"));
  for (const Json& piece : *pieces) {
    BOLTBEAM_ASSIGN(Piece parsed, ParsePiece(piece, where));
    field.pieces.push_back(std::move(parsed));
  }
  return field;
}

Result<ScaleWord> ParseScaleWord(const Json& json, const std::string& where, bool with_sign) {
  BOLTBEAM_TRY(with_sign ? CheckKeys(json, where, {"base_bit", "encoding", "sign"})
                         : CheckKeys(json, where, {"base_bit", "encoding"}));
  ScaleWord word;
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
  BOLTBEAM_TRY(CheckKeys(
      row, "rows.json",
      {"name", "elements", "bytes", "elements_per_scale", "codes", "scales", "minimums", "d", "m", "codebook"}));
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

Result<Registry> ParseRegistryOrThrow(std::string_view types_json, std::string_view rows_json) {
  const Json types = Json::parse(types_json, nullptr, false);
  const Json rows = Json::parse(rows_json, nullptr, false);
  if (types.is_discarded() || rows.is_discarded()) {
    return Fail(Code::kFormatRow, types.is_discarded() ? "types.json" : "rows.json", "not JSON", "a JSON object");
  }
  Registry registry;
  BOLTBEAM_TRY(ParseTypes(types, registry));
  BOLTBEAM_TRY(CheckKeys(rows, "rows.json", {"schema", "what", "source", "formats"}));
  BOLTBEAM_ASSIGN(const Json* list, GetArray(rows, "rows.json", "formats"));
  for (const Json& row : *list) BOLTBEAM_TRY(ParseRow(row, registry));
  return registry;
}

/// The embedded registry, read once. A registry that is wrong is a bug of the build, which formats_test finds; a
/// program that has one knows no format and refuses every file.
const Registry& Builtin() {
  static const Registry kRegistry = [] {
    const auto types = base::Embedded("formats/types.json");
    const auto rows = base::Embedded("formats/rows.json");
    if (!types || !rows) return Registry{};
    return ParseRegistry(*types, *rows).value_or(Registry{});
  }();
  return kRegistry;
}

}  // namespace

Result<Registry> ParseRegistry(std::string_view types_json, std::string_view rows_json) {
  try {
    return ParseRegistryOrThrow(types_json, rows_json);
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
