// Programs as sides, words of sides, and samples that give their verdict again.
#include "judge/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/paths.h"
#include "judge/record.h"
#include "judge/samples.h"
#include "judge/side.h"
#include "ledger/rederive.h"

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
  const auto run = ComparePrograms({"exit 3", "echo x", true}, {"exit 3", "echo y", true},
                                   {"run A", true, "two programs"}, request, LoadThresholds().value());
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
  EXPECT_EQ(RederiveFields(text)->fields, fields);
  EXPECT_TRUE(fields.contains("ratio") && fields.contains("depths") && fields.contains("conditions"));
  std::string edited = text;
  const std::string window = "50000000.0";  // of B
  ASSERT_NE(edited.find(window), std::string::npos);
  for (std::size_t place = 0; (place = edited.find(window, place)) != std::string::npos;) edited.replace(place, 1, "9");
  EXPECT_NE(RederiveFields(edited)->fields, fields);
}

// A run of two engines whose windows break every rule that follows from them; the record says otherwise.
Run BrokenWindows() {
  Run run;
  for (const std::string_view name : {kRoute, kOutput, kFreshOutput, kDeterministic, kMemory, kOffSwitch}) {
    run.findings.conditions.push_back({std::string(name), State::kPass, "seen"});
  }
  DepthSamples samples;
  samples.depth = 7;
  samples.rules = LoadThresholds()->Rules(1, 1, 1);
  samples.sides_seen = samples.same_bits = true;
  samples.a_bytes = samples.b_bytes = 1e9;
  samples.rules.resamples = 0;
  for (int i = 0; i < 60; ++i) {
    measure::PairedRound round{.b_first = i % 2 == 1, .limit = 20, .at_s = i / 50.0};
    for (std::size_t k = 0; k < 4; ++k)
      round.windows[k] = {round.IsB(k) ? 9e6 + i : 1e7 + i, {}, round.IsB(k) ? 2e6 : 0};
    round.output_difference = i == 5 ? 0.5 : 0;
    samples.rounds.push_back(round);
  }
  run.findings.depths = {{7, measure::ReplayPaired(samples.rounds, samples.rules).value()}};
  run.samples = {samples};
  AddWindowConditions(run.findings, run.samples, LoadThresholds().value());
  return run;
}

TEST(SamplesTest, ConditionsOfTheWindowsAreFoundAgain) {
  const Thresholds thresholds = LoadThresholds().value();
  const judge::Run run = BrokenWindows();
  const std::string text = SamplesText(run, thresholds);
  const nlohmann::json fields = DerivedFields(Decide(run.findings, thresholds), run.findings.depths);
  const ledger::DerivedFields again = RederiveFields(text).value();
  EXPECT_EQ(again.fields, fields);
  for (const std::string_view name : {kTimedWork, kAboveFloor, kTimedOutput}) {
    EXPECT_EQ(StateOf(run.findings.conditions, name), State::kFail) << name;
    EXPECT_EQ(text.find(name), std::string::npos) << "it follows: there is nothing to take";
  }
  const auto word = [](std::string_view name) { return "condition " + std::string(name); };
  for (const std::string_view name : {kTimedWork, kAboveFloor, kTimedOutput, kQuiet, kSpeed, kNoRegression}) {
    EXPECT_EQ(std::ranges::count(again.derived, word(name)), 1) << name;
  }
  for (const std::string_view name : {kRoute, kOutput, kFreshOutput, kDeterministic, kMemory, kOffSwitch, kRepeated}) {
    EXPECT_EQ(std::ranges::count(again.taken, word(name)), 1) << name;
  }
  EXPECT_EQ(again.derived.size() + again.taken.size(), 13U);
}

// A ledger of a test's own, and what re-derives the judge's records.
struct Memory {
  Memory() {
    for (const std::string_view format : {kSamplesFormat, kOlderSamplesFormat}) {
      table.Register(std::string(format),
                     [](const ledger::Record&, std::string_view samples) { return RederiveFields(samples); });
    }
  }
  ~Memory() { std::filesystem::remove_all(folder); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ledger::Rederivation Run(const ledger::Record& record) const { return table.Run(ledger, record).value(); }
  static ledger::Ledger Open(const std::string& folder) {
    ledger::Options options;
    options.folder = folder;
    options.writer = "writer";
    return ledger::Ledger::Open(options).value();
  }

  std::string folder = testing::TempDir() + "boltbeam_judge_records." + std::to_string(::getpid());
  ledger::Ledger ledger = Open(folder);
  ledger::RederiveTable table;
};

// Whoever writes another state into a record, or into its samples, does not get it confirmed.
TEST(SamplesTest, AConditionThatWasAlteredIsFound) {
  const Thresholds thresholds = LoadThresholds().value();
  const judge::Run run = BrokenWindows();
  Memory memory;
  nlohmann::json blob = nlohmann::json::parse(SamplesText(run, thresholds));
  blob["conditions"].push_back({{"name", kTimedWork}, {"state", "pass"}, {"detail", ""}});
  RecordContext context;
  context.subject = {
      .candidate = "b", .chip = "c", .model = "m", .model_hash = {}, .shape = {}, .plan = {}, .baseline = {}};
  context.samples = {memory.ledger.StoreSamples(blob.dump()).value(), std::string(kSamplesFormat)};
  const Judgement judgement = Decide(run.findings, thresholds);
  ledger::Record record;
  record.payload = ledger::ToJson(ToVerdict(judgement, run, thresholds, context));
  EXPECT_TRUE(memory.Run(record).differences.empty()) << "what the samples say counts, not the blob's word";
  for (nlohmann::json& condition : record.payload["conditions"]) {
    const nlohmann::json kept = condition;
    condition["state"] = condition["state"] == "pass" ? "fail" : "pass";
    const ledger::Rederivation found = memory.Run(record);
    ASSERT_EQ(found.differences.size(), 1U) << kept;
    EXPECT_TRUE(found.differences[0].field.ends_with("/state")) << found.differences[0].field;
    EXPECT_FALSE(found.AsRecorded("1"));
    condition = kept;
  }
  // Nor does what no sample gives: nothing was promoted.
  const nlohmann::json honest = record.payload;
  record.payload["tier"] = "A";
  record.payload["conditions"][0]["weight"] = 2;
  const ledger::Rederivation forged = memory.Run(record);
  ASSERT_EQ(forged.differences.size(), 2U);
  EXPECT_EQ(forged.differences[0].field, "/conditions/0/weight");
  EXPECT_EQ(forged.differences[1].field, "/tier");
  record.payload = honest;
  record.payload.erase("conditions");
  EXPECT_FALSE(memory.Run(record).AsRecorded("1"));
}

// A verdict by two plans that fell to the gate before anything was timed claims an outcome.
TEST(SamplesTest, AnOutcomeOfNothingIsFound) {
  const Thresholds thresholds = LoadThresholds().value();
  judge::Run run;
  run.findings.conditions.push_back({std::string(kOutput), State::kFail, "other tokens"});
  Memory memory;
  RecordContext context;
  context.samples = {memory.ledger.StoreSamples(SamplesText(run, thresholds)).value(), std::string(kSamplesFormat)};
  ledger::Record record;
  record.payload = ledger::ToJson(ToVerdict(Decide(run.findings, thresholds), run, thresholds, context));
  EXPECT_TRUE(memory.Run(record).AsRecorded("1"));
  for (const auto& [field, claim] : {std::pair("outcome", nlohmann::json("faster")),
                                     std::pair("tier", nlohmann::json("A")), std::pair("ratio", nlohmann::json(0.9))}) {
    const nlohmann::json honest = record.payload;
    record.payload[field] = claim;
    EXPECT_FALSE(memory.Run(record).AsRecorded("1")) << field;
    record.payload = honest;
  }
}

// A blob and its verdict as the code of that day wrote them: tests/data/ledger/README.md.
TEST(SamplesTest, TheOlderFormGivesItsVerdictAgain) {
  const std::string samples = base::ReadWholeFile(BOLTBEAM_TEST_DATA "/ledger/judge_samples_v1.json").value();
  const nlohmann::json verdict =
      nlohmann::json::parse(base::ReadWholeFile(BOLTBEAM_TEST_DATA "/ledger/judge_verdict_v1.json").value());
  ASSERT_EQ(verdict.at("samples").at("format"), kOlderSamplesFormat);
  ASSERT_EQ(verdict.at("verdict"), "promote");
  Memory memory;
  ledger::Record record;
  record.payload = verdict;
  record.payload["samples"]["sha256"] = memory.ledger.StoreSamples(samples).value();
  EXPECT_TRUE(ledger::Check(ledger::VerdictFrom(record.payload).value()));
  const ledger::Rederivation again = memory.Run(record);
  EXPECT_TRUE(again.AsRecorded("1")) << again.AsRecorded("1").error().Message();
  EXPECT_GT(again.compared, 40U);
  record.payload["ratio"] = 0.9;
  EXPECT_FALSE(memory.Run(record).AsRecorded("1"));
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
