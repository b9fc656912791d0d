// The order of the gate: every verdict, and the condition that gives it.
#include "judge/gate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace boltbeam::judge {
namespace {

using measure::Outcome;

Condition Is(std::string_view name, State state) { return {std::string(name), state, "because"}; }

DepthFinding At(std::uint64_t depth, double ratio, double half = 0.002) {
  DepthFinding finding{depth, {}};
  measure::PairedResult& paired = finding.paired;
  paired.ratio = {ratio, ratio - half, ratio + half};
  paired.rounds = paired.used = 100;
  paired.smallest = 0.015;
  paired.outcome = ratio + half < 0.99   ? Outcome::kFaster
                   : ratio - half > 1.01 ? Outcome::kSlower
                                         : Outcome::kNoDifference;
  paired.equivalent = ratio + half < 1.01 && ratio - half > 0.99;
  return finding;
}

Findings Good(double ratio) {
  Findings findings;
  for (const std::string_view name : {kRoute, kOutput, kFreshOutput, kDeterministic, kTimedOutput, kMemory, kOffSwitch,
                                      kTimedWork, kAboveFloor, kRepeated}) {
    findings.conditions.push_back(Is(name, State::kPass));
  }
  findings.depths = {At(0, ratio), At(512, ratio)};
  return findings;
}

void Set(Findings& findings, std::string_view name, State state) {
  for (Condition& condition : findings.conditions) {
    if (condition.name == name) condition.state = state;
  }
}

Judgement Decided(const Findings& findings) { return Decide(findings, LoadThresholds().value()); }

TEST(GateTest, PromoteNeedsEverything) {
  const Judgement judgement = Decided(Good(0.93));
  EXPECT_EQ(judgement.ruling, Ruling::kPromote) << judgement.reason;
  EXPECT_EQ(judgement.outcome, Outcome::kFaster);
  EXPECT_EQ(judgement.tier, "A");
  EXPECT_NEAR(judgement.ratio.estimate, 0.93, 1e-9);
  EXPECT_EQ(judgement.conditions.size(), 13U);
  for (const Condition& condition : judgement.conditions) EXPECT_EQ(condition.state, State::kPass) << condition.name;
  EXPECT_EQ(Decided(Good(0.97)).tier, "B");
}

TEST(GateTest, EachMissingConditionHasItsVerdict) {
  const std::vector<std::tuple<std::string_view, State, Ruling>> cases = {
      {kRoute, State::kFail, Ruling::kRefute},
      {kOutput, State::kFail, Ruling::kRefute},
      {kFreshOutput, State::kFail, Ruling::kRefute},
      {kDeterministic, State::kFail, Ruling::kRefute},
      {kTimedOutput, State::kFail, Ruling::kRefute},
      {kTimedOutput, State::kUnknown, Ruling::kCandidate},
      {kMemory, State::kFail, Ruling::kRefute},
      {kTimedWork, State::kFail, Ruling::kInconclusive},
      {kAboveFloor, State::kFail, Ruling::kInconclusive},
      {kOutput, State::kUnknown, Ruling::kInconclusive},
      {kRoute, State::kUnknown, Ruling::kInconclusive},
      {kOffSwitch, State::kUnknown, Ruling::kDefer},
      {kOffSwitch, State::kFail, Ruling::kDefer},
      {kRepeated, State::kUnknown, Ruling::kCandidate},
      {kRepeated, State::kFail, Ruling::kCandidate},
      {kAboveFloor, State::kUnknown, Ruling::kCandidate}};
  for (const auto& [name, state, ruling] : cases) {
    Findings findings = Good(0.9);
    Set(findings, name, state);
    const Judgement judgement = Decided(findings);
    EXPECT_EQ(judgement.ruling, ruling) << name << ": " << judgement.reason;
    EXPECT_EQ(judgement.refused, name == kTimedWork || (name == kAboveFloor && state == State::kFail)) << name;
  }
}

TEST(GateTest, SpeedAlone) {
  EXPECT_EQ(Decided(Good(1.08)).ruling, Ruling::kRefute);
  EXPECT_EQ(Decided(Good(1)).ruling, Ruling::kDiagnostic);
  EXPECT_EQ(Decided(Good(0.985)).ruling, Ruling::kDiagnostic) << "faster, but below tier B";
  Findings wide = Good(1);
  wide.depths = {At(0, 1, 0.03)};
  EXPECT_EQ(Decided(wide).ruling, Ruling::kInconclusive);
}

TEST(GateTest, OneSlowDepthRefutesWhatIsFasterElsewhere) {
  Findings findings = Good(0.8);
  findings.depths.push_back(At(4096, 1.02));
  const Judgement judgement = Decided(findings);
  EXPECT_EQ(judgement.ruling, Ruling::kRefute);
  EXPECT_EQ(judgement.outcome, Outcome::kSlower);
  EXPECT_EQ(StateOf(judgement.conditions, kNoRegression), State::kFail);
}

TEST(GateTest, ALossThatFreshProcessesDoNotRepeatRefutesNothing) {
  Findings findings = Good(1.08);
  for (const State state : {State::kFail, State::kUnknown}) {  // unknown: --confirm 0, or stopped
    Set(findings, kRepeated, state);
    EXPECT_EQ(Decided(findings).ruling, Ruling::kInconclusive);
    EXPECT_EQ(Decided(findings).outcome, Outcome::kSlower);
  }
}

TEST(GateTest, ARegressionThatIsNotExcludedKeepsACandidate) {
  Findings findings = Good(0.8);
  findings.depths.push_back(At(4096, 1, 0.03));
  EXPECT_EQ(Decided(findings).ruling, Ruling::kCandidate);
}

TEST(GateTest, WhatTheControlDoesNotAllowIsNoRegression) {
  Findings findings = Good(1);
  findings.depths = {At(0, 1.05, 0.03)};
  findings.depths[0].paired.outcome = Outcome::kNoDifference;  // the control reached 3 %
  findings.depths[0].paired.margin = 0.03;
  const Judgement judgement = Decided(findings);
  EXPECT_EQ(judgement.ruling, Ruling::kInconclusive) << judgement.reason;
  EXPECT_EQ(StateOf(judgement.conditions, kNoRegression), State::kUnknown);
}

TEST(GateTest, RouteThatCannotBeTaken) {
  Findings findings = Good(1);
  findings.route_available = false;
  Set(findings, kRoute, State::kFail);
  EXPECT_EQ(Decided(findings).ruling, Ruling::kSearchSpaceIncomplete);
}

TEST(GateTest, AProgramThatCannotBeSeen) {
  Findings findings = Good(0.5);
  findings.sides_seen = false;
  Set(findings, kRoute, State::kUnknown);
  Set(findings, kOutput, State::kUnknown);
  const Judgement judgement = Decided(findings);
  EXPECT_EQ(judgement.ruling, Ruling::kAdapterIncomplete);
  EXPECT_EQ(judgement.outcome, Outcome::kFaster);
}

TEST(GateTest, AnUnstableSessionIsRefused) {
  Findings findings = Good(0.5);
  findings.depths[0].paired.stable = false;
  findings.depths[0].paired.used = 50;
  const Judgement judgement = Decided(findings);
  EXPECT_TRUE(judgement.refused);
  EXPECT_EQ(judgement.ruling, Ruling::kInconclusive);
  EXPECT_EQ(StateOf(judgement.conditions, kQuiet), State::kFail);
}

// What does not fit is refuted; what only does not fit beside the other side could not be measured.
TEST(GateTest, WhatDoesNotFit) {
  Findings findings;
  findings.conditions = {Is(kMemory, State::kUnknown)};
  Judgement judgement = Decided(findings);
  EXPECT_EQ(judgement.ruling, Ruling::kInconclusive);
  EXPECT_NE(judgement.reason.find("memory"), std::string::npos) << judgement.reason;
  findings.conditions = {Is(kMemory, State::kFail)};
  EXPECT_EQ(Decided(findings).ruling, Ruling::kRefute);
}

TEST(GateTest, NothingMeasured) {
  Findings findings = Good(1);
  findings.depths.clear();
  const Judgement judgement = Decided(findings);
  EXPECT_EQ(judgement.ruling, Ruling::kInconclusive);
  EXPECT_TRUE(std::isnan(judgement.ratio.estimate));
}

TEST(ThresholdsTest, TheRegistryIsTheIssue) {
  const Thresholds thresholds = LoadThresholds().value();
  EXPECT_EQ(thresholds.tier_a, 0.05);
  EXPECT_EQ(thresholds.tier_b, 0.02);
  EXPECT_EQ(thresholds.equivalence, 0.01);
  EXPECT_EQ(thresholds.protected_regression, 0.01);
  EXPECT_NEAR(thresholds.Rules(3, 30, 1).error_rate, thresholds.error_rate / 3, 1e-12);
}

TEST(ThresholdsTest, WhatMakesNoSenseIsNamed) {
  EXPECT_EQ(ParseThresholds("[]").error().code, Code::kJson);
  nlohmann::json good = nlohmann::json::parse(R"({"tier_a":0.05,"tier_b":0.02,"equivalence":0.01,
      "protected_regression":0.01,"error_rate":0.05,"power":0.9,"looks":[0.5,1],"least_rounds":8,"spoiled_share":0.2,
      "untimed_share":0.05,"floor_band":0.1,"kl_growth":0.05,"kl_least":0.0001})");
  ASSERT_TRUE(ParseThresholds(good.dump()));
  for (const auto& [field, value] : good.items()) {
    for (const nlohmann::json& wrong : {nlohmann::json("x"), nlohmann::json(-1), nlohmann::json::array({1, 0.5})}) {
      nlohmann::json bad = good;
      bad[field] = wrong;
      const auto result = ParseThresholds(bad.dump());
      ASSERT_FALSE(result) << field;
      EXPECT_NE(result.error().found.find(field), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace boltbeam::judge
