#include "judge/samples.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace boltbeam::judge {
namespace {

using nlohmann::json;

json RoundJson(const measure::PairedRound& round) {
  json windows = json::array(), causes = json::array(), outside = json::array();
  for (const measure::TimedWindow& window : round.windows) {
    windows.push_back(window.ns);
    causes.push_back(window.causes.to_ulong());
    outside.push_back(window.outside_ns);
  }
  json row = {{"order", round.b_first ? "BAAB" : "ABBA"}, {"ns", windows}, {"at_s", round.at_s}};
  if (round.AllCauses().any()) row["causes"] = causes;
  if (round.limit > 0) row["limit_gb_s"] = round.limit;
  if (std::ranges::any_of(round.windows, [](const auto& window) { return window.outside_ns > 0; })) {
    row["outside_ns"] = outside;
  }
  if (round.output_difference > 0) row["output_difference"] = round.output_difference;
  if (round.reused_output) row["reused_output"] = true;
  return row;
}

measure::PairedRound RoundFrom(const json& row) {
  measure::PairedRound round;
  round.b_first = row.at("order").get<std::string>() == "BAAB";
  round.at_s = row.at("at_s");
  round.limit = row.value("limit_gb_s", 0.0);
  const json causes = row.value("causes", json::array({0, 0, 0, 0}));
  const json outside = row.value("outside_ns", json::array({0, 0, 0, 0}));
  for (std::size_t i = 0; i < round.windows.size(); ++i) {
    round.windows[i] = {row.at("ns").at(i).get<double>(), measure::Causes(causes.at(i).get<unsigned long>()),
                        outside.at(i).get<double>()};
  }
  round.output_difference = row.value("output_difference", 0.0);
  round.reused_output = row.value("reused_output", false);
  return round;
}

json RulesJson(const measure::PairedRules& rules) {
  return {{"margin", rules.margin},
          {"equivalence", rules.equivalence},
          {"error_rate", rules.error_rate},
          {"power", rules.power},
          {"budget_s", rules.budget_s},
          {"looks", rules.looks},
          {"least_rounds", rules.least_rounds},
          {"patience", rules.patience},
          {"spoiled_share", rules.spoiled_share},
          {"seed", rules.seed},
          {"resamples", rules.resamples}};
}

measure::PairedRules RulesFrom(const json& row) {
  measure::PairedRules rules;
  rules.margin = row.at("margin");
  rules.equivalence = row.at("equivalence");
  rules.error_rate = row.at("error_rate");
  rules.power = row.at("power");
  rules.budget_s = row.at("budget_s");
  rules.looks = row.at("looks").get<std::vector<double>>();
  rules.least_rounds = row.at("least_rounds");
  rules.patience = row.value("patience", std::size_t{1});  // records without it counted all rounds
  rules.spoiled_share = row.at("spoiled_share");
  rules.seed = row.at("seed");
  rules.resamples = row.at("resamples");
  return rules;
}

json DepthJson(const DepthSamples& samples) {
  json rounds = json::array();
  for (const measure::PairedRound& round : samples.rounds) rounds.push_back(RoundJson(round));
  json row = {{"depth", samples.depth}, {"rules", RulesJson(samples.rules)}, {"rounds", rounds}};
  if (samples.sides_seen) {
    row["sides"] = {{"a_bytes", samples.a_bytes},
                    {"b_bytes", samples.b_bytes},
                    {"same_plan", samples.same_plan},
                    {"same_bits", samples.same_bits},
                    {"output_difference", samples.output_difference}};
  }
  return row;
}

// Older records have no "sides": of theirs only the times are derived again.
DepthSamples DepthFrom(const json& row) {
  DepthSamples samples;
  samples.depth = row.at("depth");
  samples.rules = RulesFrom(row.at("rules"));
  for (const json& round : row.at("rounds")) samples.rounds.push_back(RoundFrom(round));
  const auto sides = row.find("sides");
  if (sides == row.end()) return samples;
  samples.sides_seen = true;
  samples.a_bytes = sides->at("a_bytes");
  samples.b_bytes = sides->at("b_bytes");
  samples.same_plan = sides->value("same_plan", true);  // records without it took equal bits for one plan's
  samples.same_bits = sides->at("same_bits");
  samples.output_difference = sides->at("output_difference");
  return samples;
}

Condition ConditionFrom(const json& row) {
  const std::string state = row.at("state");
  return {row.at("name"),
          state == "pass"   ? State::kPass
          : state == "fail" ? State::kFail
                            : State::kUnknown,
          row.at("detail")};
}

Result<Rederived> RederiveFrom(const json& text) {
  const bool is_older = text.at("format") == kOlderSamplesFormat;
  if (!is_older && text.at("format") != kSamplesFormat) {
    return Fail(Code::kJson, "samples", text.at("format").dump(), std::string(kSamplesFormat));
  }
  BOLTBEAM_ASSIGN(const Thresholds thresholds, ParseThresholds(text.at("thresholds").dump()));
  Findings findings;
  findings.sides_seen = text.at("sides_seen");
  findings.route_available = text.at("route_available");
  for (const json& row : text.at("conditions")) findings.conditions.push_back(ConditionFrom(row));
  std::vector<DepthSamples> samples;
  for (const json& row : text.at("depths")) {
    samples.push_back(DepthFrom(row));
    BOLTBEAM_ASSIGN(measure::PairedResult paired, measure::ReplayPaired(samples.back().rounds, samples.back().rules));
    findings.depths.push_back({samples.back().depth, std::move(paired)});
  }
  AddWindowConditions(findings, samples, thresholds);
  // That form did not look at it, and promoted without it.
  if (is_older) findings.conditions.push_back({std::string(kTimedOutput), State::kPass, ""});
  Rederived result{Decide(findings, thresholds), std::move(findings.depths), {}, {}};
  if (is_older) std::erase_if(result.judgement.conditions, [](const auto& one) { return one.name == kTimedOutput; });
  for (const Condition& condition : result.judgement.conditions) {
    (FollowsFromWindows(condition.name, samples) ? result.derived : result.taken).push_back(condition.name);
  }
  return result;
}

}  // namespace

json ToJson(const Thresholds& t) {
  return {{"tier_a", t.tier_a},
          {"tier_b", t.tier_b},
          {"equivalence", t.equivalence},
          {"protected_regression", t.protected_regression},
          {"error_rate", t.error_rate},
          {"power", t.power},
          {"looks", t.looks},
          {"least_rounds", t.least_rounds},
          {"spoiled_share", t.spoiled_share},
          {"untimed_share", t.untimed_share},
          {"floor_band", t.floor_band},
          {"kl_growth", t.kl_growth},
          {"kl_least", t.kl_least}};
}

std::string SamplesText(const Run& run, const Thresholds& thresholds) {
  json text = {{"format", kSamplesFormat},
               {"thresholds", ToJson(thresholds)},
               {"sides_seen", run.findings.sides_seen},
               {"route_available", run.findings.route_available},
               {"conditions", json::array()},
               {"depths", json::array()}};
  for (const Condition& condition : run.findings.conditions) {
    if (FollowsFromWindows(condition.name, run.samples)) continue;  // the samples say it
    text["conditions"].push_back(
        {{"name", condition.name}, {"state", ledger::StateName(condition.state)}, {"detail", condition.detail}});
  }
  for (const DepthSamples& samples : run.samples) text["depths"].push_back(DepthJson(samples));
  return text.dump() + "\n";
}

Result<Rederived> Rederive(std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return Fail(Code::kJson, "samples", "not a JSON object", std::string(kSamplesFormat));
  try {
    return RederiveFrom(parsed);
  } catch (const json::exception& error) {
    return Fail(Code::kJson, "samples", error.what(), std::string(kSamplesFormat));
  }
}

}  // namespace boltbeam::judge
