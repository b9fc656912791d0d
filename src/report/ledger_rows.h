// One record in a few words. Not for other modules.
#pragma once

#include <string>

#include "ledger/index.h"
#include "ledger/records.h"

namespace boltbeam::report {

/// "12" for this writer's, otherwise "writer:12".
std::string RecordId(const std::string& writer, std::uint64_t seq, const std::string& own_writer);
/// 2026-11-29 12:00
std::string ShortTime(const std::string& time);
/// "0.952 (0.941 to 0.963)", or empty.
std::string RatioText(const ledger::Verdict& verdict);
/// What it is about: a candidate, a chip.
std::string AboutText(const ledger::Row& row);
/// What it says: "refute 1.052 (1.041 to 1.063): slower at every depth".
std::string SaysText(const ledger::Row& row);

}  // namespace boltbeam::report
