// The last stage of `boltbeam search`: what the proposals and predictions left is timed, the winner judged and
// installed.
#pragma once

#include <string>

#include "command.h"
#include "loading.h"

namespace boltbeam::app {

struct DecideArguments {
  std::string model;
  EngineFlags engine;
  std::string from = "default";  // what runs now: default, worst, an instruction set, a plan's file or name
  std::string budget = "170s";
  std::string reference;  // the judge's
  std::size_t most_timed = 12;
  bool fusions = false, attention = false;  // judged on whole tokens, too
  std::uint64_t depth = 512;                // for attention
  bool no_judge = false;                    // stop when the parts are decided
  bool uninstall = false;  // remove the plans that were made for this model's tables, and do nothing else
};

/// Adds --from, --budget, --most-timed, -t, --isa, --fusions, --attention, --reference and --uninstall.
void AddDecideFlags(CLI::App& command, DecideArguments& arguments);

Result<void> SearchAndDecide(Globals& globals, const DecideArguments& arguments);
/// Removes what was installed for exactly the model's tables on this chip.
Result<void> UninstallPlans(const Globals& globals, const DecideArguments& arguments);

}  // namespace boltbeam::app
