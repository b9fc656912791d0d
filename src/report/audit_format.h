// What `audit` shows: the account of each depth as a table and its tie-out, or all numbers as JSON.
#pragma once

#include <string>

#include "audit/audit.h"
#include "engine/engine.h"

namespace boltbeam::report {

/// What was audited.
struct AuditSubject {
  std::string model_filename;
  std::string model_type;
  std::string machine;
  std::string plan_id;
  std::uint32_t threads = 0;
  std::string kv_format;
  engine::MemoryUse memory;
};

std::string AuditText(const AuditSubject& subject, const audit::Audit& audit);
std::string AuditMarkdown(const AuditSubject& subject, const audit::Audit& audit);
std::string AuditJson(const AuditSubject& subject, const audit::Audit& audit);

/// What a person should know before believing the numbers; empty when nothing is to be said.
std::vector<std::string> AuditNotes(const audit::Audit& audit);

}  // namespace boltbeam::report
