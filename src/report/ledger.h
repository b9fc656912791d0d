// What `ledger list`, `show`, `report` and `verify` show. Names and reasons come from anybody's files: they are shown
// as text and nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ledger/index.h"
#include "ledger/rederive.h"
#include "ledger/reopen.h"
#include "ledger/score.h"
#include "ledger/verify.h"
#include "report/form.h"

namespace boltbeam::report {

/// The forms of `ledger report`.
enum class LedgerForm { kText, kJson, kMarkdown, kHtml };

std::string LedgerListReport(const std::vector<ledger::Row>& rows, const std::string& own_writer, Form form);

struct ShownRecord {
  ledger::Record record;
  std::optional<ledger::Sightings> sightings;        // of a verdict
  std::vector<std::string> reopen_when;              // in words, of a refutation
  bool is_due = false;                               // one of them has come true
  std::optional<ledger::Rederivation> rederivation;  // when it was asked for
};
std::string LedgerRecordReport(const ShownRecord& shown, Form form);

struct LedgerReportData {
  std::vector<ledger::Row> verdicts;
  std::vector<ledger::Refutation> refutations;  // standing
  ledger::Facts facts;                          // of now
  std::vector<ledger::Chain> chains;            // their heads, which a report keeps outside of the ledger
};
std::string LedgerReport(const LedgerReportData& data, LedgerForm form);
std::string PredictionsReport(const ledger::Scores& scores, LedgerForm form);

std::string VerificationReport(const ledger::Verification& verification, Form form);

}  // namespace boltbeam::report
