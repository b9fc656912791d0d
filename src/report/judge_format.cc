#include "report/judge_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "judge/record.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using Json = nlohmann::ordered_json;

// JSON knows no infinity.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json IntervalJson(const measure::Interval& interval) {
  return {{"estimate", Number(interval.estimate)}, {"low", Number(interval.low)}, {"high", Number(interval.high)}};
}

Json DepthJson(const judge::DepthFinding& finding) {
  const measure::PairedResult& paired = finding.paired;
  Json json;
  json["depth"] = finding.depth;
  json["outcome"] = measure::OutcomeName(paired.outcome);
  json["ratio"] = Number(paired.ratio.estimate);
  json["ratio_low"] = Number(paired.ratio.low);
  json["ratio_high"] = Number(paired.ratio.high);
  json["median"] = IntervalJson(paired.median);
  json["control"] = IntervalJson(paired.control);
  json["margin"] = Number(paired.margin);
  json["smallest_difference"] = Number(paired.smallest);
  json["equivalent"] = paired.equivalent;
  json["a_token_ns"] = Number(paired.a_ns);
  json["b_token_ns"] = Number(paired.b_ns);
  json["a_tok_s"] = Number(1e9 / paired.a_ns);
  json["b_tok_s"] = Number(1e9 / paired.b_ns);
  json["rounds"] = paired.rounds;
  json["rounds_used"] = paired.used;
  json["spoiled_windows"] = paired.spoiled;
  json["looks"] = paired.looks;
  json["tail"] = Number(paired.tail);
  json["spent_s"] = Number(paired.spent_s);
  json["limit_gb_s"] = Number(paired.limit);
  json["stable"] = paired.stable;
  return json;
}

std::string Change(double ratio) { return std::isfinite(ratio) ? fmt::format("{:+.2f}", (ratio - 1) * 100) : "-"; }

std::string Rate(double ns) { return ns > 0 ? Decimal(1e9 / ns, 2) : "-"; }

Table DepthTable(const judge::Run& run) {
  Table table({{"depth", "depth"},
               {"A tok/s", "a_tok_s"},
               {"B tok/s", "b_tok_s"},
               {"B's time", "ratio"},
               {"low", "low"},
               {"high", "high"},
               {"rounds", "rounds"},
               {"outcome", "outcome", Align::kLeft}});
  for (const judge::DepthFinding& finding : run.findings.depths) {
    const measure::PairedResult& paired = finding.paired;
    table.Add({std::to_string(finding.depth), Rate(paired.a_ns), Rate(paired.b_ns), Change(paired.ratio.estimate),
               Change(paired.ratio.low), Change(paired.ratio.high), fmt::format("{}/{}", paired.used, paired.rounds),
               std::string(measure::OutcomeName(paired.outcome))});
  }
  return table;
}

Table ConditionTable(const judge::Judgement& judgement) {
  Table table({{"condition", "name", Align::kLeft}, {"state", "state", Align::kLeft}, {"", "detail", Align::kLeft}});
  for (const judge::Condition& condition : judgement.conditions) {
    table.Add(
        {condition.name, std::string(ledger::StateName(condition.state)), base::Printable(condition.detail, 1000)});
  }
  return table;
}

std::string Heading(const JudgeSubject& subject) {
  std::string text = subject.model.empty() ? "" : base::Printable(subject.model, 200) + "\n";
  for (const auto& [name, side] : {std::pair("A: ", subject.a), std::pair("B: ", subject.b)}) {
    text += name + Wrap(base::Printable(side, 1000), 3, 80, 3) + "\n";
  }
  return text;
}

std::string Conclusion(const judge::Judgement& judgement) {
  return Wrap(
      fmt::format("Verdict: {}. {}.", ledger::RulingName(judgement.ruling), base::Printable(judgement.reason, 1000)));
}

std::string Method(const judge::Run& run, const JudgeSubject& subject) {
  if (run.samples.empty()) return "Nothing was timed.";
  if (std::ranges::all_of(run.findings.depths, [](const auto& finding) { return finding.paired.used < 2; })) {
    return "Too few rounds were left to say anything.";
  }
  const measure::PairedRules& rules = run.samples.front().rules;
  double smallest = 0, margin = 0;
  bool nothing_shown = true;
  for (const judge::DepthFinding& finding : run.findings.depths) {
    smallest = std::max(smallest, finding.paired.smallest);
    margin = std::max(margin, finding.paired.margin);
    nothing_shown = nothing_shown && finding.paired.outcome == measure::Outcome::kNoDifference;
  }
  const std::string shown = nothing_shown && std::isfinite(smallest)
                                ? fmt::format("; one of {} would have been shown", Percent(smallest))
                                : "";
  return Wrap(fmt::format(
      "B's time against A's in %, with an interval that is false in at most {} of sessions, over all depths and looks. "
      "{}{:.0f} s, seed {}.",
      Percent(rules.error_rate * static_cast<double>(run.samples.size()), 0),
      std::isfinite(margin) ? fmt::format("A difference within {} is not claimed{}. ", Percent(margin), shown) : "",
      run.seconds, subject.seed));
}

}  // namespace

std::string JudgeJson(const JudgeSubject& subject, const judge::Run& run, const judge::Judgement& judgement) {
  Json json;
  json["schema"] = "boltbeam.judge.v1";
  json["verdict"] = ledger::RulingName(judgement.ruling);
  if (run.findings.depths.empty()) {
    json["outcome"] = nullptr;
  } else {
    json["outcome"] = measure::OutcomeName(judgement.outcome);
  }
  json["ratio"] = Number(judgement.ratio.estimate);
  json["ratio_low"] = Number(judgement.ratio.low);
  json["ratio_high"] = Number(judgement.ratio.high);
  json["smallest_difference"] = Number(judgement.smallest);
  json["tier"] = judgement.tier;
  json["refused"] = judgement.refused;
  json["reason"] = judgement.reason;
  json["conditions"] = Json::array();
  for (const judge::Condition& condition : judgement.conditions) {
    json["conditions"].push_back(
        {{"name", condition.name}, {"state", ledger::StateName(condition.state)}, {"detail", condition.detail}});
  }
  json["model"] = subject.model;
  json["a"] = subject.a;
  json["b"] = subject.b;
  json["machine"] = subject.machine;
  json["seed"] = subject.seed;
  json["depths"] = Json::array();
  for (const judge::DepthFinding& finding : run.findings.depths) json["depths"].push_back(DepthJson(finding));
  json["disturbances"] = run.disturbances;
  json["environment"] = judge::EnvironmentJson(run.environment);
  json["seconds"] = run.seconds;
  json["record"] = subject.ledger.empty() ? Json(nullptr) : Json(subject.ledger);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string JudgeText(const JudgeSubject& subject, const judge::Run& run, const judge::Judgement& judgement) {
  std::string text = Heading(subject) + "\n";
  if (!run.findings.depths.empty()) text += DepthTable(run).Text() + "\n";
  text += ConditionTable(judgement).WrappedText() + "\n" + Conclusion(judgement) + "\n" + Method(run, subject) + "\n";
  if (!subject.ledger.empty()) text += fmt::format("Record {}.\n", subject.ledger.substr(0, 16));
  return text;
}

std::string JudgeMarkdown(const JudgeSubject& subject, const judge::Run& run, const judge::Judgement& judgement) {
  std::string text = Heading(subject) + "\n";
  if (!run.findings.depths.empty()) text += DepthTable(run).Markdown() + "\n";
  return text + ConditionTable(judgement).Markdown() + "\n" + Conclusion(judgement) + "\n\n" + Method(run, subject) +
         "\n";
}

}  // namespace boltbeam::report
