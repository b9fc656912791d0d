// Programs as sides: a shell command that prints how many tokens per second it reached.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "judge/judge.h"

namespace boltbeam::judge {

/// What the command printed on stdout. kUsage with its exit status; its stderr goes where ours goes.
Result<std::string> RunProgram(const std::string& command);

/// The rate in what a program printed: `avg_ts` of llama-bench's JSON (of the last test), or else the last number of
/// the last line that holds one. kUsage when there is none; kMeasurementImpossible when it is not above 0.
Result<double> TokensPerSecond(std::string_view text);

/// The text in single quotes, for a shell.
std::string ShellQuoted(std::string_view text);

struct ProgramSide {
  std::string command;  // prints a rate
  std::string output;   // prints the text that it generates; empty: it can't be compared
  bool is_boltbeam = false;
};

struct ProgramContext {
  std::string off_switch;
  std::string route;  // in words; empty: it can't be seen
};

/// A window is one run of the command. Each side is run once before anything is timed.
Result<Run> ComparePrograms(const ProgramSide& a, const ProgramSide& b, const ProgramContext& context,
                            const Request& request, const Thresholds& thresholds, const Hooks& hooks = {});

}  // namespace boltbeam::judge
