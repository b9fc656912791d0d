#include "lab/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/embedded.h"
#include "base/paths.h"
#include "base/printable.h"

namespace boltbeam::lab {
namespace {

using nlohmann::json;

constexpr std::string_view kFile = "prices/prices.json";
constexpr std::string_view kSchema = "boltbeam.prices.v1";
constexpr std::string_view kAnswerSchema = "boltbeam.price.v1";  // of `price -o json`, whose inputs are the same rows

std::unexpected<Error> Broken(const std::string& where, std::string_view what, std::string found,
                              std::string expected) {
  return Fail(Code::kLabRow, fmt::format("{}: {}", where, what), std::move(found), std::move(expected));
}

std::string TextIn(const json& object, const char* field) {
  return object.contains(field) && object.at(field).is_string() ? object.at(field).get<std::string>() : "";
}

Result<PriceInput> ParseInput(const json& row, const std::string& where) {
  PriceInput input;
  if (row.is_object()) input.name = TextIn(row, "name");
  if (input.name.empty()) return Broken(where, "inputs", base::Printable(row.dump()), "objects with a name");
  if (!row.contains("value") || !row.at("value").is_number() || !std::isfinite(row.at("value").get<double>())) {
    return Broken(where, input.name, row.contains("value") ? base::Printable(row.at("value").dump()) : "no value",
                  "a number");
  }
  input.value = row.at("value").get<double>();
  for (const auto& [field, out] : {std::pair("unit", &input.unit), std::pair("source", &input.source),
                                   std::pair("date", &input.date), std::pair("what", &input.what)}) {
    *out = TextIn(row, field);
  }
  if (input.source.empty() || input.date.empty()) {
    return Broken(where, input.name, "no source or no date", "where the figure is from, and of when");
  }
  return input;
}

Result<PriceExample> ParseExample(const json& row, const std::string& where) {
  PriceExample example;
  if (!row.is_object()) return Broken(where, "examples", base::Printable(row.dump()), "objects");
  example.what = TextIn(row, "what");
  example.formula = TextIn(row, "formula");
  const bool is_whole = row.contains("arguments") && row.at("arguments").is_array() && row.contains("printed") &&
                        row.at("printed").is_number() && row.contains("places") &&
                        row.at("places").is_number_unsigned();
  if (!is_whole) return Broken(where, "examples", example.what, "formula, arguments, printed and places");
  for (const json& argument : row.at("arguments")) {
    if (!argument.is_number()) return Broken(where, "examples", base::Printable(argument.dump()), "numbers");
    example.arguments.push_back(argument.get<double>());
  }
  example.printed = row.at("printed").get<double>();
  example.places = row.at("places").get<int>();
  return example;
}

/// Values of `over` take the place of those of the same name.
Result<void> Override(PriceList& list, const PriceList& over, const std::string& where) {
  for (const PriceInput& input : over.inputs) {
    const auto found = std::ranges::find(list.inputs, input.name, &PriceInput::name);
    if (found == list.inputs.end()) {
      std::string known;
      for (const PriceInput& one : list.inputs) known += (known.empty() ? "" : ", ") + one.name;
      return Broken(where, base::Printable(input.name), "not an input", "one of " + known);
    }
    const std::string unit = input.unit.empty() ? found->unit : input.unit;
    *found = input;
    found->unit = unit;
  }
  return {};
}

Result<void> OverrideFromFile(PriceList& list, const std::string& file) {
  BOLTBEAM_ASSIGN(const std::string text, base::ReadWholeFile(file));
  BOLTBEAM_ASSIGN(const PriceList over, ParsePrices(text, file));
  return Override(list, over, file);
}

}  // namespace

const PriceInput* PriceList::Find(std::string_view name) const {
  const auto found = std::ranges::find(inputs, name, &PriceInput::name);
  return found == inputs.end() ? nullptr : &*found;
}

double PriceList::Get(std::string_view name) const {
  const PriceInput* input = Find(name);
  return input != nullptr ? input->value : std::nan("");
}

void PriceList::Set(std::string_view name, double value) {
  const auto found = std::ranges::find(inputs, name, &PriceInput::name);
  if (found == inputs.end()) return;
  *found = {found->name, value, found->unit, "the command line", "now", found->what};
}

Result<PriceList> ParsePrices(std::string_view text, const std::string& where) {
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded() || !document.is_object())
    return Broken(where, "file", "no JSON object", std::string(kSchema));
  const std::string schema = TextIn(document, "schema");
  if (schema != kSchema && schema != kAnswerSchema) {
    return Broken(where, "schema", base::Printable(TextIn(document, "schema")), std::string(kSchema));
  }
  PriceList list;
  if (!document.contains("inputs") || !document.at("inputs").is_array()) {
    return Broken(where, "inputs", "missing", "a list of inputs");
  }
  for (const json& row : document.at("inputs")) {
    BOLTBEAM_ASSIGN(PriceInput input, ParseInput(row, where));
    list.inputs.push_back(std::move(input));
  }
  if (document.contains("examples") && document.at("examples").is_array()) {
    for (const json& row : document.at("examples")) {
      BOLTBEAM_ASSIGN(PriceExample example, ParseExample(row, where));
      list.examples.push_back(std::move(example));
    }
  }
  return list;
}

Result<PriceList> LoadPrices(const std::string& config_folder, const std::string& file) {
  const auto text = base::Embedded(kFile);
  if (!text) return Fail(Code::kInternal, std::string(kFile), "not embedded", "a registry of the build");
  BOLTBEAM_ASSIGN(PriceList list, ParsePrices(*text, std::string(kFile)));
  const std::filesystem::path own = std::filesystem::path(config_folder) / "prices.json";
  std::error_code error;
  if (!config_folder.empty() && std::filesystem::exists(own, error)) {
    BOLTBEAM_TRY(OverrideFromFile(list, own.string()));
  }
  if (!file.empty()) BOLTBEAM_TRY(OverrideFromFile(list, file));
  return list;
}

}  // namespace boltbeam::lab
