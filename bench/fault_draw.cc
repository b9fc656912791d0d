// Faults put into tokens on purpose, drawn blindly over kinds and rows, and what the audit says of each: the confusion
// table.
//
//   fault_draw [--seed 1] [--faults 40] [--clean 20] [--seconds 1] [--layers 12] [--log FILE] [--minutes 4]
//
// Every fault is first weighed: tokens with it and without it in turns, A B B A. One that is worth less than 2 % of the
// token is drawn again. Then the audit runs as it would for anyone; its largest finding, kind and row, is compared with
// what was drawn; the exit status is 1 when fewer than nine of ten faults are right or a clean run names one. Bandwidth
// is taken, and a quota set, by means of the system: another process, a control group. With --log the trials made are
// kept in a file and the next run goes on after them: exit status 2 while some are missing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <random>

#include "base/ticks.h"
#include "fault_log.h"
#include "fault_stage.h"
#include "fault_system.h"

namespace boltbeam {
namespace {

struct Arguments {
  std::uint64_t seed = 1;
  std::size_t faults = 40, clean = 20;
  std::string only, log;
  double minutes = 0;
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

FaultRow RowOf(std::size_t index, const Fault& fault, const Stage::Trial& trial, std::size_t redrawn) {
  const Said& said = trial.said;
  const bool is_right = said.kind == NameOf(fault.kind) && said.row == fault.row;
  return {index, NameOf(fault.kind), fault.row, trial.worth, said.kind, said.row, said.share, redrawn, is_right};
}

void Print(const FaultRow& row, const std::string& words) {
  fmt::print("{:4} {} {:9} {:11} worth {:4.1f} %, said {:9} {:11} {:4.1f} % {}\n", row.index + 1,
             row.is_right ? "ok" : "NO", row.kind, row.row, row.worth * 100, row.said, row.said_row,
             row.said_share * 100, words);
  std::cout << std::flush;
}

// Whatever was drawn before has no part in what is drawn for a trial, so that trials can be made in any session.
std::optional<FaultRow> TryOne(Stage& stage, const Arguments& arguments, std::size_t index, bool is_fault) {
  constexpr std::size_t kMostDrawn = 12;
  std::seed_seq seed{arguments.seed, static_cast<std::uint64_t>(index)};
  std::mt19937_64 random(seed);
  for (std::size_t redrawn = 0; redrawn < kMostDrawn; ++redrawn) {
    const Fault fault = is_fault ? Draw(random, arguments.only) : Fault{};
    const auto trial = stage.Try(fault);
    if (trial) {
      FaultRow row = RowOf(index, fault, *trial, redrawn);
      Print(row, row.is_right ? "" : trial->said.words);
      return row;
    }
    fmt::print("   - {} {}: can't be made to be worth 2 % here, drawn again\n", NameOf(fault.kind), fault.row);
  }
  return std::nullopt;
}

// The confusion table of all rows; 0 when enough is right, 1 when not, 2 while trials are missing.
int Conclude(const Arguments& arguments, const std::vector<FaultRow>& rows) {
  std::map<std::string, std::map<std::string, int>> confusion;
  std::size_t right = 0, quiet = 0, faults = 0, redrawn = 0;
  for (const FaultRow& row : rows) {
    const bool is_fault = row.kind != NameOf(FaultKind::kClean);
    faults += is_fault ? 1 : 0;
    (is_fault ? right : quiet) += row.is_right ? 1 : 0;
    redrawn += row.redrawn;
    ++confusion[row.kind][row.said == row.kind && !row.is_right ? row.said + ", other row" : row.said];
  }
  fmt::print("\nput in    said\n");
  for (const auto& [truth, row] : confusion) {
    fmt::print("{:9}", truth);
    for (const auto& [said, count] : row) fmt::print(" {}: {};", said, count);
    fmt::print("\n");
  }
  fmt::print("{} of {} faults right, {} of {} clean runs named none, {} drawn again, seed {}\n", right, faults, quiet,
             rows.size() - faults, redrawn, arguments.seed);
  if (rows.size() < arguments.faults + arguments.clean) return 2;
  constexpr double kLeastRight = 0.9;
  const bool is_enough = static_cast<double>(right) >= kLeastRight * static_cast<double>(arguments.faults);
  return is_enough && quiet == arguments.clean ? 0 : 1;
}

int Main(const Arguments& arguments) {
  if (!arguments.stage.in_quota.empty()) {
    const NoPriority no_priority;
    Stage(arguments.stage).RunInQuota();
    return 0;
  }
  std::vector<bool> is_fault(arguments.faults, true);
  is_fault.resize(arguments.faults + arguments.clean, false);
  std::mt19937_64 random(arguments.seed);
  std::shuffle(is_fault.begin(), is_fault.end(), random);
  const std::uint64_t begin = base::MonotonicNs();
  std::vector<FaultRow> rows = ReadFaultRows(arguments.log);
  Stage stage(arguments.stage);
  for (std::size_t index = 0; index < is_fault.size(); ++index) {
    if (std::ranges::find(rows, index, &FaultRow::index) != rows.end()) continue;
    if (arguments.minutes > 0 && base::SecondsSince(begin) > 60 * arguments.minutes) break;
    const std::optional<FaultRow> row = TryOne(stage, arguments, index, is_fault[index]);
    if (!row) return 1;
    rows.push_back(*row);
    AppendFaultRow(arguments.log, *row);
  }
  return Conclude(arguments, rows);
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
  app.add_option("--log", arguments.log, "A file of the trials made, that the next run goes on with");
  app.add_option("--minutes", arguments.minutes, "Begin no trial after so many (0: make all)")->capture_default_str();
  app.add_option("--only", arguments.only, "Draw this kind only, by the audit's name");
  app.add_option("--in-quota", arguments.stage.in_quota)->group("");
  app.add_flag("--verbose", arguments.stage.verbose, "Print each account");
  CLI11_PARSE(app, argc, argv);
  return boltbeam::Main(arguments);
}
