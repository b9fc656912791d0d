// Faults put into tokens on purpose, drawn blindly over kinds and rows, and what the audit says of each: the confusion
// table.
//
//   fault_draw [--seed 1] [--faults 40] [--clean 20] [--seconds 1] [--layers 12]
//
// Every fault is first weighed: tokens with it and without it in turns, A B B A. One that is worth less than 2 % of the
// token is drawn again. Then the audit runs as it would for anyone; its largest finding, kind and row, is compared with
// what was drawn; the exit status is 1 when fewer than nine of ten faults are right or a clean run names one. Bandwidth
// is taken, and a quota set, by means of the system: another process, a control group.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <random>

#include "fault_stage.h"
#include "fault_system.h"

namespace boltbeam {
namespace {

struct Arguments {
  std::uint64_t seed = 1;
  std::size_t faults = 40, clean = 20;
  std::string only;
  StageOptions stage;
};

Fault Draw(std::mt19937_64& random, const std::string& only) {
  static const std::vector<FaultKind> kKinds = {FaultKind::kSlowKernel, FaultKind::kSlowBarrier, FaultKind::kLateThread,
                                                FaultKind::kScattered,  FaultKind::kLaunches,    FaultKind::kTaken,
                                                FaultKind::kQuota};
  static const std::vector<std::string> kRows = {"lm_head", "ffn_gate_up", "ffn_down", "attn_qo"};
  const auto below = [&](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  };
  Fault fault;
  do fault.kind = kKinds[below(kKinds.size())];
  while (!only.empty() && NameOf(fault.kind) != only);
  if (HasRow(fault.kind)) fault.row = kRows[below(kRows.size())];
  fault.aim = std::uniform_real_distribution<double>(0.05, 0.12)(random);
  fault.thread = static_cast<std::uint32_t>(below(kFaultThreads));
  return fault;
}

int Main(const Arguments& arguments) {
  if (!arguments.stage.in_quota.empty()) {
    const NoPriority no_priority;
    Stage(arguments.stage).RunInQuota();
    return 0;
  }
  std::mt19937_64 random(arguments.seed);
  Stage stage(arguments.stage);
  std::vector<bool> is_fault(arguments.faults, true);
  is_fault.resize(arguments.faults + arguments.clean, false);
  std::shuffle(is_fault.begin(), is_fault.end(), random);
  std::map<std::string, std::map<std::string, int>> confusion;
  std::map<std::string, std::size_t> redrawn_by_kind;
  std::size_t right = 0, quiet = 0, redrawn = 0;
  for (std::size_t index = 0; index < is_fault.size(); ++index) {
    Fault fault;
    std::optional<Stage::Trial> trial;
    while (!trial) {
      fault = is_fault[index] ? Draw(random, arguments.only) : Fault{};
      trial = stage.Try(fault);
      if (trial) break;
      fmt::print("   - {} {}: can't be made to be worth 2 % here, drawn again\n", NameOf(fault.kind), fault.row);
      ++redrawn_by_kind[NameOf(fault.kind)];
      if (++redrawn > 4 * is_fault.size()) return 1;
    }
    const Said& said = trial->said;
    const bool is_right = said.kind == NameOf(fault.kind) && said.row == fault.row;
    (is_fault[index] ? right : quiet) += is_right ? 1 : 0;
    ++confusion[NameOf(fault.kind)]
               [said.kind == NameOf(fault.kind) && !is_right ? said.kind + ", other row" : said.kind];
    fmt::print("{:4} {} {:9} {:11} worth {:4.1f} %, said {:9} {:11} {:4.1f} % {}\n", index + 1, is_right ? "ok" : "NO",
               NameOf(fault.kind), fault.row, trial->worth * 100, said.kind, said.row, said.share * 100,
               is_right ? "" : said.words);
    std::cout << std::flush;
  }
  fmt::print("\nput in    said\n");
  for (const auto& [truth, row] : confusion) {
    fmt::print("{:9}", truth);
    for (const auto& [said, count] : row) fmt::print(" {}: {};", said, count);
    fmt::print("\n");
  }
  fmt::print("{} of {} faults right, {} of {} clean runs named none, seed {}\n", right, arguments.faults, quiet,
             arguments.clean, arguments.seed);
  for (const auto& [kind, count] : redrawn_by_kind) fmt::print("drawn again: {} {} times\n", kind, count);
  constexpr double kLeastRight = 0.9;
  const bool is_enough = static_cast<double>(right) >= kLeastRight * static_cast<double>(arguments.faults);
  return is_enough && quiet == arguments.clean ? 0 : 1;
}

}  // namespace
}  // namespace boltbeam

int main(int argc, char** argv) {
  boltbeam::Arguments arguments;
  CLI::App app("Faults put into tokens on purpose, and what the audit says of them");
  app.add_option("--seed", arguments.seed, "Of what is drawn")->capture_default_str();
  app.add_option("--faults", arguments.faults, "Faults")->capture_default_str();
  app.add_option("--clean", arguments.clean, "Runs without one, among them")->capture_default_str();
  app.add_option("--seconds", arguments.stage.seconds, "Of rounds of each audit")->capture_default_str();
  app.add_option("--layers", arguments.stage.layers, "Of the synthetic model")->capture_default_str();
  app.add_option("--only", arguments.only, "Draw this kind only, by the audit's name");
  app.add_option("--in-quota", arguments.stage.in_quota)->group("");
  app.add_flag("--verbose", arguments.stage.verbose, "Print each account");
  CLI11_PARSE(app, argc, argv);
  return boltbeam::Main(arguments);
}
