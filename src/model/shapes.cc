#include "model/shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/embedded.h"
#include "model/architecture.h"

namespace boltbeam::model {
namespace {

using nlohmann::json;

constexpr std::string_view kShapes = "models/shapes.json";
constexpr std::string_view kMixtures = "formats/mixtures.json";

Result<Role> RoleNamed(std::string_view registry, const std::string& name) {
  const std::optional<Role> role = FindRole(name);
  if (!role) return Fail(Code::kJson, std::string(registry), "role " + name, "a role that the program knows");
  return *role;
}

Result<const formats::Format*> FormatNamed(const std::string& name) {
  const formats::Format* format = formats::FindFormat(name);
  if (format == nullptr) return Fail(Code::kJson, std::string(kMixtures), "format " + name, "a weight format");
  return format;
}

Shape ParseShape(const json& row) {
  Shape shape;
  shape.name = row.at("name").get<std::string>();
  shape.title = row.at("title").get<std::string>();
  shape.architecture = row.at("architecture").get<std::string>();
  shape.tied = row.at("tied").get<bool>();
  shape.pre = row.at("pre").get<std::string>();
  HyperParameters& hyper = shape.hyper;
  hyper.layers = row.at("layers").get<std::uint32_t>();
  hyper.hidden = row.at("hidden").get<std::uint32_t>();
  hyper.ffn = row.at("ffn").get<std::uint32_t>();
  hyper.heads = row.at("heads").get<std::uint32_t>();
  hyper.kv_heads = row.at("kv_heads").get<std::uint32_t>();
  hyper.head_dim = row.at("head_dim").get<std::uint32_t>();
  hyper.vocab = row.at("vocab").get<std::uint32_t>();
  hyper.context = row.at("context").get<std::uint32_t>();
  hyper.rope_dims = hyper.head_dim;
  hyper.rope_base = row.at("rope_base").get<double>();
  hyper.local_rope_base = row.value("local_rope_base", hyper.rope_base);
  hyper.sliding_window = row.value("sliding_window", 0U);
  hyper.sliding_window_pattern = row.value("sliding_window_pattern", 0U);
  hyper.rms_epsilon = row.at("rms_epsilon").get<double>();
  return shape;
}

Result<ShapeRegistry> ParseShapes(const json& document) {
  ShapeRegistry registry;
  for (const json& row : document.at("models")) registry.shapes.push_back(ParseShape(row));
  for (const auto& [name, rule] : document.at("weights").items()) {
    BOLTBEAM_ASSIGN(const Role role, RoleNamed(kShapes, name));
    registry.weights[role] = {rule.value("gain", 0.0), rule.value("mean", 0.0), rule.value("spread", 0.0)};
  }
  return registry;
}

Result<MixtureRule> ParseRule(const json& row) {
  MixtureRule rule;
  BOLTBEAM_ASSIGN(rule.format, FormatNamed(row.at("format").get<std::string>()));
  for (const json& name : row.at("roles")) {
    BOLTBEAM_ASSIGN(const Role role, RoleNamed(kMixtures, name.get<std::string>()));
    rule.roles.push_back(role);
  }
  rule.min_heads_per_kv = row.value("min_heads_per_kv", 0U);
  const std::string layers = row.at("layers").get<std::string>();
  if (layers == "all") {
    rule.layers = MixtureRule::Layers::kAll;
  } else if (layers == "sensitive") {
    rule.layers = MixtureRule::Layers::kSensitive;
  } else if (layers == "first_eighth") {
    rule.layers = MixtureRule::Layers::kFirstEighth;
  } else {
    return Fail(Code::kJson, std::string(kMixtures), "layers " + layers, "all, sensitive or first_eighth");
  }
  return rule;
}

Result<Mixture> ParseMixture(const json& row) {
  Mixture mixture;
  mixture.name = row.at("name").get<std::string>();
  mixture.file_type = row.at("file_type").get<std::uint32_t>();
  BOLTBEAM_ASSIGN(mixture.format, FormatNamed(row.at("format").get<std::string>()));
  BOLTBEAM_ASSIGN(mixture.head, FormatNamed(row.value("head", mixture.format->name)));
  for (const json& rule : row.value("rules", json::array())) {
    BOLTBEAM_ASSIGN(MixtureRule parsed, ParseRule(rule));
    mixture.rules.push_back(std::move(parsed));
  }
  return mixture;
}

Result<MixtureRegistry> ParseMixtures(const json& document) {
  MixtureRegistry registry;
  BOLTBEAM_ASSIGN(registry.vectors, FormatNamed(document.at("vectors").get<std::string>()));
  for (const json& row : document.at("mixtures")) {
    BOLTBEAM_ASSIGN(Mixture mixture, ParseMixture(row));
    registry.mixtures.push_back(std::move(mixture));
  }
  for (const auto& [from, to] : document.at("fallback").items()) {
    BOLTBEAM_ASSIGN(const formats::Format* key, FormatNamed(from));
    BOLTBEAM_ASSIGN(registry.fallback[key], FormatNamed(to.get<std::string>()));
  }
  return registry;
}

// Parses one embedded registry; what is wrong with its text is an error that names it.
template <typename Parse>
auto Load(std::string_view path, Parse parse) -> decltype(parse(json())) {
  BOLTBEAM_ASSIGN(const std::string_view text, base::Embedded(path));
  try {
    return parse(json::parse(text));
  } catch (const json::exception& error) {
    return Fail(Code::kJson, std::string(path), error.what());
  }
}

template <typename Row>
std::string Names(const std::vector<Row>& rows) {
  std::vector<std::string_view> names;
  for (const Row& row : rows) names.emplace_back(row.name);
  return fmt::format("one of {}", fmt::join(names, ", "));
}

// The layers whose errors would be felt most: the first and last eighths, and every third between them.
bool IsSensitiveLayer(std::uint32_t layer, std::uint32_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

bool Fits(const MixtureRule& rule, Role role, std::uint32_t layer, const HyperParameters& hyper) {
  if (std::ranges::find(rule.roles, role) == rule.roles.end()) return false;
  if (hyper.heads < rule.min_heads_per_kv * hyper.kv_heads) return false;
  switch (rule.layers) {
    case MixtureRule::Layers::kSensitive:
      return IsSensitiveLayer(layer, hyper.layers);
    case MixtureRule::Layers::kFirstEighth:
      return layer < hyper.layers / 8;
    case MixtureRule::Layers::kAll:
      break;
  }
  return true;
}

}  // namespace

Result<const Shape*> ShapeRegistry::Find(std::string_view name) const {
  const auto found = std::ranges::find(shapes, name, &Shape::name);
  if (found == shapes.end()) return Fail(Code::kSynthName, "synth", fmt::format("model '{}'", name), Names(shapes));
  return &*found;
}

Result<const Mixture*> MixtureRegistry::Find(std::string_view name) const {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto found = std::ranges::find(mixtures, upper, &Mixture::name);
  if (found == mixtures.end()) return Fail(Code::kSynthType, "synth", fmt::format("type '{}'", name), Names(mixtures));
  return &*found;
}

const Mixture* MixtureRegistry::FindFileType(std::uint64_t file_type) const {
  const auto found = std::ranges::find(mixtures, file_type, &Mixture::file_type);
  return found == mixtures.end() ? nullptr : &*found;
}

const formats::Format* MixtureRegistry::Choose(const Mixture& mixture, Role role, bool is_head, std::uint32_t layer,
                                               const HyperParameters& hyper, std::uint64_t columns) const {
  const formats::Format* format = mixture.format;
  if (is_head) {
    format = mixture.head;
  } else {
    const auto rule =
        std::ranges::find_if(mixture.rules, [&](const MixtureRule& r) { return Fits(r, role, layer, hyper); });
    if (rule != mixture.rules.end()) format = rule->format;
  }
  if (columns % format->elements == 0) return format;
  const auto other = fallback.find(format);
  return other == fallback.end() ? format : other->second;
}

Result<ShapeRegistry> LoadShapes() { return Load(kShapes, ParseShapes); }

Result<MixtureRegistry> LoadMixtures() { return Load(kMixtures, ParseMixtures); }

}  // namespace boltbeam::model
