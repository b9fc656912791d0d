// One file that holds a ledger, and putting such a file into another ledger: chains are merged, never mixed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ledger/ledger.h"

namespace boltbeam::ledger {

/// Every line of every chain as it is, then the blobs that they name, one line each. kLedgerDamaged when a chain is.
Result<std::string> Export(const Ledger& ledger, const std::string& writer, bool with_samples);

struct ImportResult {
  std::vector<std::string> new_chains, extended_chains, known_chains;  // writers
  std::uint64_t records = 0;                                           // added by them
  std::uint64_t blobs = 0;                                             // added
  std::uint64_t missing_blobs = 0;                                     // that the records name and neither side has
  std::uint64_t foreign = 0;        // records of the Python tool, now verdicts of this writer
  std::uint64_t known_foreign = 0;  // imported before
};

/// where: for messages. Nothing is written when any line of it can't be taken.
/// kLedgerFork: a chain of the file and the one here go on differently. kLedgerImport: a line that is neither.
/// kLedgerDamaged: the chain here that it would continue is damaged or has a torn end, which a repair keeps aside.
Result<ImportResult> Import(Ledger& ledger, std::string_view text, const std::string& where);

/// A row of the Python tool's route ledger (boltbeam.route_ledger_entry.v1) as a verdict. What it promoted becomes a
/// candidate: nothing is promoted that was not judged here.
Result<Verdict> VerdictOfRouteEntry(const nlohmann::json& entry, std::string_view line, const std::string& where);
inline constexpr std::string_view kRouteEntrySchema = "boltbeam.route_ledger_entry.v1";

}  // namespace boltbeam::ledger
