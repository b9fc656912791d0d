// Test support: faults as loops over whatever writes to a ledger: a record, a repair, an import. After each case the
// ledger must verify, and what was said about it must be true: at once, after a further record, and after a power loss
// that keeps nothing unconfirmed. What only had to be tried again must have been done.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ledger/testing/scenario.h"

namespace boltbeam::ledger {

struct Case {
  SimulatedDisk disk;
  std::vector<Said> said;  // of records
  bool is_done = false;    // the call returned a result
};

/// Something that writes to a ledger as it was found.
struct Task {
  std::string name;
  Case begin;
  std::function<void(Case&)> act;            // sets what was said and is_done
  std::function<void(Case&)> again;          // what is done next by whoever finds the ledger after a power loss
  std::function<std::string(Case)> unsound;  // empty, or what is wrong with what is left
};

/// Three records; of each way in which a ledger is found.
std::vector<Task> AppendTasks(std::vector<Start> starts);
/// A damaged chain of this writer or of another one, or a torn one, is mended; what was recorded in the other chains
/// and in front of the damage stays.
std::vector<Task> RepairTasks();
/// Chains with samples and a route entry arrive where there is nothing, other chains, or a part of them.
std::vector<Task> ImportTasks();

struct LoopResult {
  std::uint64_t cases = 0;
  std::set<std::string> states;  // hashes of the different ledgers that they left: each is checked once
  std::string wrong;             // the first case that failed and why; empty: none
};

/// Every file operation x {ENOSPC, EIO, EINTR, short write, fsync failure} x {once, for ever}. One interruption, and
/// writes that are short for ever, must not keep anything from being done.
LoopResult LoopOverFaults(const std::vector<Task>& tasks);
/// Power loss at every file operation x what survives of the unconfirmed changes.
LoopResult LoopOverPowerLosses(const std::vector<Task>& tasks, std::uint32_t seeds);
/// A power loss at every stride-th operation, then a fault or a second power loss at every operation of what is done
/// next.
LoopResult LoopOverSecondFaults(const std::vector<Task>& tasks, std::uint32_t seed, std::uint64_t stride);

}  // namespace boltbeam::ledger
