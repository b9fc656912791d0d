// `boltbeam ledger` from the command line, over chains that two machines wrote.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/paths.h"
#include "boltbeam_program.h"
#include "ledger/ledger.h"

namespace boltbeam {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class LedgerCommand : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  ledger::Ledger Machine(const std::string& home, const std::string& writer) {
    ledger::Options options = ledger::OptionsFor(base::ResolvePaths((folder_ / home).string()));
    options.writer = writer;
    return *ledger::Ledger::Open(options);
  }
  ProgramOutcome Run(const std::string& arguments, const std::string& home = "home") {
    return RunBoltbeam("--home " + (folder_ / home).string() + " ledger " + arguments);
  }
  [[nodiscard]] fs::path Chain(const std::string& writer, const std::string& home = "home") const {
    return folder_ / home / "data" / "ledger" / (writer + ".jsonl");
  }

  fs::path folder_ = fs::path(testing::TempDir()) / ("boltbeam_ledger_commands." + std::to_string(::getpid()));
};

ledger::Verdict Refutation(const std::string& candidate) {
  ledger::Verdict verdict;
  verdict.subject = {candidate, "chip-1", "model-1", std::string(64, 'a'), "shape-1", "plan-1", "baseline-1"};
  verdict.ruling = ledger::Ruling::kRefute;
  verdict.outcome = "slower";
  verdict.ratio = 1.052, verdict.ratio_low = 1.041, verdict.ratio_high = 1.063;
  verdict.reason = "slower at every depth";
  verdict.repetitions = 120;
  verdict.conditions = {{"output", ledger::State::kPass, ""}, {"speed", ledger::State::kFail, ""}};
  verdict.reopen_when = {{"boltbeam_version", ledger::Comparison::kChanges, "0.0.0", "a new lowering"}};
  return verdict;
}

bool Says(const ProgramOutcome& outcome, const std::string& text) {
  return outcome.output.find(text) != std::string::npos;
}

void ExpectNarrow(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::size_t columns = 0;
    for (std::size_t i = at; i < end; ++i) columns += (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80 ? 0 : 1;
    EXPECT_LE(columns, 80U) << text.substr(at, end - at);
    at = end + 1;
  }
}

TEST_F(LedgerCommand, TwoMachinesSideBySideAnswerOneQuestion) {
  ASSERT_TRUE(Machine("home", "one-0123abcd-user").AppendVerdict(Refutation("slow_idea")));
  ASSERT_TRUE(Machine("elsewhere", "two-4567cdef-user").AppendVerdict(Refutation("slow_idea")));
  for (const char* ending : {".jsonl", ".head"}) {
    fs::copy(Chain("two-4567cdef-user", "elsewhere").replace_extension(ending),
             Chain("two-4567cdef-user").replace_extension(ending));
  }
  const ProgramOutcome list = Run("list --verdict refute --chip chip-1 --model aaaa -o json");
  ASSERT_EQ(list.status, 0) << list.output;
  EXPECT_EQ(json::parse(list.output).at("records").size(), 2U);
  const ProgramOutcome show = Run("show one-0123abcd-user:1");
  EXPECT_TRUE(Says(show, "2 sessions, 2 machines")) << show.output;
  EXPECT_TRUE(Says(show, "come true")) << show.output;
  ExpectNarrow(show.output);
  ExpectNarrow(Run("list").output);
  EXPECT_EQ(Run("list --kind prediction").output, "no records\n");
  EXPECT_EQ(Run("verify").status, 0);
}

TEST_F(LedgerCommand, AHandEditedLineIsFoundAndNamed) {
  ledger::Ledger machine = Machine("home", "one");
  for (const char* name : {"first", "second", "third"}) ASSERT_TRUE(machine.AppendVerdict(Refutation(name)));
  ASSERT_EQ(Run("verify").status, 0);
  std::string bytes = *base::ReadWholeFile(Chain("one"));
  const std::size_t at = bytes.rfind("1.052", bytes.find("second"));
  bytes.replace(at, 5, "0.952");
  std::ofstream(Chain("one"), std::ios::binary) << bytes;
  const ProgramOutcome verify = Run("verify 2>&1 >/dev/null");
  EXPECT_EQ(verify.status, 1);
  EXPECT_TRUE(Says(verify, "one.jsonl: line 2, byte ")) << verify.output;
  EXPECT_TRUE(Says(verify, "it was changed")) << verify.output;
  const ProgramOutcome list = Run("list");
  EXPECT_EQ(list.status, 0);
  EXPECT_TRUE(Says(list, "left out")) << list.output;
  EXPECT_EQ(Run("show one:2").status, 2);
}

TEST_F(LedgerCommand, ADamagedChainIsRepairedAndWhatWasCutIsKept) {
  ledger::Ledger machine = Machine("home", "one");
  for (const char* name : {"first", "second", "third"}) ASSERT_TRUE(machine.AppendVerdict(Refutation(name)));
  EXPECT_TRUE(Says(Run("repair"), "no chain is damaged"));
  std::string bytes = *base::ReadWholeFile(Chain("one"));
  bytes.replace(bytes.rfind("1.052", bytes.find("second")), 5, "0.952");
  std::ofstream(Chain("one"), std::ios::binary) << bytes;
  const ProgramOutcome repair = Run("repair one");
  EXPECT_EQ(repair.status, 0) << repair.output;
  EXPECT_TRUE(Says(repair, "1 records stay")) << repair.output;
  EXPECT_TRUE(Says(repair, "1 whole records lie behind the damage")) << repair.output;
  EXPECT_EQ(Run("verify").status, 0);
  const std::size_t at = repair.output.find("kept: blobs/") + 12;
  const fs::path kept = Chain("one").parent_path() / "blobs" / repair.output.substr(at, 64);
  EXPECT_TRUE(bytes.ends_with(*base::ReadWholeFile(kept))) << "what was cut is not there as it was";
  EXPECT_TRUE(Says(Run("list --kind recovery"), "were cut at byte")) << Run("list --kind recovery").output;
  EXPECT_EQ(Run("repair nobody").status, 2);
}

TEST_F(LedgerCommand, ARefutationIsReopenedAndPromotesNothing) {
  ASSERT_TRUE(Machine("home", "one").AppendVerdict(Refutation("slow_idea")));
  EXPECT_TRUE(Says(Run("list --refuted"), "slow_idea"));
  const ProgramOutcome reopened = Run("reopen 1 --reason 'another compiler'");
  EXPECT_EQ(reopened.status, 0) << reopened.output;
  EXPECT_EQ(Run("list --refuted").output, "no records\n");
  EXPECT_TRUE(Says(Run("list --kind reopening -o csv"), "another compiler"));
  EXPECT_EQ(Run("list --verdict promote").output, "no records\n");
  EXPECT_EQ(Run("reopen one:1 --reason again").status, 2);
  EXPECT_EQ(Run("verify").status, 0);
}

TEST_F(LedgerCommand, NamesAreInertInEveryReport) {
  const std::string name = "<script>alert(1)</script>|\"'\u202e\x1b[31m";
  ASSERT_TRUE(Machine("home", "one").AppendVerdict(Refutation(name)));
  for (const char* form : {"text", "md", "html", "json"}) {
    const ProgramOutcome report = Run(std::string("report -o ") + form);
    ASSERT_EQ(report.status, 0) << report.output;
    EXPECT_FALSE(Says(report, "\x1b")) << form;
    EXPECT_EQ(Says(report, "\u202e"), std::string(form) == "json") << form;
    const bool is_marked_up = form[0] == 'm' || form[0] == 'h';
    EXPECT_EQ(Says(report, "<script>"), !is_marked_up) << report.output;
    EXPECT_TRUE(Says(report, "seen")) << form;
  }
  const ProgramOutcome html = Run("report -o html");
  EXPECT_TRUE(Says(html, "&lt;script&gt;")) << html.output;
  EXPECT_TRUE(Says(html, "seen once")) << html.output;
  EXPECT_TRUE(html.output.starts_with("<!DOCTYPE html>"));
  ExpectNarrow(Run("report").output);
}

// At 80 columns everything is there to the last word.
TEST_F(LedgerCommand, NothingIsCutOnATerminal) {
  ledger::Verdict verdict = Refutation("plan 0123456789abcdef of file fedcba9876543210");
  verdict.subject.candidate_words =
      "without=norm-in-consumer+gate-in-registers+attention-by-heads plan=" + std::string(90, 'p');
  verdict.reason = "no_regression: slower at depth 1024 by what is a rather long way of saying it, to the very last";
  verdict.conditions = {{"deterministic", ledger::State::kFail, ""},
                        {"no_regression", ledger::State::kFail, ""},
                        {"timed_output", ledger::State::kUnknown, ""},
                        {"fresh_output", ledger::State::kUnknown, "END"}};
  verdict.reopen_when[0].text = "another boltbeam with another lowering of everything, which may well be otherwise";
  ASSERT_TRUE(Machine("home", "one").AppendVerdict(verdict));
  // Without the line ends and the spaces that a wrapped name has.
  const auto joined = [](std::string text) {
    std::erase_if(text, [](char c) { return c == '\n' || c == ' '; });
    return text;
  };
  const auto expect = [&](const std::string& arguments, const std::vector<std::string>& parts) {
    const ProgramOutcome outcome = Run(arguments);
    ExpectNarrow(outcome.output);
    EXPECT_FALSE(Says(outcome, "…")) << outcome.output;
    for (const std::string& part : parts) {
      EXPECT_NE(joined(outcome.output).find(joined(part)), std::string::npos) << part << " in\n" << outcome.output;
    }
  };
  const std::string words = verdict.subject.candidate_words;
  expect("list", {words, verdict.reason, "1.0520 (1.0410 to 1.0630)"});
  expect("report", {words, verdict.subject.candidate, verdict.reason, "deterministic, no_regression", "seen once",
                    verdict.reopen_when[0].text, "YES"});
  expect("show one:1", {words, verdict.reason, "END", verdict.reopen_when[0].text});
  EXPECT_TRUE(Says(Run("list --candidate '" + words + "'"), "1.0520")) << "found by what it was called";
  EXPECT_TRUE(Says(Run("list --candidate '" + verdict.subject.candidate + "'"), "1.0520")) << "and by what it is";
}

TEST_F(LedgerCommand, PredictionsAreScored) {
  ledger::Ledger machine = Machine("home", "one");
  ledger::Prediction prediction;
  prediction.subject = Refutation("idea").subject;
  prediction.quantity = "token_ns";
  prediction.value = 100, prediction.low = 90, prediction.high = 110;
  prediction.method = "audit";
  ledger::Measurement measured;
  measured.subject = prediction.subject;
  measured.quantity = prediction.quantity;
  measured.repetitions = 10;
  measured.prediction = machine.AppendPrediction(prediction)->hash;
  measured.value = measured.low = measured.high = 105;
  ASSERT_TRUE(machine.AppendMeasurement(measured));
  const ProgramOutcome scored = Run("report --predictions -o json");
  ASSERT_EQ(scored.status, 0) << scored.output;
  const json method = json::parse(scored.output).at("methods").at(0);
  EXPECT_EQ(method.at("hits"), 1);
  EXPECT_NEAR(method.at("bias").get<double>(), 0.05, 1e-12);
  EXPECT_NEAR(method.at("width").get<double>(), 0.2, 1e-12);
  ExpectNarrow(Run("report --predictions").output);
}

TEST_F(LedgerCommand, ALedgerMovesToAnotherMachine) {
  ledger::Ledger machine = Machine("home", "one");
  ledger::Verdict verdict = Refutation("idea");
  verdict.samples = {*machine.StoreSamples("raw samples"), "test.v1"};
  ASSERT_TRUE(machine.AppendVerdict(verdict));
  const std::string file = (folder_ / "ledger.jsonl").string();
  ASSERT_EQ(Run("export --out " + file).status, 0);
  const ProgramOutcome imported = Run("import " + file, "other");
  EXPECT_EQ(imported.status, 0) << imported.output;
  EXPECT_TRUE(Says(imported, "1 records and 1 blobs added")) << imported.output;
  EXPECT_TRUE(Says(Run("show 1", "other"), "slower at every depth"));
  EXPECT_EQ(Run("verify", "other").status, 0);
  // Both go on under one name: their histories can't be one.
  ASSERT_TRUE(machine.AppendVerdict(Refutation("here")));
  ASSERT_TRUE(Machine("other", "one").AppendVerdict(Refutation("there")));
  ASSERT_EQ(Run("export --out " + file).status, 0);
  const ProgramOutcome forked = Run("import " + file, "other");
  EXPECT_EQ(forked.status, 1);
  EXPECT_TRUE(Says(forked, "the writer one: record 2")) << forked.output;
}

TEST_F(LedgerCommand, RouteEntriesOfThePythonToolAreImported) {
  const ProgramOutcome imported = Run("import " BOLTBEAM_TEST_DATA "/ledger/route_entries.jsonl");
  ASSERT_EQ(imported.status, 0) << imported.output;
  EXPECT_TRUE(Says(imported, "3 became verdicts")) << imported.output;
  EXPECT_TRUE(Says(Run("list --refuted"), "example_norm_fold"));
}

TEST_F(LedgerCommand, RefusalsTakeOneLine) {
  ASSERT_TRUE(Machine("home", "one").AppendVerdict(Refutation("idea")));
  const auto expect = [&](const std::string& arguments, int status, const std::string& says) {
    const ProgramOutcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
    EXPECT_TRUE(Says(outcome, says)) << arguments << "\n" << outcome.output;
    EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 1) << outcome.output;
  };
  expect("", 2, "subcommand");
  expect("list --kind rumour", 2, "rumour");
  expect("list -n 0", 2, "count");
  expect("show 7", 2, "no such record");
  expect("show 1 --rederive", 1, "without samples");
  expect("reopen 1", 2, "reason");
  expect("import /nonexistent.jsonl", 1, "/nonexistent.jsonl");
  expect("import " BOLTBEAM_TEST_DATA "/ledger/README.md", 1, "line 1");
  expect("export --writer nobody", 2, "no record");
}

TEST_F(LedgerCommand, HelpFitsATerminal) {
  for (const char* part : {"", "list", "show", "report", "verify", "reopen", "export", "import"}) {
    const ProgramOutcome help = Run(std::string(part) + " --help");
    EXPECT_EQ(help.status, 0);
    ExpectNarrow(help.output);
  }
}

}  // namespace
}  // namespace boltbeam
