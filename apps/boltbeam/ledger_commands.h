// What the files of `boltbeam ledger` share.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "command.h"
#include "ledger/index.h"
#include "ledger/ledger.h"
#include "ledger/rederive.h"
#include "ledger/reopen.h"

namespace boltbeam::app {

Result<ledger::Ledger> OpenLedger(const Globals& globals);
/// The index of its chains. What of them can't be read is said on stderr: nothing is left out in silence.
Result<ledger::Index> OpenIndex(const ledger::Ledger& memory);

/// What makes machine code of kernels: LLVM's release and the revision of the lowering, by the names of ledger::Facts.
std::map<std::string, std::string> BuildFacts();

/// What is true of this machine and this build, for the conditions that reopen a refutation.
ledger::Facts CurrentFacts(const Globals& globals);

/// Every form of samples that this program can compute figures from again.
ledger::RederiveTable Rederivations();

// The parts of the command.
void AddLedgerRead(CLI::App& ledger, Globals& globals);   // list, show, report
void AddLedgerWrite(CLI::App& ledger, Globals& globals);  // verify, reopen, export, import

}  // namespace boltbeam::app
