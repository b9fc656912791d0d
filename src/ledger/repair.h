// Mending a damaged chain, so that it can be written again: what is good stays, and nothing is dropped in silence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "ledger/ledger.h"

namespace boltbeam::ledger {

struct Repaired {
  std::string writer;         // of the chain
  std::string fault;          // what verify names
  std::uint64_t records = 0;  // that stayed
  std::uint64_t cut_at_byte = 0, cut_bytes = 0;
  std::uint64_t whole_records = 0;  // among what was cut: lines that are records by themselves, behind the damage
  std::string kept;                 // SHA-256 of the blob that holds what was cut; empty: nothing was
  std::string kept_anchor;          // of the anchor as it was found; empty: there was none
  Receipt recovery;                 // the record that says all that, in this writer's chain
};

/// Mends every chain of the folder that is damaged or ends in what is no record, or the one of `writer`. What does not
/// belong to the good beginning of a chain goes into a blob first, with its anchor. This writer's own chain is
/// continued by a recovery record; a chain of another writer ends where it is good, so that `import` of a sound copy
/// continues it, and the recovery record is added to this writer's. Nothing when all are whole. kLedgerNoRecord: no
/// chain of that writer. After a failure the chain is as it was, or mended; to repair again is always safe.
Result<std::vector<Repaired>> Repair(Ledger& ledger, const std::string& writer);

}  // namespace boltbeam::ledger
