#include "model/architecture.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/embedded.h"

namespace boltbeam::model {
namespace {

using nlohmann::json;

constexpr std::string_view kRegistry = "models/architectures.json";

Result<TensorRule> ParseRule(const json& row) {
  TensorRule rule;
  rule.name = row.at("name").get<std::string>();
  const std::string role = row.at("role").get<std::string>();
  const std::optional<Role> parsed = FindRole(role);
  if (!parsed) return Fail(Code::kJson, std::string(kRegistry), "role " + role, "a role that the program knows");
  rule.role = *parsed;
  rule.shape = row.at("shape").get<std::vector<std::string>>();
  rule.optional = row.value("optional", false);
  return rule;
}

Result<Architecture> ParseFlags(const json& row) {
  Architecture architecture;
  architecture.name = row.at("name").get<std::string>();
  const std::string rope = row.at("rope").get<std::string>();
  const std::string activation = row.at("activation").get<std::string>();
  if (rope != "norm" && rope != "neox")
    return Fail(Code::kJson, std::string(kRegistry), "rope " + rope, "norm or neox");
  if (activation != "silu" && activation != "gelu") {
    return Fail(Code::kJson, std::string(kRegistry), "activation " + activation, "silu or gelu");
  }
  architecture.rope = rope == "neox" ? RopeKind::kNeox : RopeKind::kNorm;
  architecture.activation = activation == "gelu" ? Activation::kGelu : Activation::kSilu;
  architecture.qk_norm = row.value("qk_norm", false);
  architecture.post_norms = row.value("post_norms", false);
  architecture.scale_embedding = row.value("scale_embedding", false);
  architecture.runnable = row.at("runnable").get<bool>();
  architecture.not_runnable_reason = row.value("not_runnable_reason", "");
  return architecture;
}

Result<ArchitectureRow> ParseRow(const json& row, const json& sets) {
  ArchitectureRow result;
  BOLTBEAM_ASSIGN(result.architecture, ParseFlags(row));
  for (const json& set : row.at("tensors")) {
    for (const json& tensor : sets.at(set.get<std::string>())) {
      BOLTBEAM_ASSIGN(TensorRule rule, ParseRule(tensor));
      if (rule.role == Role::kAttnQBias) result.architecture.qkv_bias = true;
      result.tensors.push_back(std::move(rule));
    }
  }
  result.required = row.at("required").get<std::vector<std::string>>();
  result.refused_keys = row.value("refused_keys", std::vector<std::string>());
  result.defaults = row.value("defaults", std::map<std::string, double>());
  result.sliding_window = row.value("sliding_window", false);
  result.scale_by_hidden_at = row.value("scale_by_hidden_at_layers", std::vector<std::uint32_t>());
  return result;
}

Result<ArchitectureRegistry> ParseDocument(const json& document) {
  ArchitectureRegistry registry;
  for (const auto& [key, range] : document.at("ranges").items()) {
    registry.ranges[key] = {range.at(0).get<std::uint64_t>(), range.at(1).get<std::uint64_t>()};
  }
  registry.rope_scaling = document.at("rope_scaling").get<std::vector<std::string>>();
  for (const json& row : document.at("refused_tensors")) {
    registry.refused_tensors.push_back({row.at("part").get<std::string>(), row.at("reason").get<std::string>()});
  }
  for (const json& row : document.at("architectures")) {
    BOLTBEAM_ASSIGN(ArchitectureRow parsed, ParseRow(row, document.at("tensor_sets")));
    registry.rows.push_back(std::move(parsed));
  }
  return registry;
}

}  // namespace

bool ArchitectureRow::Requires(std::string_view key) const {
  return std::ranges::find(required, key) != required.end();
}

Result<const ArchitectureRow*> ArchitectureRegistry::Find(std::string_view name) const {
  std::string known;
  for (const ArchitectureRow& row : rows) {
    if (row.architecture.name == name) return &row;
    known += (known.empty() ? "" : ", ") + row.architecture.name;
  }
  return Fail(Code::kModelArchitecture, "general.architecture", std::string(name), "one of " + known);
}

Result<ArchitectureRegistry> ParseArchitectures(std::string_view text) {
  try {
    return ParseDocument(json::parse(text));
  } catch (const json::exception& error) {
    return Fail(Code::kJson, std::string(kRegistry), error.what(), "the layout of boltbeam.architectures.v1");
  }
}

Result<ArchitectureRegistry> LoadArchitectures() {
  BOLTBEAM_ASSIGN(const std::string_view text, base::Embedded(kRegistry));
  return ParseArchitectures(text);
}

std::uint64_t DimensionOf(std::string_view symbol, const HyperParameters& hyper) {
  if (symbol == "hidden") return hyper.hidden;
  if (symbol == "ffn") return hyper.ffn;
  if (symbol == "vocab") return hyper.vocab;
  if (symbol == "head_dim") return hyper.head_dim;
  if (symbol == "q") return std::uint64_t{hyper.heads} * hyper.head_dim;
  if (symbol == "kv") return std::uint64_t{hyper.kv_heads} * hyper.head_dim;
  if (symbol == "rope_pairs") return hyper.rope_dims / 2;
  return 0;
}

}  // namespace boltbeam::model
