// What `audit` shows: the account of each depth as tables, or all numbers as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "audit/audit.h"
#include "chip/facts.h"
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
  std::vector<chip::Fact> facts = {};  // of the machine, measured and detected, for the page
  double peak_gop_s = 0;               // 0: not known
};

/// Another program's account of the same token, as `compare -o json` writes it.
struct OtherProgram {
  struct Region {
    std::string name;
    double ours_ns = 0, theirs_ns = 0;
  };
  struct Term {
    std::string name;
    std::optional<double> ours_ns, theirs_ns;
  };
  std::string other;
  std::vector<Region> regions;
  double residual_ns = 0;
  std::string sentence;
  std::vector<Term> terms = {};
};

/// kJson when the text is no comparison; where names it in errors.
Result<OtherProgram> ReadComparison(std::string_view text, const std::string& where);

/// What is shown beside the parts and the tie-out.
struct AuditView {
  bool why = false;     // causes, the wall, threads, kernels alone
  bool layers = false;  // a row for each layer
};

std::string AuditText(const AuditSubject& subject, const audit::Audit& audit, const AuditView& view = {});
std::string AuditMarkdown(const AuditSubject& subject, const audit::Audit& audit, const AuditView& view = {});
std::string AuditJson(const AuditSubject& subject, const audit::Audit& audit);

/// What a person should know before believing the numbers; empty when nothing is to be said.
std::vector<std::string> AuditNotes(const audit::Audit& audit);

}  // namespace boltbeam::report
