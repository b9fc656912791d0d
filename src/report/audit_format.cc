#include "report/audit_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "report/account_tables.h"
#include "report/html.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {

std::vector<std::string> AuditNotes(const audit::Audit& audit) {
  std::vector<std::string> notes;
  if (audit.disturbed_share > audit::kDisturbedShare) {
    notes.push_back(fmt::format(
        "the machine was disturbed in {} of the rounds: {}", Percent(audit.disturbed_share, 0),
        audit.disturbances.empty() ? "short interruptions" : fmt::format("{}", fmt::join(audit.disturbances, "; "))));
  }
  return notes;
}

std::string AuditText(const AuditSubject& subject, const audit::Audit& audit, const AuditView& view) {
  std::string text = fmt::format("{}\n{}\n", base::Printable(subject.model_filename), subject.machine);
  for (const audit::Account& account : audit.accounts) {
    text += fmt::format("\n{}\n\n{}\n{}\n{}\n", AccountHeading(subject, account), PartsTable(account).Text(),
                        TieOutTable(account).Text(), RateText(account));
    if (view.why) {
      text += fmt::format("\n{}\n{}\n{}\n{}\n", WallTable(account).Text(), ThreadsTable(account).Text(),
                          AloneTable(account).Text(), CausesText(account));
      text += "\n" + Wrap(TollText(account)) + "\n\n";
    }
    if (view.layers) text += "\n" + LayersTable(account).Text();
    text += Wrap(MethodText(audit, account)) + "\n";
  }
  if (audit.accounts.size() > 1) text += "\n" + DepthsTable(audit).Text();
  return text;
}

namespace {

std::string CausesMarkdown(const audit::Account& account) {
  if (account.causes.empty()) return "No cause beyond what the session can't tell apart.\n";
  std::string text = FindingsText(account) + "\n\n" + CausesTable(account).Markdown() + "\n";
  for (const audit::Cause& cause : account.causes) {
    text += fmt::format("- {}{}{}: {}\n", cause.kind, cause.role.empty() ? "" : " of ", cause.role, cause.evidence);
  }
  return text;
}

}  // namespace

std::string AuditMarkdown(const AuditSubject& subject, const audit::Audit& audit, const AuditView& view) {
  std::string text = fmt::format("# Audit of {}\n\n{}\n", Inert(subject.model_filename), subject.machine);
  for (const audit::Account& account : audit.accounts) {
    text += fmt::format("\n## {}\n\n{}\n{}\n{} {}\n", AccountHeading(subject, account), PartsTable(account).Markdown(),
                        TieOutTable(account).Markdown(), RateText(account), VerdictText(account));
    if (view.why) {
      text +=
          fmt::format("\n### Causes\n\n{}\n### Wall\n\n{}\n### Threads\n\n{}\n### Alone\n\n{}", CausesMarkdown(account),
                      WallTable(account).Markdown(), ThreadsTable(account).Markdown(), AloneTable(account).Markdown());
    }
    if (view.layers) text += "\n### Layers\n\n" + LayersTable(account).Markdown();
    text += "\n" + MethodText(audit, account) + "\n";
  }
  if (audit.accounts.size() > 1) text += "\n## Depths\n\n" + DepthsTable(audit).Markdown();
  if (view.why) {
    text += "\n## What this can't tell\n\n";
    for (const std::string& limit : Limits(subject, audit)) text += "- " + limit + "\n";
  }
  return text;
}

}  // namespace boltbeam::report
