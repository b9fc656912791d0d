#include "judge/thresholds.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/embedded.h"

namespace boltbeam::judge {
namespace {

constexpr std::string_view kPath = "judge/thresholds.json";

Error Wrong(std::string_view field, std::string expected) {
  return {Code::kJson, std::string(kPath), fmt::format("no fit value of \"{}\"", field), std::move(expected)};
}

// A share between 0 and 1, neither of them.
Result<double> ShareOf(const nlohmann::json& json, const char* field) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_number()) return std::unexpected(Wrong(field, "a number"));
  const double value = found->get<double>();
  if (!(value > 0 && value < 1)) return std::unexpected(Wrong(field, "a number between 0 and 1"));
  return value;
}

Result<std::vector<double>> LooksOf(const nlohmann::json& json) {
  std::vector<double> looks;
  if (const auto found = json.find("looks"); found != json.end() && found->is_array()) {
    for (const nlohmann::json& look : *found) looks.push_back(look.is_number() ? look.get<double>() : 0);
  }
  const bool in_order = std::ranges::is_sorted(looks, std::ranges::less_equal{});
  if (looks.empty() || looks.front() <= 0 || looks.back() != 1 || !in_order) {
    return std::unexpected(Wrong("looks", "shares of the budget in order, the last one 1"));
  }
  return looks;
}

}  // namespace

measure::PairedRules Thresholds::Rules(std::size_t depths, double budget_s, std::uint64_t seed) const {
  measure::PairedRules rules;
  rules.margin = equivalence;
  rules.equivalence = equivalence;
  rules.error_rate = error_rate / static_cast<double>(std::max<std::size_t>(1, depths));
  rules.power = power;
  rules.budget_s = budget_s;
  rules.looks = looks;
  rules.least_rounds = least_rounds;
  rules.spoiled_share = spoiled_share;
  rules.seed = seed;
  return rules;
}

Result<Thresholds> ParseThresholds(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return Fail(Code::kJson, std::string(kPath), "not a JSON object", "an object of thresholds");
  Thresholds t;
  const std::pair<const char*, double*> shares[] = {{"tier_a", &t.tier_a},
                                                    {"tier_b", &t.tier_b},
                                                    {"equivalence", &t.equivalence},
                                                    {"protected_regression", &t.protected_regression},
                                                    {"error_rate", &t.error_rate},
                                                    {"power", &t.power},
                                                    {"spoiled_share", &t.spoiled_share},
                                                    {"untimed_share", &t.untimed_share},
                                                    {"floor_band", &t.floor_band},
                                                    {"kl_growth", &t.kl_growth},
                                                    {"kl_least", &t.kl_least}};
  for (const auto& [field, place] : shares) {
    BOLTBEAM_ASSIGN(*place, ShareOf(json, field));
  }
  BOLTBEAM_ASSIGN(t.looks, LooksOf(json));
  const auto rounds = json.find("least_rounds");
  if (rounds == json.end() || !rounds->is_number_unsigned() || *rounds == 0) {
    return std::unexpected(Wrong("least_rounds", "a whole number above 0"));
  }
  t.least_rounds = rounds->get<std::size_t>();
  return t;
}

Result<Thresholds> LoadThresholds() {
  BOLTBEAM_ASSIGN(const std::string_view text, base::Embedded(kPath));
  return ParseThresholds(text);
}

}  // namespace boltbeam::judge
