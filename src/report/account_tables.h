// The tables of an account: the same for the terminal, Markdown and the page.
#pragma once

#include <string>
#include <vector>

#include "report/audit_format.h"
#include "report/table.h"

namespace boltbeam::report {

/// Part by part: bytes, floor, now, excess, share, cause.
Table PartsTable(const audit::Account& account);
/// floor + lost + gaps + unaccounted = token.
Table TieOutTable(const audit::Account& account);
/// What gives back most, first.
Table CausesTable(const audit::Account& account);
/// In words: each cause with its evidence and what would cure it.
/// How many of the causes are findings, and by which rule.
std::string FindingsText(const audit::Account& account);
std::string CausesText(const audit::Account& account);
/// Parts in the token beside their kernels alone, cold and hot, and what the difference says.
Table AloneTable(const audit::Account& account);
/// Sum of kernels - overlap = union; union + gaps = traced token.
Table WallTable(const audit::Account& account);
/// Of each thread: work + imbalance + barrier + idle.
Table ThreadsTable(const audit::Account& account);
/// A row for each layer and part: floor, now, times the floor.
Table LayersTable(const audit::Account& account);
/// A row for each depth: floor, measured, share of the limit, unaccounted.
Table DepthsTable(const audit::Audit& audit);
/// What was measured of the chip beside what is published or detected.
Table FactsTable(const std::vector<chip::Fact>& facts);
/// Regions of another program beside ours.
Table ComparisonTable(const OtherProgram& comparison);

/// "91.04 tok/s; limit 98.04 tok/s; 92.9 % of the limit."
std::string RateText(const audit::Account& account);
/// "qwen3 596M Q4_K, 2 threads, depth 0; ..."
std::string AccountHeading(const AuditSubject& subject, const audit::Account& account);
/// Whether kernels lose their time per launch or with their bytes: a fit over tables of all sizes.
std::string TollText(const audit::Account& account);
std::string MethodText(const audit::Audit& audit, const audit::Account& account);
/// Whether the account closes, in a sentence with the residual and its budget.
std::string VerdictText(const audit::Account& account);
/// What this run can't tell, a sentence each: only what applies.
std::vector<std::string> Limits(const AuditSubject& subject, const audit::Audit& audit);
/// Words of the report and what they mean.
std::vector<std::pair<std::string, std::string>> Glossary();

}  // namespace boltbeam::report
