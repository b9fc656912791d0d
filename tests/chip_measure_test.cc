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
  const auto value = [&](const std::string& name) {
    const auto fact = std::ranges::find(facts, name, [](const json& one) { return one.at("name").get<std::string>(); });
    EXPECT_NE(fact, facts.end()) << name;
    return fact == facts.end() ? -1 : fact->at("value").get<double>();
  };
  for (const char* name : {"copy_bandwidth_gb_s", "write_bandwidth_gb_s", "memory_latency_ns", "bytes_in_flight",
                           "read_bandwidth_again_gb_s.threads_1", "vector_instructions_s.threads_1", "fma_f32_flop_s",
                           "dot_i8_flop_s", "madd_i8_flop_s", "madd_i16_flop_s"}) {
    EXPECT_GT(value(name), 0) << name;
  }
  for (const char* name : {"read_bandwidth_drift", "vector_instructions_s.drift", "fma_f32_flop_s.drift"}) {
    EXPECT_GE(value(name), 0) << name;
  }
  EXPECT_NEAR(value("bytes_in_flight"), value("read_bandwidth_gb_s") * value("memory_latency_ns"),
              0.001 * value("bytes_in_flight"));
  const auto issue = std::ranges::find(facts, "vector_instructions_s",
                                       [](const json& one) { return one.at("name").get<std::string>(); });
  const std::string method = issue == facts.end() ? "" : issue->at("method").get<std::string>();
  for (const char* sweep : {"grid 1", "; accumulators 8, 10, 12, 16: ", "; grid again with ", "; drift "}) {
    EXPECT_NE(method.find(sweep), std::string::npos) << method;
  }

  const ProgramOutcome listed = RunBoltbeam("ledger list --kind chip_facts" + home);
  EXPECT_NE(listed.output.find(fmt::format("{} facts", facts.size())), std::string::npos) << listed.output;
  EXPECT_EQ(RunBoltbeam("ledger verify" + home).status, 0);
  const json chip = json::parse(RunBoltbeam("chip show -o json" + home).output, nullptr, false);
  EXPECT_NE(chip.dump().find(read->at("date").get<std::string>()), std::string::npos) << chip.dump();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace boltbeam
