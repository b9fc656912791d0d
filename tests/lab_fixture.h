// A home of its own, and rows of another machine in it, for tests of the lab's commands.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "boltbeam_program.h"

namespace boltbeam {

inline std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Lab : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/boltbeam-lab-" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    std::ofstream rows(folder_ + "/theirs.jsonl");
    const double scatter[] = {2e-5, -1e-5, -3e-5, 3e-5, -1e-5};
    for (int i = 0; i < 5; ++i) {
      rows << nlohmann::json{{"experiment", "ladder"},
                             {"alias", "office"},
                             {"device", "A chip"},
                             {"model", "folder/dense-" + std::to_string(i)},
                             {"weight_bytes_per_token", 1e9 * (i + 1)},
                             {"generation_tps", 1 / (1.67e-3 + (i + 1) / 497.0 + scatter[i])},
                             {"spec_gbps", 819}}
           << "\n";
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  ProgramOutcome Run(const std::string& arguments) { return RunBoltbeam("--home " + folder_ + "/own " + arguments); }
  nlohmann::json Json(const std::string& arguments) {
    const ProgramOutcome outcome = Run(arguments + " -o json 2>/dev/null");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return nlohmann::json::parse(outcome.output, nullptr, false);
  }
  std::string Rows() const { return folder_ + "/theirs.jsonl"; }

  std::string folder_;
};

}  // namespace boltbeam
