// Programs as sides, words of sides, and samples that give their verdict again.
#include "judge/program.h"

#include <gtest/gtest.h>

#include "judge/record.h"
#include "judge/samples.h"
#include "judge/side.h"

namespace boltbeam::judge {
namespace {

TEST(SideTest, Words) {
  const std::vector<std::string> routes = {"one", "two"};
  const SideSpec side = ParseSide("--b", {"without=one+two", "file=x.gguf"}, routes).value();
  EXPECT_EQ(side.without, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(side.Describe(), "without=one+two file=x.gguf");
  EXPECT_EQ(ParseSide("--a", {"default"}, routes)->Describe(), "default");
  EXPECT_EQ(ParseSide("--a", {"plan=/p.json", "without=one"}, routes)->Describe(), "without=one plan=/p.json");
  EXPECT_FALSE(ParseSide("--a", {"plan=/p.json", "command=echo 1"}, routes));
  EXPECT_TRUE(ParseSide("--a", {"command=echo a=b"}, routes)->IsProgram());
  EXPECT_EQ(ParseSide("--a", {"with=one", "binary=/b"}, routes)->Describe(), "with=one binary=/b");
  const std::vector<std::vector<std::string>> wrong = {
      {"without=three"}, {"without="}, {"speed=9"}, {"one"}, {"command=x", "without=one"}};
  for (const std::vector<std::string>& words : wrong) {
    const auto result = ParseSide("--b", words, routes);
    ASSERT_FALSE(result) << words[0];
    EXPECT_EQ(result.error().code, Code::kUsage);
    EXPECT_EQ(result.error().where, "--b");
  }
}

Result<Run> Programs(const std::string& a, const std::string& b, double budget_s = 0.05) {
  Request request;
  request.budget_s = budget_s;
  return ComparePrograms({a, "", false}, {b, "", false}, {}, request, LoadThresholds().value());
}

TEST(ComparePrograms, OutcomeWithoutRoute) {
  const auto run = Programs("echo 10", "echo 20");
  ASSERT_TRUE(run) << run.error().Message();
  const Judgement judgement = Decide(run->findings, LoadThresholds().value());
  EXPECT_EQ(judgement.ruling, Ruling::kAdapterIncomplete);
  EXPECT_EQ(judgement.outcome, measure::Outcome::kFaster);
  EXPECT_NEAR(judgement.ratio.estimate, 0.5, 1e-9);
  const Judgement swapped = Decide(Programs("echo 20", "echo 10")->findings, LoadThresholds().value());
  EXPECT_EQ(swapped.outcome, measure::Outcome::kSlower);
  EXPECT_EQ(Decide(Programs("echo 20", "echo 20")->findings, LoadThresholds().value()).outcome,
            measure::Outcome::kNoDifference);
}

TEST(ComparePrograms, ZeroTimeIsRefused) {
  EXPECT_EQ(Programs("echo 10", "echo inf").error().code, Code::kMeasurementImpossible);
  EXPECT_EQ(Programs("echo 10", "echo hello").error().code, Code::kUsage);
  EXPECT_EQ(Programs("exit 1", "echo 10").error().code, Code::kUsage);
}

TEST(ComparePrograms, OtherTextIsNeverTimed) {
  Request request;
  const auto run = ComparePrograms({"exit 3", "echo x", true}, {"exit 3", "echo y", true}, {"run A", "two programs"},
                                   request, LoadThresholds().value());
  ASSERT_TRUE(run) << run.error().Message();
  EXPECT_EQ(Decide(run->findings, LoadThresholds().value()).ruling, Ruling::kRefute);
}

TEST(SamplesTest, GiveTheirVerdictAgain) {
  const auto run = Programs("echo 10", "echo 20");
  ASSERT_TRUE(run);
  const Thresholds thresholds = LoadThresholds().value();
  const Judgement judgement = Decide(run->findings, thresholds);
  const std::string text = SamplesText(*run, thresholds);
  const auto again = Rederive(text);
  ASSERT_TRUE(again) << again.error().Message();
  const nlohmann::json fields = DerivedFields(judgement, run->findings.depths);
  EXPECT_EQ(DerivedFields(again->judgement, again->depths), fields);
  EXPECT_EQ(RederiveFields(text).value(), fields);
  EXPECT_TRUE(fields.contains("ratio") && fields.contains("depths") && fields.contains("conditions"));
  std::string edited = text;
  const std::string window = "50000000.0";  // of B
  ASSERT_NE(edited.find(window), std::string::npos);
  for (std::size_t place = 0; (place = edited.find(window, place)) != std::string::npos;) edited.replace(place, 1, "9");
  EXPECT_NE(RederiveFields(edited).value(), fields);
}

TEST(SamplesTest, WhatIsNotSamplesIsNamed) {
  for (const char* text : {"", "[]", "{}", R"({"format":"other"})", R"({"format":"boltbeam.judge.samples.v1"})"}) {
    EXPECT_EQ(Rederive(text).error().code, Code::kJson) << text;
  }
}

TEST(RecordTest, AVerdictThatTheLedgerTakes) {
  const Thresholds thresholds = LoadThresholds().value();
  const auto run = Programs("echo 10", "echo 20");
  ASSERT_TRUE(run);
  Judgement judgement = Decide(run->findings, thresholds);
  RecordContext context;
  context.subject.candidate = "without=one";
  context.subject.chip = "a chip";
  context.subject.model = "m.gguf";
  const ledger::Verdict verdict = ToVerdict(judgement, *run, thresholds, context);
  EXPECT_TRUE(ledger::Check(verdict)) << ledger::Check(verdict).error().Message();
  EXPECT_EQ(verdict.outcome, "faster");
  EXPECT_EQ(verdict.depths.size(), 1U);
  judgement.ruling = Ruling::kRefute;
  EXPECT_FALSE(ToVerdict(judgement, *run, thresholds, context).reopen_when.empty());
}

}  // namespace
}  // namespace boltbeam::judge
