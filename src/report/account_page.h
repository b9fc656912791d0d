// The report: one HTML file that loads nothing.
#pragma once

#include <optional>
#include <string>

#include "lab/prices.h"
#include "report/audit_format.h"

namespace boltbeam::report {

/// Every number as a table and as JSON (boltbeam.audit.v1 with timelines, in the element `account`); charts are drawn
/// from that JSON by Vega's scripts, which the page carries. price: what a token costs, in a section of its own. Text
/// from files is escaped. kInternal when the build did
/// not embed the scripts.
Result<std::string> AuditPage(const AuditSubject& subject, const audit::Audit& audit,
                              const std::optional<OtherProgram>& comparison = {},
                              const std::optional<lab::Price>& price = {});

}  // namespace boltbeam::report
