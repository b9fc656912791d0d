// `boltbeam chip measure` as a person runs it: the facts are shown, kept for the next command, and remembered.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "boltbeam_program.h"

namespace boltbeam {
namespace {

using nlohmann::json;

TEST(ChipMeasureProgram, FactsAreKeptAndRemembered) {
  const auto folder = std::filesystem::path(testing::TempDir()) / fmt::format("chip_measure_{}", ::getpid());
  const std::string home = " --home " + folder.string() + " 2>/dev/null";
  const ProgramOutcome measured = RunBoltbeam("chip measure -o json" + home);
  constexpr int kUnstable = 3;
  if (measured.status == kUnstable) GTEST_SKIP() << "refused on a machine that others use";
  ASSERT_EQ(measured.status, 0) << measured.output;
  const json facts = json::parse(measured.output).at("facts");
  const auto read = std::ranges::find(facts, "read_bandwidth_gb_s", [](const json& fact) { return fact.at("name"); });
  ASSERT_NE(read, facts.end()) << measured.output;
  EXPECT_GT(read->at("value").get<double>(), 0);

  const ProgramOutcome listed = RunBoltbeam("ledger list --kind chip_facts" + home);
  EXPECT_NE(listed.output.find(fmt::format("{} facts", facts.size())), std::string::npos) << listed.output;
  EXPECT_EQ(RunBoltbeam("ledger verify" + home).status, 0);
  const json chip = json::parse(RunBoltbeam("chip show -o json" + home).output, nullptr, false);
  EXPECT_NE(chip.dump().find(read->at("date").get<std::string>()), std::string::npos) << chip.dump();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace boltbeam
