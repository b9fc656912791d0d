// The rules of the kinds of records, and that a record read back is the one that was written.
#include "ledger/records.h"

#include <gtest/gtest.h>

#include "ledger/line.h"
#include "ledger/testing/scenario.h"

namespace boltbeam::ledger {
namespace {

Verdict Promotion() {
  Verdict verdict = MarkedVerdict("5 % faster at every depth", Ruling::kPromote);
  verdict.outcome = "faster";
  verdict.ratio = 0.95, verdict.ratio_low = 0.94, verdict.ratio_high = 0.96;
  verdict.smallest_difference = 0.004;
  verdict.depths = {{512, 0.95, 0.94, 0.96, 120}, {4096, 0.97, 0.96, 0.98, 80}};
  for (const char* name : {"output", "route", "speed", "memory", "off_switch"}) {
    verdict.conditions.push_back({name, State::kPass, "shown"});
  }
  verdict.tier = "A";
  verdict.off_switch = "--without fused_norm";
  verdict.samples = {std::string(64, 'a'), "test.v1"};
  verdict.prediction = std::string(64, 'b');
  verdict.environment = {{"governor", "performance"}};
  return verdict;
}

void ExpectBroken(const Verdict& verdict, const std::string& field) {
  const Result<void> checked = Check(verdict);
  ASSERT_FALSE(checked) << field;
  EXPECT_EQ(checked.error().code, Code::kLedgerRecord);
  EXPECT_EQ(checked.error().where, field) << checked.error().Message();
}

TEST(LedgerRecords, AVerdictReadBackIsTheSame) {
  const Verdict verdict = Promotion();
  ASSERT_TRUE(Check(verdict));
  const nlohmann::json json = ToJson(verdict);
  EXPECT_EQ(ToJson(*VerdictFrom(*ParseJson(*Canonical(json), "test"))), json);
}

TEST(LedgerRecords, EveryRulingHasAName) {
  ASSERT_EQ(RulingNames().size(), 8U);
  for (const std::string& name : RulingNames()) EXPECT_EQ(RulingName(*ParseRuling(name)), name);
  EXPECT_EQ(ParseRuling("approve").error().code, Code::kLedgerRecord);
  EXPECT_EQ(ParseKind("rumour").error().code, Code::kLedgerRecord);
}

TEST(LedgerRecords, APromotionNeedsEveryConditionAndItsSwitch) {
  for (std::size_t i = 0; i < 5; ++i) {
    Verdict verdict = Promotion();
    verdict.conditions[i].state = i % 2 == 0 ? State::kUnknown : State::kFail;
    ExpectBroken(verdict, "conditions");
  }
  Verdict verdict = Promotion();
  verdict.conditions.push_back({"determinism", State::kFail, ""});
  ExpectBroken(verdict, "conditions");
  verdict = Promotion();
  verdict.off_switch.clear();
  ExpectBroken(verdict, "off_switch");
  verdict = Promotion();
  verdict.samples = {};
  ExpectBroken(verdict, "samples");
  verdict = Promotion();
  verdict.origin = {{"schema", "elsewhere"}};
  ExpectBroken(verdict, "verdict");
}

TEST(LedgerRecords, WhatBreaksTheRulesIsNamed) {
  Verdict verdict = Promotion();
  verdict.subject.candidate.clear();
  ExpectBroken(verdict, "candidate");
  verdict = Promotion();
  verdict.subject.model_hash = "short";
  ExpectBroken(verdict, "model_hash");
  verdict = Promotion();
  verdict.reason.clear();
  ExpectBroken(verdict, "reason");
  verdict = Promotion();
  verdict.ratio_low = 0.99;
  ExpectBroken(verdict, "ratio");
  verdict = Promotion();
  verdict.ratio_high.reset();
  ExpectBroken(verdict, "ratio");
  verdict = Promotion();
  verdict.outcome = "splendid";
  ExpectBroken(verdict, "outcome");
  verdict = Promotion();
  verdict.tier = "S";
  ExpectBroken(verdict, "tier");
  verdict = MarkedVerdict("a tier without a promotion");
  verdict.tier = "A";
  ExpectBroken(verdict, "tier");
  verdict = MarkedVerdict("slower", Ruling::kRefute);
  verdict.reopen_when.clear();
  ExpectBroken(verdict, "reopen_when");
  verdict.reopen_when.push_back({"llvm_version", Comparison::kChanges, nullptr, ""});
  ExpectBroken(verdict, "reopen_when.value");
  Prediction prediction = MarkedPrediction("line");
  prediction.high = prediction.low / 2;
  EXPECT_EQ(Check(prediction).error().where, "token_ns");
  EXPECT_EQ(Check(ChipFacts{}).error().code, Code::kLedgerRecord);
  EXPECT_EQ(Check(Measurement{}).error().code, Code::kLedgerRecord);
  EXPECT_EQ(Check(Reopening{}).error().code, Code::kLedgerRecord);
}

TEST(LedgerRecords, AFieldOfAnotherTypeIsAnError) {
  nlohmann::json json = ToJson(Promotion());
  json["conditions"] = 5;
  EXPECT_EQ(VerdictFrom(json).error().code, Code::kLedgerRecord);
  json = ToJson(Promotion());
  json["subject"] = "x";
  EXPECT_EQ(VerdictFrom(json).error().code, Code::kLedgerRecord);
  EXPECT_EQ(VerdictFrom(nlohmann::json::array()).error().code, Code::kLedgerRecord);
  EXPECT_EQ(PredictionFrom({{"value", "much"}}).error().code, Code::kLedgerRecord);
}

TEST(LedgerRecords, OtherKindsReadBackAreTheSame) {
  ChipFacts facts;
  facts.chip = "chip";
  facts.facts = {{"l2_bytes", 1048576}};
  EXPECT_EQ(ToJson(*ChipFactsFrom(ToJson(facts))), ToJson(facts));
  Prediction prediction = MarkedPrediction("line");
  prediction.depth = 512;
  EXPECT_EQ(ToJson(*PredictionFrom(ToJson(prediction))), ToJson(prediction));
  Measurement measured;
  measured.subject = prediction.subject;
  measured.quantity = "token_ns";
  measured.value = measured.low = measured.high = 1;
  measured.repetitions = 3;
  EXPECT_EQ(ToJson(*MeasurementFrom(ToJson(measured))), ToJson(measured));
  const Reopening reopening{prediction.subject, std::string(64, 'c'), "why"};
  EXPECT_EQ(ToJson(*ReopeningFrom(ToJson(reopening))), ToJson(reopening));
}

}  // namespace
}  // namespace boltbeam::ledger
