// `boltbeam compare` as a person runs it: imports, published ledgers, two stored accounts, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "boltbeam_program.h"
#include "report/table.h"

namespace boltbeam {
namespace {

const std::string kData = BOLTBEAM_TEST_DATA;

void ExpectNarrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(report::DisplayWidth(line), 80U) << line;
}

// Every file of tests/data/imports: an answer, or a refusal that says why; never a signal.
TEST(CompareProgram, ImportsEveryFile) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kData + "/imports")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const ProgramOutcome outcome = RunBoltbeam("compare --import '" + entry.path().string() + "' 2>/dev/null");
    EXPECT_TRUE(outcome.status == 0 || outcome.status == 1) << entry.path() << " " << outcome.status;
    ExpectNarrow(outcome.output.substr(
        std::min(outcome.output.find('\n'), outcome.output.size())));  // the path is as long as it is
  }
  EXPECT_GT(files, 85U);
}

TEST(CompareProgram, ImportAsJson) {
  const ProgramOutcome outcome =
      RunBoltbeam("compare --import " + kData + "/imports/nsys/cuda_gpu_kern_sum-2024.6-llama8b.csv -o json");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const auto document = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(document["schema"], "boltbeam.import.v1");
  EXPECT_EQ(document["totals"]["kernel"]["calls"], 679);
  EXPECT_EQ(document["totals"]["kernel"]["total_ns"], 198511027);
  EXPECT_FALSE(document.contains("timeline"));
}

TEST(CompareProgram, DamagedFilesSayLineAndReason) {
  const ProgramOutcome outcome = RunBoltbeam(
      "compare --import " + kData + "/imports/llama-bench/tricky-llama-bench-2023-header-shorter-than-rows.csv");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find(".csv:2: 27 values under 26 names"), std::string::npos) << outcome.output;
}

TEST(CompareProgram, LedgersClose) {
  for (const char* file : {"seed-tie-outs", "m3-parts", "decode-ledger", "active-body-ledger", "lifecycle-ledger",
                           "wall-account", "kernel-census"}) {
    const ProgramOutcome outcome = RunBoltbeam("compare --import " + kData + "/golden/" + file + ".json 2>&1");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("The account closes."), std::string::npos) << file;
    ExpectNarrow(outcome.output.substr(outcome.output.find('\n')));
  }
}

// Another program of which only tokens per second are seen; here it is this one.
TEST(CompareProgram, WholeTokensBesideACommand) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "compare_command";
  std::filesystem::create_directories(folder);
  const std::string model = (folder / "model.gguf").string(), home = " --home " + (folder / "home").string();
  ASSERT_EQ(RunBoltbeam("synth tiny-llama:Q4_K_M --out " + model).status, 0);
  const std::string command =
      std::string(BOLTBEAM_PROGRAM) + " bench -m " + model + " -p 0 -n 16 -r 1 -t 1 -o json" + home;
  const ProgramOutcome outcome =
      RunBoltbeam("compare " + model + " -t 1 --window 16 --seconds 0.5 -o json --command '" + command +
                  " 2>/dev/null'" + home + " 2>/dev/null");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const auto document = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(document["paired"].size(), 1U);
  const auto& paired = document["paired"][0];
  EXPECT_GE(paired["pairs"], 4);
  EXPECT_GT(paired["ratio_low"], 0);
  EXPECT_LE(paired["ratio_low"], paired["ratio"]);
  EXPECT_LE(paired["ratio"], paired["ratio_high"]);
  EXPECT_TRUE(document["regions"].empty());
  const ProgramOutcome silent = RunBoltbeam("compare " + model + " -t 1 --seconds 0.1 --command true" + home);
  EXPECT_NE(silent.status, 0);
  std::filesystem::remove_all(folder);
}

TEST(CompareProgram, RefusesWhatItCanNotCompare) {
  EXPECT_EQ(RunBoltbeam("compare").status, 2);
  EXPECT_NE(RunBoltbeam("compare").output.find("two stored accounts"), std::string::npos);
  EXPECT_EQ(RunBoltbeam("compare a b c").status, 2);
  const ProgramOutcome text = RunBoltbeam("compare " + kData + "/prose.txt " + kData + "/prose.txt");
  EXPECT_EQ(text.status, 1);
  EXPECT_NE(text.output.find("no JSON"), std::string::npos) << text.output;
  EXPECT_EQ(RunBoltbeam("compare " + kData + "/golden/wall-account.json " + kData + "/golden/wall-account.json").status,
            1);
  const ProgramOutcome help = RunBoltbeam("compare --help");
  EXPECT_EQ(help.status, 0);
  ExpectNarrow(help.output);
}

}  // namespace
}  // namespace boltbeam
