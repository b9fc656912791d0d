// `boltbeam judge` as a person runs it, on a tiny model and on shell commands.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/paths.h"
#include "boltbeam_program.h"
#include "measure/logits_file.h"
#include "model/model.h"
#include "search/plan_file.h"

namespace boltbeam {
namespace {

class JudgeProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::filesystem::path(testing::TempDir()) / ("judge_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    const ProgramOutcome made = RunBoltbeam("synth tiny-qwen3:Q8_0 --out " + Model());
    ASSERT_EQ(made.status, 0) << made.output;
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }
  static std::string Model() { return (folder_ / "model.gguf").string(); }
  static ProgramOutcome Judge(const std::string& arguments) {
    return RunBoltbeam("judge " + arguments + " --home " + (folder_ / "home").string() + " 2>/dev/null");
  }

  static inline std::filesystem::path folder_;
};

TEST_F(JudgeProgram, PlansOfOneModel) {
  const ProgramOutcome outcome = Judge(
      Model() + " --b without=gate-in-registers -t 1 -d 0,16 --budget 0.3s --confirm 0 --predict 0.9..1.1 -o json");
  ASSERT_TRUE(outcome.status == 0 || outcome.status == 3 || outcome.status == 4) << outcome.output;
  const nlohmann::json json = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(json.at("schema"), "boltbeam.judge.v1");
  std::set<std::string> passed, names;
  for (const nlohmann::json& condition : json.at("conditions")) {
    names.insert(condition.at("name"));
    if (condition.at("state") == "pass") passed.insert(condition.at("name"));
  }
  EXPECT_EQ(names.size(), 13U);
  for (const char* name :
       {"route", "output", "fresh_output", "deterministic", "timed_output", "memory", "off_switch"}) {
    EXPECT_TRUE(passed.contains(name)) << name << outcome.output;
  }
  EXPECT_EQ(json.at("depths").size(), 2U);
  if (json.at("ratio").is_number()) {  // not every round was spoiled
    EXPECT_GT(json.at("ratio_high").get<double>(), json.at("ratio_low").get<double>());
  }
  EXPECT_EQ(json.at("record").get<std::string>().size(), 64U);
}

// Before anything is measured: the same sides are foretold to be the same, others what their last verdict said.
TEST_F(JudgeProgram, WhatIsKnownOfTheSidesIsForetold) {
  const auto records = [&](const std::string& kind) {
    const ProgramOutcome listed =
        RunBoltbeam("ledger list --kind " + kind + " -o json --home " + (folder_ / "home").string());
    return nlohmann::json::parse(listed.output).at("records");
  };
  const auto predictions = [&] { return records("prediction"); };
  const auto judge = [&](const std::string& sides) {
    return nlohmann::json::parse(Judge(Model() + sides + " -t 1 -d 0 --budget 0.2s --confirm 0 -o json").output);
  };
  judge("");
  ASSERT_EQ(predictions().size(), 1U);
  EXPECT_EQ(predictions()[0]["payload"]["method"], "judge: the same sides");
  const std::string other = " --b without=norm-in-consumer";
  judge(other);
  EXPECT_EQ(predictions().size(), 1U) << "nothing is known of them yet";
  // A load that spoils most rounds leaves no interval, and so nothing to foretell from.
  const nlohmann::json first = records("verdict").back().at("payload");
  judge(other);
  ASSERT_EQ(predictions().size(), first.contains("ratio") ? 2U : 1U) << first;
}

// Copies of a plan differ from load to load: what one process finds, another one must find again, a loss as a gain.
TEST_F(JudgeProgram, AFreshProcessFindsItAgain) {
  const std::string routes = "without=gate-in-registers+norm-in-consumer+qkv-one-space+quantise-by-blocks";
  for (const auto& [side, outcome, ruling] :
       {std::tuple("--b ", "slower", "refute"), std::tuple("--a ", "faster", "promote")}) {
    const ProgramOutcome judged = Judge(Model() + " " + side + routes + " -t 1 -d 0 --budget 0.5s --confirm 1 -o json");
    const nlohmann::json json = nlohmann::json::parse(judged.output);
    const nlohmann::json shown =
        nlohmann::json::parse(RunBoltbeam("ledger show " + json.at("record").get<std::string>() + " -o json --home " +
                                          (folder_ / "home").string())
                                  .output);
    const nlohmann::json& details = shown.at("payload").at("details");
    const std::string verdict = json.at("verdict");
    EXPECT_EQ(shown.at("payload").at("sessions"), 1);
    if (verdict != ruling) continue;  // other programs spoil windows, and a small difference is not always shown
    EXPECT_EQ(json.at("outcome"), outcome);
    ASSERT_EQ(details.at("processes").size(), 1U) << details;
    EXPECT_EQ(details.at("processes")[0].at("outcome"), outcome);
    EXPECT_TRUE(std::ranges::any_of(json.at("conditions"), [](const nlohmann::json& condition) {
      return condition.at("name") == "repeated" && condition.at("state") == "pass";
    })) << json;
  }
}

TEST_F(JudgeProgram, ALossThatNobodyRepeatedRefutesNothing) {
  const ProgramOutcome judged = Judge(Model() + " --b without=gate-in-registers+norm-in-consumer+qkv-one-space" +
                                      " -t 1 -d 0 --budget 0.5s --confirm 0 -o json");
  EXPECT_NE(nlohmann::json::parse(judged.output).at("verdict"), "refute") << judged.output;
}

TEST_F(JudgeProgram, APlansFileIsASide) {
  const std::string file = (folder_ / "plan.json").string();
  search::PlanFile plan;
  plan.chip = "any";
  plan.tables = {{"Q8_0.256x768", "unroll=1", ""}};
  ASSERT_TRUE(base::WriteFileAtomically(file, search::ToJson(plan)));
  const auto route = [&](const std::string& sides) {
    const ProgramOutcome outcome = Judge(Model() + sides + " -t 1 -d 0 --budget 0.2s --confirm 0 --no-record -o json");
    const nlohmann::json json = nlohmann::json::parse(outcome.output);
    for (const nlohmann::json& condition : json.at("conditions")) {
      if (condition.at("name") == "route")
        return condition.at("state").get<std::string>() + ": " + condition.at("detail").get<std::string>();
    }
    return std::string("no route");
  };
  EXPECT_EQ(route(" --a plan=default --b plan=" + file).find("pass: two plans: 4 of B's"), 0U)
      << route(" --a plan=default --b plan=" + file);
  EXPECT_EQ(route(" --a plan=" + file + " --b plan=" + file).find("pass: the same plan on both sides"), 0U);
  plan.tables.clear();
  ASSERT_TRUE(base::WriteFileAtomically(file, search::ToJson(plan)));
  EXPECT_EQ(route(" --a plan=default --b plan=" + file).find("fail: both sides have the same plan"), 0U)
      << "a plan that changes nothing is no other plan";
}

// Its chunks are longer than any context that is judged.
TEST_F(JudgeProgram, AReferenceDecidesWhateverTheDepth) {
  const std::string other = (folder_ / "other.gguf").string(), base = (folder_ / "base").string();
  ASSERT_EQ(RunBoltbeam("synth tiny-qwen3:Q4_0 --out " + other).status, 0);
  const auto vocabulary = static_cast<std::int32_t>(model::Model::Load(Model())->hyper().vocab);
  const measure::LogitsHeader header{64, vocabulary, 1};
  const std::vector<std::int32_t> tokens(64, 1);
  auto writer = measure::LogitsWriter::Create(base, header, tokens).value();
  const std::vector<float> logits(static_cast<std::size_t>(vocabulary));
  for (std::uint64_t row = 0; row < header.Rows(); ++row) ASSERT_TRUE(writer.Append(logits));
  ASSERT_TRUE(writer.Finish());
  const std::string sides = Model() + " --b file=" + other + " -t 1 -d 0 --budget 0.2s --confirm 0 --no-record -o json";
  const nlohmann::json json = nlohmann::json::parse(Judge(sides + " --reference " + base).output);
  for (const nlohmann::json& condition : json.at("conditions")) {
    if (condition.at("name") != "output") continue;
    EXPECT_NE(condition.at("state"), "unknown");
    EXPECT_TRUE(condition.at("detail").get<std::string>().starts_with("divergence from the reference")) << condition;
  }
  const ProgramOutcome missing = RunBoltbeam("judge " + sides + " --reference " + base + ".none");
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.output.find("base.none"), std::string::npos) << missing.output;
}

TEST_F(JudgeProgram, ABinarysRunsHaveTheDepthsAndTheFlagsThatWereAskedFor) {
  const std::string binary = (folder_ / "other_boltbeam").string(), seen = (folder_ / "seen").string();
  ASSERT_TRUE(base::WriteFileAtomically(
      binary, "#!/bin/sh\necho \"$*\" >>" + seen + "\n[ \"$1\" = run ] && echo text || echo '[{\"avg_ts\": 10}]'\n"));
  std::filesystem::permissions(binary, std::filesystem::perms::owner_all);
  const ProgramOutcome outcome =
      Judge(Model() + " --a binary=" + binary + " --b binary=" + binary +
            " -t 1 -d 3,17 -ctk q8_0 --without gate-in-registers --budget 0.1s --no-record -o json");
  const nlohmann::json json = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(json.at("depths").size(), 2U) << outcome.output;
  EXPECT_EQ(json.at("depths")[0].at("depth"), 3);
  EXPECT_EQ(json.at("depths")[1].at("depth"), 17);
  const std::string lines = base::ReadWholeFile(seen).value();
  for (const char* words : {"-d 3 ", "-d 17 ", " -t 1", " -ctk q8_0", " --without gate-in-registers"}) {
    EXPECT_NE(lines.find(words), std::string::npos) << words << "\n" << lines;
  }
  // Commands that take no depth are timed once.
  const ProgramOutcome once = Judge("--a 'command=echo 10' --b 'command=echo 10' -d 3,17 --budget 0.1s -o json");
  EXPECT_EQ(nlohmann::json::parse(once.output).at("depths").size(), 1U);
}

// What is compared counts, not what it is called.
TEST_F(JudgeProgram, ACandidateIsWhatItConsistsOf) {
  const std::string home = " --home " + (folder_ / "identity").string();
  const auto judge = [&](const std::string& sides) {
    const ProgramOutcome outcome = RunBoltbeam("judge " + Model() + sides +
                                               " -t 1 -d 0 --budget 0.2s --confirm 0 -o json" + home + " 2>/dev/null");
    const std::string record = nlohmann::json::parse(outcome.output).at("record");
    const ProgramOutcome shown = RunBoltbeam("ledger show " + record + " -o json" + home);
    return nlohmann::json::parse(shown.output);
  };
  const auto candidate = [](const nlohmann::json& shown) {
    return shown.at("payload").at("subject").at("candidate").get<std::string>();
  };
  search::PlanFile plan;
  plan.chip = "any";
  plan.tables = {{"Q8_0.256x768", "unroll=1", ""}};
  const std::string one = (folder_ / "one.json").string(), two = (folder_ / "two.json").string();
  ASSERT_TRUE(base::WriteFileAtomically(one, search::ToJson(plan)));
  ASSERT_TRUE(base::WriteFileAtomically(two, search::ToJson(plan)));
  const nlohmann::json first = judge(" --a plan=default --b plan=" + one);
  const nlohmann::json second = judge(" --a plan=default --b plan=" + two);
  EXPECT_EQ(candidate(first), candidate(second)) << "the same plan by another path";
  EXPECT_NE(candidate(first), first.at("payload").at("subject").at("baseline").get<std::string>());
  if (first.at("payload").at("verdict") == second.at("payload").at("verdict")) {
    EXPECT_EQ(second.at("seen").at("sessions"), 2) << second.at("seen");
  }
  plan.tables = {{"Q8_0.256x768", "unroll=2", ""}};
  ASSERT_TRUE(base::WriteFileAtomically(one, search::ToJson(plan)));
  EXPECT_NE(candidate(judge(" --a plan=default --b plan=" + one)), candidate(first)) << "another plan at the same path";

  const std::string binary = (folder_ / "some_boltbeam").string();
  const auto program = [&](const std::string& text) {
    EXPECT_TRUE(base::WriteFileAtomically(
        binary, "#!/bin/sh\n# " + text + "\n[ \"$1\" = run ] && echo text || echo '[{\"avg_ts\": 10}]'\n"));
    std::filesystem::permissions(binary, std::filesystem::perms::owner_all);
    const std::string old = (folder_ / "old_boltbeam").string();
    std::filesystem::copy_file(binary, old, std::filesystem::copy_options::overwrite_existing);
    return judge(" --a binary=" + old + " --b binary=" + binary);
  };
  const nlohmann::json a = program("one"), b = program("two"), again = program("one");
  EXPECT_NE(candidate(a), candidate(b)) << "two programs at one path";
  EXPECT_EQ(candidate(a), candidate(again));
  EXPECT_EQ(candidate(a), a.at("payload").at("subject").at("baseline").get<std::string>()) << "the same bytes";
  EXPECT_EQ(a.at("payload").at("details").at("sides").at("b").at("program_sha256").get<std::string>().size(), 64U);
}

TEST_F(JudgeProgram, TheOffSwitchIsFlippedAndItsPlanLookedAt) {
  const std::string file = (folder_ / "switch.json").string();
  search::PlanFile plan;
  plan.chip = "any";
  plan.tables = {{"Q8_0.256x768", "unroll=1", ""}};
  ASSERT_TRUE(base::WriteFileAtomically(file, search::ToJson(plan)));
  const auto state = [&](const std::string& sides) {
    const ProgramOutcome outcome = Judge(Model() + sides + " -t 1 -d 0 --budget 0.2s --confirm 0 --no-record -o json");
    const nlohmann::json json = nlohmann::json::parse(outcome.output);
    for (const nlohmann::json& condition : json.at("conditions")) {
      if (condition.at("name") == "off_switch") {
        return condition.at("state").get<std::string>() + ": " + condition.at("detail").get<std::string>();
      }
    }
    return std::string("none");
  };
  EXPECT_EQ(state(" --b plan=" + file), "pass: without --plan: the plan is A's again");
  EXPECT_EQ(state(" --b without=gate-in-registers").substr(0, 4), "pass");
  EXPECT_EQ(state(" --b without=gate-in-registers --b plan=" + file), "fail: without --plan: the plan is not A's then")
      << "two things differ: one switch does not lead back";
  EXPECT_EQ(state("").substr(0, 7), "unknown");
}

TEST_F(JudgeProgram, ProgramsWindowsSayNothingOnStderr) {
  const std::string chatty = "--a 'command=echo chatter >&2; echo 10' --b 'command=echo chatter >&2; echo 12'";
  const ProgramOutcome outcome = RunBoltbeam("judge " + chatty + " --budget 0.1s --no-record");
  EXPECT_EQ(outcome.output.find("chatter\n"), std::string::npos) << outcome.output;
  const ProgramOutcome failed =
      RunBoltbeam("judge --a 'command=echo 10' --b 'command=echo why >&2; exit 1' --no-record");
  EXPECT_EQ(failed.status, 2);
  EXPECT_NE(failed.output.find("exit status 1: why"), std::string::npos) << failed.output;
}

TEST_F(JudgeProgram, CommandsAndExitStatuses) {
  const auto run = [](const std::string& a, const std::string& b) {
    return Judge("--a 'command=" + a + "' --b 'command=" + b + "' --budget 0.1s -o json");
  };
  ProgramOutcome outcome = run("echo 10", "echo 12");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  nlohmann::json json = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(json.at("verdict"), "adapter-incomplete");
  EXPECT_EQ(json.at("outcome"), "faster");
  outcome = run("echo 12", "echo 10");
  EXPECT_EQ(outcome.status, 4);
  EXPECT_EQ(nlohmann::json::parse(outcome.output).at("outcome"), "slower");
  EXPECT_EQ(run("echo 12", "echo 0").status, 3) << "no machine reaches that";
  EXPECT_EQ(run("echo 12", "exit 1").status, 2);
}

TEST_F(JudgeProgram, WhatMakesNoSenseIsNamed) {
  const auto refused = [](const std::string& arguments, const std::string& word) {
    const ProgramOutcome outcome = RunBoltbeam("judge " + arguments + " --no-record");
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(word), std::string::npos) << outcome.output;
  };
  refused(Model() + " --b without=nothing", "nothing");
  refused(Model() + " --b speed", "speed");
  refused(Model() + " --budget 0", "--budget");
  refused(Model() + " --predict 2..1", "--predict");
  refused(Model() + " -d x", "--depth");
  refused("--b without=gate-in-registers", "no model");
}

TEST_F(JudgeProgram, TextFitsATerminal) {
  const ProgramOutcome outcome = Judge(Model() + " -t 1 -d 0 --budget 0.2s --confirm 0 --no-record");
  EXPECT_NE(outcome.output.find("Verdict: "), std::string::npos) << outcome.output;
  EXPECT_NE(RunBoltbeam("judge --help").output.find("--budget"), std::string::npos);
}

}  // namespace
}  // namespace boltbeam
