// `boltbeam bound` for a measured CPU: the second ceiling, and what an instruction set changes of it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "boltbeam_program.h"
#include "report/table.h"
#include "test_model.h"

namespace boltbeam {
namespace {

using nlohmann::json;

constexpr const char* kChip = R"({"schema": "boltbeam.chip.v1", "id": "test-cpu", "name": "a test's CPU",
  "backend": "cpu", "features": ["pni", "ssse3", "sse4_1", "sse4_2", "popcnt", "avx", "f16c", "fma", "avx2", "bmi1",
  "bmi2", "avx512f", "avx512cd", "avx512dq", "avx512bw", "avx512vl", "avx512_vnni"], "source": "this test",
  "facts": [
    {"name": "read_bandwidth_gb_s", "value": 50, "unit": "GB/s", "provenance": "measured", "method": "m", "date": "2026-11"},
    {"name": "read_bandwidth_gb_s.threads_1", "value": 30, "unit": "GB/s", "provenance": "measured", "method": "m", "date": "2026-11"},
    {"name": "read_bandwidth_gb_s.threads_2", "value": 50, "unit": "GB/s", "provenance": "measured", "method": "m", "date": "2026-11"},
    {"name": "vector_bits", "value": 512, "unit": "bits", "provenance": "detected", "method": "m"},
    {"name": "vector_instructions_s", "value": 1.4e10, "unit": "/s", "provenance": "measured", "method": "m", "date": "2026-11"},
    {"name": "vector_instructions_s.bits_128", "value": 2.8e10, "unit": "/s", "provenance": "measured", "method": "m", "date": "2026-11"},
    {"name": "vector_instructions_s.bits_256", "value": 2.8e10, "unit": "/s", "provenance": "measured", "method": "m", "date": "2026-11"},
    {"name": "dot_i8_flop_s", "value": 8e11, "unit": "OP/s", "provenance": "measured", "method": "m", "date": "2026-11"},
    {"name": "madd_i8_flop_s", "value": 5e11, "unit": "OP/s", "provenance": "measured", "method": "m", "date": "2026-11"},
    {"name": "madd_i8_flop_s.bits_256", "value": 3e11, "unit": "OP/s", "provenance": "measured", "method": "m", "date": "2026-11"}
  ]})";

class BoundProgram : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / fmt::format("bound_{}", ::getpid());
    std::filesystem::create_directories(folder_);
    chip_ = (folder_ / "chip.json").string();
    std::ofstream(chip_) << kChip;
    model_ = file_.Write();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  ProgramOutcome Run(const std::string& more) {
    return RunBoltbeam(fmt::format("bound {} --chip {} --home {} {}", model_, chip_, folder_.string(), more));
  }
  json Json(const std::string& more) {
    const ProgramOutcome outcome = Run("-o json " + more);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return json::parse(outcome.output);
  }
  static json Part(const json& bound, const std::string& role) {
    for (const json& part : bound.at("parts")) {
      if (part.at("role") == role) return part;
    }
    ADD_FAILURE() << role;
    return {};
  }

  std::filesystem::path folder_;
  std::string chip_, model_;
  model::TestModel file_{"llama", {}, "Q4_0", [](const auto&, auto) { return "Q4_0"; }};
};

TEST_F(BoundProgram, AnInstructionSetChangesInstructionsAndPeaks) {
  const json all = Json(""), less = Json("--isa avx2");
  const json wide = Part(all, "ffn_down"), narrow = Part(less, "ffn_down");
  EXPECT_EQ(wide.at("instructions_from"), "machine_code");
  EXPECT_GT(narrow.at("vector_instructions").get<double>(), 1.5 * wide.at("vector_instructions").get<double>());
  EXPECT_EQ(wide.at("peak_flop_s"), 8e11);
  EXPECT_EQ(narrow.at("peak_flop_s"), 3e11);
  EXPECT_EQ(less.at("chip").at("name"), "a test's CPU held to avx2");
  EXPECT_EQ(wide.at("ceilings").size(), 2U);
  for (const json& ceiling : wide.at("ceilings")) {
    const double instructions = wide.at("vector_instructions").get<double>();
    // Nearly all of them are wide; the narrow ones go at twice the rate.
    const double ns = instructions / (0.7e10 * ceiling.at("threads").get<double>()) * 1e9;
    EXPECT_LE(ceiling.at("unpack_floor_ns").get<double>(), ns);
    EXPECT_GT(ceiling.at("unpack_floor_ns").get<double>(), ns * 0.9);
    const bool binds = ceiling.at("unpack_floor_ns") > ceiling.at("bytes_floor_ns");
    EXPECT_EQ(ceiling.at("binds"), binds ? "instructions" : "memory");
  }
}

TEST_F(BoundProgram, AttentionAndSmallStepsHaveAFloorAtEveryDepth) {
  const json bound = Json("-d 0,512");
  for (const char* role : {"attention", "norm", "rope"}) {
    EXPECT_GT(Part(bound, role).at("vector_instructions").get<double>(), 0) << role;
  }
  const json& depths = bound.at("depths");
  // 2 layers, 4 heads of 64: 512 positions more are 2 x 4 x 512 x 128 products, 16 a lane.
  const double more = depths[1].at("attention_vector_instructions").get<double>() -
                      depths[0].at("attention_vector_instructions").get<double>();
  EXPECT_GT(more, 2 * 4 * 512 * 128 / 16);
  EXPECT_LT(more, 3.0 * 2 * 4 * 512 * 128 / 16);
  EXPECT_EQ(depths[1].at("ceilings").size(), 2U);
}

// Without vector instructions worth the name the code can't keep up with the memory, and the first table says so.
TEST_F(BoundProgram, TheLimitOfPlainCodeIsItsInstructions) {
  EXPECT_EQ(Part(Json(""), "ffn_down").at("limit"), "memory");
  const json plain = Json("--isa plain");
  EXPECT_EQ(Part(plain, "ffn_down").at("limit"), "instructions");
  EXPECT_EQ(plain.at("token").at("limit"), "instructions");
}

TEST_F(BoundProgram, WhatWasNotMeasuredSoNarrowIsSaid) {
  std::string chip = kChip;
  const std::string name = "vector_instructions_s.bits_128";
  chip.replace(chip.find(name), name.size(), "vector_instructions_s.bits_64");
  std::ofstream(chip_) << chip;
  const json plain = Json("--isa plain");
  EXPECT_EQ(Part(plain, "ffn_down").at("unpack_floor_ns"), nullptr);
  EXPECT_NE(plain.at("instructions_missing").get<std::string>().find("128-bit"), std::string::npos);
  const ProgramOutcome refused = Run("--isa neon");
  EXPECT_EQ(refused.status, 2) << refused.output;
  EXPECT_NE(refused.output.find("plain, avx2, avx512, vnni"), std::string::npos) << refused.output;
}

TEST_F(BoundProgram, FitsATerminal) {
  std::istringstream lines(Run("").output);
  std::string line;
  std::getline(lines, line);  // the path
  while (std::getline(lines, line)) EXPECT_LE(report::DisplayWidth(line), 80U) << line;
}

}  // namespace
}  // namespace boltbeam
