#include "whole_token.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_members.h"
#include "base/shell.h"
#include "judge_sides.h"
#include "ledger/index.h"
#include "ledger/reopen.h"
#include "ledger_commands.h"

namespace boltbeam::app {
namespace {

std::string DepthsOf(const ledger::Verdict& verdict) {
  std::vector<std::uint64_t> depths;
  for (const ledger::DepthRatio& one : verdict.depths) depths.push_back(one.depth);
  return fmt::format("{}", fmt::join(depths, ","));
}

std::string Words(const char* flag, const Side& side) {
  std::string text;
  for (const std::string& word : side) text += fmt::format(" {} {}", flag, base::ShellQuoted(word));
  return text;
}

}  // namespace

bool Whole::IsPromoted() const { return verdict == ledger::RulingName(ledger::Ruling::kPromote); }

Result<Whole> WholeTokens::Judge(const Side& a, const Side& b, double budget_s, int confirm,
                                 const std::string& depths) {
  BOLTBEAM_ASSIGN(std::optional<Whole> known, JudgedBefore(a, b, depths));
  if (known) return std::move(*known);
  BOLTBEAM_ASSIGN(const nlohmann::json json, Run(a, b, budget_s, confirm, depths));
  return Whole{base::TextOf(json, "verdict"),
               base::TextOf(json, "outcome"),
               base::TextOf(json, "reason"),
               base::TextOf(json, "record"),
               base::NumberAt(json, "ratio").value_or(0),
               base::NumberAt(json, "ratio_low").value_or(0),
               base::NumberAt(json, "ratio_high").value_or(0)};
}

/// The newest decided verdict on these sides of this model with these threads and kernels, if it still stands.
Result<std::optional<Whole>> WholeTokens::JudgedBefore(const Side& a, const Side& b, const std::string& depths) {
  BOLTBEAM_ASSIGN(ledger::Index index, ledger::Index::Open(ledger_));
  ledger::Filter filter;
  filter.kind = ledger::Kind::kVerdict;
  filter.candidate = fmt::format("{}", fmt::join(b, " "));
  filter.chip = chip_;
  const std::string baseline = fmt::format("{}", fmt::join(a, " "));
  BOLTBEAM_ASSIGN(const std::vector<ledger::Row> rows, index.List(filter));
  BOLTBEAM_ASSIGN(const std::vector<ledger::Refutation> standing, ledger::StandingRefutations(index, {}));
  filter.kind = ledger::Kind::kReopening;
  BOLTBEAM_ASSIGN(const std::vector<ledger::Row> reopenings, index.List(filter));
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const bool is_reopened =
        std::ranges::any_of(reopenings, [&](const ledger::Row& one) { return ledger::IsBefore(*row, one); });
    if (is_reopened) continue;  // whoever opened it wants it judged anew, whatever was said before
    const auto verdict = ledger::VerdictFrom(row->payload);
    if (!verdict || verdict->subject.baseline_words != baseline || !verdict->ratio) continue;
    if (verdict->subject.model_hash != HeaderHash(model_) || DepthsOf(*verdict) != depths) continue;
    const bool is_same_setting = verdict->details.value("threads", nlohmann::json()) == threads_ &&
                                 verdict->details.value("build", nlohmann::json()) == nlohmann::json(BuildFacts());
    const bool is_standing = std::ranges::any_of(standing, [&](const auto& one) { return one.row.hash == row->hash; });
    const bool is_decided = verdict->ruling == ledger::Ruling::kPromote ||
                            verdict->ruling == ledger::Ruling::kDiagnostic ||
                            (verdict->ruling == ledger::Ruling::kRefute && is_standing);
    if (!is_same_setting || !is_decided) continue;
    return Whole{std::string(ledger::RulingName(verdict->ruling)),
                 verdict->outcome,
                 verdict->reason + ", judged before",
                 row->hash,
                 *verdict->ratio,
                 *verdict->ratio_low,
                 *verdict->ratio_high};
  }
  return std::nullopt;
}

Result<nlohmann::json> WholeTokens::Run(const Side& a, const Side& b, double budget_s, int confirm,
                                        const std::string& depths) {
  std::string command = OwnProgram();
  if (!globals_.home.empty()) command += " --home " + base::ShellQuoted(globals_.home);
  command +=
      fmt::format(" judge {}{}{} -t {} -d {} --budget {:.0f}s --confirm {} -o json --plan default",
                  base::ShellQuoted(model_), Words("--a", a), Words("--b", b), threads_, depths, budget_s, confirm);
  if (!isa_.empty()) command += " --isa " + isa_;
  if (!reference_.empty()) command += " --reference " + base::ShellQuoted(reference_);
  BOLTBEAM_ASSIGN(const std::string text, base::RunProgram(command + "; true"));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return Fail(Code::kMeasurementUnstable, "search", "the judge gave no verdict", "a verdict");
  return json;
}

}  // namespace boltbeam::app
