// An audit as JSON values: what -o json writes and what the page carries.
#pragma once

#include <nlohmann/json.hpp>

#include "report/audit_format.h"

namespace boltbeam::report {

/// boltbeam.audit.v1. With timelines one traced token of each depth, and kernels as rows, as the page's charts read
/// them.
nlohmann::ordered_json AuditDocument(const AuditSubject& subject, const audit::Audit& audit, bool timelines);

}  // namespace boltbeam::report
