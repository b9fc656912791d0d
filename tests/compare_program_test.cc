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
