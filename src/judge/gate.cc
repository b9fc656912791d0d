#include "judge/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace boltbeam::judge {
namespace {

using measure::Outcome;

constexpr std::array kOrder = {kRoute,  kOutput,       kFreshOutput, kDeterministic, kTimedOutput,
                               kMemory, kOffSwitch,    kTimedWork,   kAboveFloor,    kQuiet,
                               kSpeed,  kNoRegression, kRepeated};
// To promote, these must have passed; nothing else may have failed.
constexpr std::array kNeeded = {kRoute,     kOutput,     kFreshOutput, kTimedOutput, kMemory,
                                kTimedWork, kAboveFloor, kQuiet,       kRepeated};

std::string Percent(double share) { return fmt::format("{:+.2f} %", share * 100); }

Condition Quiet(const std::vector<DepthFinding>& depths) {
  Condition condition{std::string(kQuiet), depths.empty() ? State::kUnknown : State::kPass, ""};
  for (const DepthFinding& finding : depths) {
    const measure::PairedResult& paired = finding.paired;
    if (paired.stable) continue;
    condition.state = State::kFail;
    // Of a silent control the windows remain as the reason.
    const bool control_speaks = paired.control.low > 1 || paired.control.high < 1;
    condition.detail = control_speaks && paired.used > 0
                           ? fmt::format("depth {}: A differs from A by {} to {}", finding.depth,
                                         Percent(paired.control.low - 1), Percent(paired.control.high - 1))
                           : fmt::format("depth {}: {:.0f} % of the windows spoiled, {} of {} rounds", finding.depth,
                                         paired.spoiled_share * 100, paired.rounds - paired.used, paired.rounds);
  }
  return condition;
}

// Each depth's interval holds with its share of the error rate, so that the means of their ends hold together.
measure::Interval MeanRatio(const std::vector<DepthFinding>& depths) {
  constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
  if (depths.empty()) return {kNotANumber, kNotANumber, kNotANumber};
  measure::Interval sum;
  for (const DepthFinding& finding : depths) {
    sum.estimate += std::log(finding.paired.ratio.estimate);
    sum.low += std::log(finding.paired.ratio.low);
    sum.high += std::log(finding.paired.ratio.high);
  }
  const double count = static_cast<double>(depths.size());
  return {std::exp(sum.estimate / count), std::exp(sum.low / count), std::exp(sum.high / count)};
}

Outcome OverallOutcome(const std::vector<DepthFinding>& depths) {
  const auto any = [&](Outcome outcome) {
    return std::ranges::any_of(depths, [&](const auto& finding) { return finding.paired.outcome == outcome; });
  };
  if (any(Outcome::kSlower)) return Outcome::kSlower;
  return any(Outcome::kFaster) ? Outcome::kFaster : Outcome::kNoDifference;
}

Condition Speed(const Judgement& judgement) {
  Condition condition{std::string(kSpeed), State::kUnknown, "nothing was measured"};
  if (std::isnan(judgement.ratio.estimate)) return condition;
  condition.state = judgement.outcome == Outcome::kFaster   ? State::kPass
                    : judgement.outcome == Outcome::kSlower ? State::kFail
                                                            : State::kUnknown;
  condition.detail = fmt::format("token time {} ({} to {})", Percent(judgement.ratio.estimate - 1),
                                 Percent(judgement.ratio.low - 1), Percent(judgement.ratio.high - 1));
  return condition;
}

// A depth passes when a regression beyond the protected bound is excluded.
Condition NoRegression(const std::vector<DepthFinding>& depths, double bound) {
  Condition condition{std::string(kNoRegression), depths.empty() ? State::kUnknown : State::kPass, ""};
  for (const DepthFinding& finding : depths) {
    const measure::Interval& ratio = finding.paired.ratio;
    // The outcome heeds the session's own control: an interval above the bound does not, where the control is wide.
    if (finding.paired.outcome == Outcome::kSlower) {
      condition = {std::string(kNoRegression), State::kFail,
                   fmt::format("depth {}: {}", finding.depth, Percent(ratio.estimate - 1))};
      break;
    }
    if (!(ratio.high <= 1 + bound) && condition.state == State::kPass) {
      condition.state = State::kUnknown;
      condition.detail = std::isfinite(ratio.high)
                             ? fmt::format("depth {}: {} is not excluded", finding.depth, Percent(ratio.high - 1))
                             : fmt::format("depth {}: no round that nothing spoiled", finding.depth);
    }
  }
  return condition;
}

std::string FirstIn(const std::vector<Condition>& conditions, State state, const auto& names) {
  for (const std::string_view name : names) {
    if (StateOf(conditions, name) == state) return std::string(name);
  }
  return {};
}

void Rule(Judgement& judgement, Ruling ruling, std::string reason) {
  judgement.ruling = ruling;
  judgement.reason = std::move(reason);
}

// What the conditions say when the output, the instrument and the routes are in order.
void RuleOnSpeed(Judgement& judgement, const Thresholds& thresholds, bool all_equivalent) {
  if (judgement.outcome == Outcome::kNoDifference) {
    return all_equivalent
               ? Rule(judgement, Ruling::kDiagnostic,
                      fmt::format("no difference: within {:.0f} % at every depth", thresholds.equivalence * 100))
               : Rule(judgement, Ruling::kInconclusive,
                      fmt::format("no difference shown; {:.1f} % would have been", judgement.smallest * 100));
  }
  const double gain = 1 / judgement.ratio.estimate - 1;
  judgement.tier = gain >= thresholds.tier_a ? "A" : gain >= thresholds.tier_b ? "B" : "";
  if (judgement.tier.empty()) {
    return Rule(judgement, Ruling::kDiagnostic,
                fmt::format("faster by {:.1f} %, less than {:.0f} %", gain * 100, thresholds.tier_b * 100));
  }
  if (StateOf(judgement.conditions, kOffSwitch) != State::kPass) {
    return Rule(judgement, Ruling::kDefer, "faster, but no switch turns it off");
  }
  std::string missing = FirstIn(judgement.conditions, State::kUnknown, kNeeded);
  if (missing.empty()) missing = FirstIn(judgement.conditions, State::kFail, kOrder);
  if (missing.empty() && StateOf(judgement.conditions, kNoRegression) == State::kUnknown) missing = kNoRegression;
  if (!missing.empty())
    return Rule(judgement, Ruling::kCandidate, fmt::format("faster, but {} has not passed", missing));
  Rule(judgement, Ruling::kPromote, fmt::format("faster by {:.1f} %, tier {}", gain * 100, judgement.tier));
}

void RuleInOrder(Judgement& judgement, const Findings& findings, const Thresholds& thresholds) {
  const auto is = [&](std::string_view name, State state) { return StateOf(judgement.conditions, name) == state; };
  const auto detail = [&](std::string_view name) {
    const auto found = std::ranges::find(judgement.conditions, name, &Condition::name);
    return fmt::format("{}: {}", name, found->detail);
  };
  if (!findings.route_available) return Rule(judgement, Ruling::kSearchSpaceIncomplete, detail(kRoute));
  for (const std::string_view fatal : {kRoute, kOutput, kFreshOutput, kDeterministic, kTimedOutput, kMemory}) {
    if (is(fatal, State::kFail)) return Rule(judgement, Ruling::kRefute, detail(fatal));
  }
  for (const std::string_view fault : {kTimedWork, kAboveFloor, kQuiet}) {
    if (!is(fault, State::kFail)) continue;
    judgement.refused = true;
    return Rule(judgement, Ruling::kInconclusive, detail(fault));
  }
  if (!findings.sides_seen) {
    return Rule(judgement, Ruling::kAdapterIncomplete,
                "a program: its route and off-switch can't be seen, only its speed");
  }
  const auto memory = std::ranges::find(findings.conditions, kMemory, &Condition::name);
  if (findings.depths.empty() && memory != findings.conditions.end() && memory->state == State::kUnknown) {
    return Rule(judgement, Ruling::kInconclusive, detail(kMemory));
  }
  if (is(kOutput, State::kUnknown) || is(kRoute, State::kUnknown) || findings.depths.empty()) {
    const std::string_view unknown = is(kOutput, State::kUnknown)  ? kOutput
                                     : is(kRoute, State::kUnknown) ? kRoute
                                                                   : kSpeed;
    return Rule(judgement, Ruling::kInconclusive, detail(unknown));
  }
  if (is(kNoRegression, State::kFail)) {
    const std::string slower = "slower, " + detail(kNoRegression);
    if (is(kRepeated, State::kPass)) return Rule(judgement, Ruling::kRefute, slower);
    return Rule(judgement, Ruling::kInconclusive, slower + "; " + detail(kRepeated));
  }
  const bool all_equivalent =
      std::ranges::all_of(findings.depths, [](const auto& finding) { return finding.paired.equivalent; });
  RuleOnSpeed(judgement, thresholds, all_equivalent);
}

}  // namespace

State StateOf(const std::vector<Condition>& conditions, std::string_view name) {
  const auto found = std::ranges::find(conditions, name, &Condition::name);
  return found == conditions.end() ? State::kUnknown : found->state;
}

Judgement Decide(const Findings& findings, const Thresholds& thresholds) {
  Judgement judgement;
  judgement.ratio = MeanRatio(findings.depths);
  judgement.outcome = OverallOutcome(findings.depths);
  for (const DepthFinding& finding : findings.depths) {
    judgement.smallest = std::max(judgement.smallest, finding.paired.smallest);
  }
  std::vector<Condition> all = findings.conditions;
  all.push_back(Quiet(findings.depths));
  all.push_back(Speed(judgement));
  all.push_back(NoRegression(findings.depths, thresholds.protected_regression));
  for (const std::string_view name : kOrder) {
    const auto found = std::ranges::find(all, name, &Condition::name);
    judgement.conditions.push_back(found != all.end() ? *found
                                                      : Condition{std::string(name), State::kUnknown, "not looked at"});
  }
  RuleInOrder(judgement, findings, thresholds);
  return judgement;
}

}  // namespace boltbeam::judge
