#include <fmt/format.h>

#include <map>

#include "base/hash.h"
#include "base/json_members.h"
#include "base/printable.h"
#include "ledger/merge.h"

namespace boltbeam::ledger {
namespace {

using nlohmann::json;

const std::map<std::string, Ruling>& Statuses() {
  static const std::map<std::string, Ruling> statuses = {
      {"promoted", Ruling::kCandidate},
      {"refuted", Ruling::kRefute},
      {"deferred", Ruling::kDefer},
      {"candidate", Ruling::kCandidate},
      {"search-space-incomplete", Ruling::kSearchSpaceIncomplete},
  };
  return statuses;
}

/// What the scope limits it to besides model and chip: "Q4_K decode".
std::string ShapeOf(const json& scope) {
  std::string shape = base::TextOf(scope, "quant");
  const std::string workload = base::TextOf(scope, "workload");
  if (!shape.empty() && !workload.empty()) shape += ' ';
  return shape + workload;
}

/// Its evidence lies elsewhere, so what it says is known and whether it holds is not.
void AddEvidence(const json& entry, Verdict& verdict) {
  const auto evidence = entry.find("evidence");
  if (evidence == entry.end() || !evidence->is_array()) return;
  for (const json& one : *evidence) {
    const std::string claim = base::TextOf(one, "claim");
    std::string kind = base::TextOf(one, "kind");
    if (kind.empty()) kind = "evidence";
    verdict.conditions.push_back({std::move(kind), State::kUnknown, claim});
    if (!claim.empty()) verdict.reason += (verdict.reason.empty() ? "" : " ") + claim;
  }
}

}  // namespace

Result<Verdict> VerdictOfRouteEntry(const json& entry, std::string_view line, const std::string& where) {
  const auto bad = [&](const std::string& found, const std::string& expected) {
    return Fail(Code::kLedgerImport, where, found, expected);
  };
  const std::string status = base::TextOf(entry, "status");
  const auto ruling = Statuses().find(status);
  if (ruling == Statuses().end()) {
    return bad("status " + base::Printable(status), "promoted, refuted, deferred, candidate, search-space-incomplete");
  }
  const json scope = entry.value("scope", json::object());
  Verdict verdict;
  verdict.ruling = ruling->second;
  verdict.subject.candidate = base::TextOf(entry, "candidate_id");
  verdict.subject.chip = base::TextOf(scope, "target");
  verdict.subject.model = base::TextAt(scope, "model").value_or(base::TextOf(scope, "model_family"));
  verdict.details = {{"scope", scope}, {"do_not_retry", entry.value("do_not_retry", json(false))}};
  // The tool keyed its refutations by candidate alone; the scope stays readable in details.
  const std::string shape = ShapeOf(scope);
  AddEvidence(entry, verdict);
  if (verdict.reason.empty()) verdict.reason = "imported without a claim: " + status;
  if (status == "promoted") verdict.reason = "promoted elsewhere, not judged here: " + verdict.reason;
  if (!shape.empty()) verdict.reason = shape + ": " + verdict.reason;
  std::string reopen = base::TextOf(entry, "reopen_condition");
  const bool leaves = verdict.ruling == Ruling::kRefute || verdict.ruling == Ruling::kSearchSpaceIncomplete;
  if (reopen.empty() && leaves) reopen = "none was stated";
  if (!reopen.empty()) verdict.reopen_when.push_back({{}, Comparison::kStated, nullptr, std::move(reopen)});
  verdict.origin = {{"schema", kRouteEntrySchema}, {"status", status}, {"line_sha256", base::Sha256Hex(line)}};
  if (const Result<void> checked = Check(verdict); !checked) {
    return bad(checked.error().where + ": " + checked.error().found, checked.error().expected);
  }
  return verdict;
}

}  // namespace boltbeam::ledger
