#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "report/html.h"
#include "report/ledger.h"
#include "report/ledger_rows.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using nlohmann::ordered_json;

struct Section {
  std::string title;
  Table table;
  bool empty = true;
  std::string text = {};  // for terminals, where the table would be too wide
};

/// In Markdown, what looks like an element or a link would be one.
std::string MarkdownText(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<' || c == '&') {
      escaped += c == '<' ? "&lt;" : "&amp;";
      continue;
    }
    if (c == '[' || c == '`' || c == '\\' || c == '*') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string Safe(const std::string& text, LedgerForm form) {
  return form == LedgerForm::kMarkdown ? MarkdownText(Inert(text)) : Inert(text);
}

std::string Render(const std::string& title, const std::vector<Section>& sections, LedgerForm form) {
  std::string text;
  for (const Section& section : sections) {
    if (form == LedgerForm::kHtml) {
      text += "<h2>" + EscapeHtml(section.title) + "</h2>\n" +
              (section.empty ? "<p>none</p>\n" : Scrolling(section.table.Html()));
    } else if (form == LedgerForm::kMarkdown) {
      text += "\n## " + section.title + "\n\n" + (section.empty ? "none\n" : section.table.Markdown());
    } else {
      text += (text.empty() ? "" : "\n") + section.title + "\n\n" +
              (section.empty          ? "none\n"
               : section.text.empty() ? section.table.WrappedText()
                                      : section.text);
    }
  }
  if (form == LedgerForm::kHtml) return HtmlPage(title, text);
  return form == LedgerForm::kMarkdown ? "# " + title + "\n" + text : text;
}

/// "output, route" of those in that state.
std::string ConditionsIn(const ledger::Verdict& verdict, ledger::State state) {
  std::string names;
  for (const ledger::Condition& condition : verdict.conditions) {
    if (condition.state == state) names += (names.empty() ? "" : ", ") + condition.name;
  }
  return names;
}

std::string ConditionsText(const ledger::Verdict& verdict) {
  const std::string failed = ConditionsIn(verdict, ledger::State::kFail);
  const std::string unknown = ConditionsIn(verdict, ledger::State::kUnknown);
  std::string text = failed.empty() ? "" : "failed: " + failed;
  if (!unknown.empty()) text += (text.empty() ? "" : "; ") + ("unknown: " + unknown);
  if (!text.empty()) return text;
  return verdict.conditions.empty() ? "" : "all passed";
}

/// The words that it was named by, and what it is.
std::string CandidateText(const ledger::Subject& subject) {
  if (subject.candidate_words.empty()) return subject.candidate;
  return fmt::format("{} ({})", subject.candidate_words, subject.candidate);
}

/// What it was held against, by its words where there are some.
std::string AgainstText(const ledger::Subject& subject) {
  const std::string& baseline = subject.baseline_words.empty() ? subject.baseline : subject.baseline_words;
  return baseline;
}

std::string DepthsText(const ledger::Verdict& verdict) {
  std::string text;
  for (const ledger::DepthRatio& at : verdict.depths) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", at.depth);
  }
  return text;
}

/// "2026-12-01 05:29"
std::string MinuteOf(const std::string& time) {
  std::string minute = time.substr(0, 16);
  if (minute.size() > 10) minute[10] = ' ';
  return minute;
}

/// The first line, and the others below it; whole, however long they are.
void AddBlock(std::string& text, const std::vector<std::string>& lines) {
  constexpr std::size_t kIndent = 2, kWidth = 80, kMost = 2000;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t column = i == 0 ? 0 : kIndent;
    text += std::string(column, ' ') + WrapNames(Inert(lines[i], kMost), column + kIndent, kWidth, column) + "\n";
  }
}

Section VerdictSection(const LedgerReportData& data, LedgerForm form) {
  Section section{"Verdicts", Table({{"record", "seq"},
                                     {"date", "time", Align::kLeft},
                                     {"candidate", "candidate", Align::kLeft},
                                     {"against", "baseline", Align::kLeft},
                                     {"model", "model", Align::kLeft},
                                     {"depths", "depths", Align::kLeft},
                                     {"chip", "chip", Align::kLeft},
                                     {"verdict", "verdict", Align::kLeft},
                                     {"ratio", "ratio", Align::kLeft},
                                     {"seen", "seen", Align::kLeft},
                                     {"conditions", "conditions", Align::kLeft},
                                     {"reason", "reason", Align::kLeft}})};
  const ledger::SightingsTable sightings(data.verdicts);
  for (const ledger::Row& row : data.verdicts) {
    const auto verdict = ledger::VerdictFrom(row.payload);
    if (!verdict) continue;
    const std::string seen = ledger::Describe(sightings.Of(*verdict)), conditions = ConditionsText(*verdict);
    const ledger::Subject& subject = verdict->subject;
    const std::string against = AgainstText(subject), depths = DepthsText(*verdict);
    section.table.Add({std::to_string(row.seq), MinuteOf(row.time), Safe(CandidateText(subject), form),
                       Safe(against, form), Safe(subject.model, form), depths, Safe(subject.chip, form),
                       std::string(ledger::RulingName(verdict->ruling)), RatioText(*verdict), seen,
                       Safe(conditions, form), Safe(verdict->reason, form)});
    AddBlock(section.text,
             {fmt::format("{}  {}  {}{} on {}", row.seq, MinuteOf(row.time), CandidateText(subject),
                          against.empty() ? "" : " against " + against, subject.chip),
              fmt::format("{} {}", ledger::RulingName(verdict->ruling), RatioText(*verdict)),
              fmt::format("model: {}{}{}", subject.model, depths.empty() ? "" : "; depths: ", depths), "seen: " + seen,
              "conditions: " + (conditions.empty() ? "none" : conditions), "reason: " + verdict->reason});
    section.empty = false;
  }
  return section;
}

Section RefutationSection(const LedgerReportData& data, LedgerForm form) {
  Section section{"Refuted, and what would reopen it", Table({{"candidate", "candidate", Align::kLeft},
                                                              {"chip", "chip", Align::kLeft},
                                                              {"shape", "shape", Align::kLeft},
                                                              {"condition", "condition", Align::kLeft},
                                                              {"come true", "holds", Align::kLeft}})};
  std::set<std::vector<std::string>> shown;
  for (const ledger::Refutation& refutation : data.refutations) {
    const ledger::Subject& subject = refutation.verdict.subject;
    for (std::size_t i = 0; i < refutation.holds.size(); ++i) {
      const ledger::Truth truth = refutation.holds[i];
      const std::string shape = subject.shape.empty() ? "any" : subject.shape;
      const std::string condition = ledger::Describe(refutation.verdict.reopen_when[i], data.facts);
      const std::string holds = truth == ledger::Truth::kTrue    ? "YES"
                                : truth == ledger::Truth::kFalse ? "no"
                                                                 : "unknown";
      // The same candidate may have been refuted more than once.
      if (!shown.insert({CandidateText(subject), subject.chip, shape, condition}).second) continue;
      section.table.Add({Safe(CandidateText(subject), form), Safe(subject.chip, form), Safe(shape, form),
                         Safe(condition, form), holds});
      AddBlock(section.text, {fmt::format("{} on {}, shape: {}", CandidateText(subject), subject.chip, shape),
                              "when: " + condition, "come true: " + holds});
      section.empty = false;
    }
  }
  return section;
}

Section ChainSection(const LedgerReportData& data) {
  Section section{"Chains", Table({{"writer", "writer", Align::kLeft},
                                   {"records", "records"},
                                   {"hash of the last one", "head", Align::kLeft}})};
  for (const ledger::Chain& chain : data.chains) {
    section.table.Add({chain.writer, fmt::format("{}", chain.entries.size()), chain.LastHash()});
    section.empty = false;
  }
  return section;
}

ordered_json ReportJson(const LedgerReportData& data) {
  ordered_json value = {{"schema", "boltbeam.ledger_report.v1"}};
  const ledger::SightingsTable sightings(data.verdicts);
  value["verdicts"] = ordered_json::array();
  for (const ledger::Row& row : data.verdicts) {
    const auto verdict = ledger::VerdictFrom(row.payload);
    if (!verdict) continue;
    const ledger::Sightings seen = sightings.Of(*verdict);
    value["verdicts"].push_back(
        {{"hash", row.hash},
         {"writer", row.writer},
         {"seq", row.seq},
         {"time", row.time},
         {"seen", {{"repetitions", seen.repetitions}, {"sessions", seen.sessions}, {"machines", seen.machines}}},
         {"payload", row.payload}});
  }
  value["refuted"] = ordered_json::array();
  for (const ledger::Refutation& refutation : data.refutations) {
    value["refuted"].push_back({{"hash", refutation.row.hash},
                                {"candidate", refutation.verdict.subject.candidate},
                                {"chip", refutation.verdict.subject.chip},
                                {"shape", refutation.verdict.subject.shape},
                                {"reopen_due", refutation.IsDue()}});
  }
  value["chains"] = ordered_json::array();
  for (const ledger::Chain& chain : data.chains) {
    value["chains"].push_back(
        {{"writer", chain.writer}, {"records", chain.entries.size()}, {"head", chain.LastHash()}});
  }
  return value;
}

ordered_json ScoresJson(const ledger::Scores& scores) {
  ordered_json value = {{"schema", "boltbeam.ledger_predictions.v1"}, {"methods", ordered_json::array()}};
  for (const auto& [key, score] : scores.by_method) {
    value["methods"].push_back({{"method", key.first},
                                {"quantity", key.second},
                                {"answered", score.answered},
                                {"hits", score.hits},
                                {"promised", score.promised},
                                {"bias", score.bias},
                                {"width", score.width},
                                {"unanswered", score.unanswered}});
  }
  value["late"] = scores.late;
  return value;
}

}  // namespace

std::string LedgerReport(const LedgerReportData& data, LedgerForm form) {
  if (form == LedgerForm::kJson) return ReportJson(data).dump(2) + "\n";
  return Render("Ledger", {VerdictSection(data, form), RefutationSection(data, form), ChainSection(data)}, form);
}

std::string PredictionsReport(const ledger::Scores& scores, LedgerForm form) {
  if (form == LedgerForm::kJson) return ScoresJson(scores).dump(2) + "\n";
  Section section{"Predictions", Table({{"method", "method", Align::kLeft},
                                        {"quantity", "quantity", Align::kLeft},
                                        {"answered", "answered"},
                                        {"inside", "hits"},
                                        {"promised", "promised"},
                                        {"bias", "bias"},
                                        {"width", "width"},
                                        {"open", "unanswered"}})};
  for (const auto& [key, score] : scores.by_method) {
    const bool any = score.answered > 0;
    const double share = any ? static_cast<double>(score.hits) / static_cast<double>(score.answered) : 0;
    section.table.Add({Safe(key.first, form), Safe(key.second, form), fmt::format("{}", score.answered),
                       any ? Percent(share, 0) : "", any ? Percent(score.promised, 0) : "",
                       any ? fmt::format("{:+.1f} %", score.bias * 100) : "", any ? Percent(score.width) : "",
                       fmt::format("{}", score.unanswered)});
    section.empty = false;
  }
  std::string text = Render("Predictions", {std::move(section)}, form);
  if (form == LedgerForm::kText && scores.late > 0) {
    text += fmt::format("\n{} answered by records older than themselves: not counted\n", scores.late);
  }
  return text;
}

}  // namespace boltbeam::report
