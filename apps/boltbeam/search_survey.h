// The first two stages of `boltbeam search`: what could be tried, and what it is foretold to take. They run without the
// chip.
#pragma once

#include <cstdint>
#include <string>

#include "command.h"

namespace boltbeam::app {

struct SurveyArguments {
  std::string model, chip;
  std::string isa;      // of this machine
  bool predict = true;  // else the proposals alone
  std::uint64_t depth = 512;
  std::uint32_t threads = 0;  // 0: as many as `run` takes, or the cores that --chip declares
};

/// Adds --chip and --depth.
void AddSurveyFlags(CLI::App& command, SurveyArguments& arguments);

Result<void> SurveyAndReport(const Globals& globals, const SurveyArguments& arguments);

}  // namespace boltbeam::app
