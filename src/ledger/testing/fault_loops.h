// Test support: faults as loops. After each case the ledger must verify, and what was said about every record must be
// true: at once, after a further record, and after a power loss that keeps nothing unconfirmed.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "ledger/testing/scenario.h"

namespace boltbeam::ledger {

struct LoopResult {
  std::uint64_t cases = 0;
  std::set<std::string> states;  // hashes of the different ledgers that they left: each is checked once
  std::string wrong;             // the first case that failed and why; empty: none
};

/// Every file operation of three records x {ENOSPC, EIO, EINTR, short write, fsync failure} x {once, for ever}.
LoopResult LoopOverFaults(std::span<const Start> starts);
/// Power loss at every file operation x what survives of the unconfirmed changes.
LoopResult LoopOverPowerLosses(std::span<const Start> starts, std::uint32_t seeds);
/// A power loss at every operation, then a fault or a second power loss at every operation of the recovery.
LoopResult LoopOverSecondFaults(std::span<const Start> starts, std::uint32_t seed);

}  // namespace boltbeam::ledger
