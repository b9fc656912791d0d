// The whole ledger, read and judged: every line of every chain, every anchor, every blob that a record names.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "ledger/chain.h"

namespace boltbeam::ledger {

struct Verification {
  std::vector<Chain> chains;
  std::vector<Error> faults;       // what was edited, cut, damaged or is missing, by file and line
  std::vector<std::string> notes;  // what is no fault: a torn end that the next record recovers, a missing anchor
  std::uint64_t records = 0;
  std::uint64_t blobs = 0;  // named by records, present and right
};

Result<Verification> Verify(FileOps& files, const std::string& folder);

/// The blobs that a record names.
std::vector<std::string> BlobsOf(const Record& record);

}  // namespace boltbeam::ledger
