// Programs as sides: a shell command that prints how many tokens per second it reached.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "judge/judge.h"

namespace boltbeam::judge {

struct ProgramSide {
  std::string command;  // prints a rate; {depth} in it stands for the tokens in the context
  std::string output;   // prints the text that it generates; empty: it can't be compared
  bool is_boltbeam = false;
};

struct ProgramContext {
  std::string off_switch;
  std::optional<bool> off_switch_gives_a;  // as in EngineContext
  std::string route;                       // in words; empty: it can't be seen
};

/// At each depth, if both commands take one; else at the smallest alone. A window is one run of the command. Each side
/// is run once before anything is timed.
Result<Run> ComparePrograms(const ProgramSide& a, const ProgramSide& b, const ProgramContext& context,
                            const Request& request, const Thresholds& thresholds, const Hooks& hooks = {});

}  // namespace boltbeam::judge
