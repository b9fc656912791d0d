#include "report/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using nlohmann::ordered_json;
using search::FamilySurvey;
using search::Foretold;
using search::FusionIdea;
using search::Rejected;
using search::Survey;

constexpr std::size_t kShownReasons = 12;  // of a family's, in text; JSON has all
constexpr std::size_t kShownIdeas = 12;

/// 10^x as people read it: "8.3e+41", or the number itself where it is small.
std::string Power(double log10) {
  if (log10 < 9) return Thousands(static_cast<std::uint64_t>(std::llround(std::pow(10, log10))));
  const double whole = std::floor(log10);
  return fmt::format("{:.1f}e{:.0f}", std::pow(10, log10 - whole), whole);
}

std::string Microseconds(double ns) { return fmt::format("{:.1f}", ns / 1e3); }

Cell Time(const std::optional<Foretold>& foretold) {
  if (!foretold) return {"", ""};
  return {Microseconds(foretold->ns), fmt::format("{:.1f}", foretold->ns)};
}

Table FamilyTable(const Survey& survey, bool has_prediction) {
  std::vector<Column> columns = {{"part", "role", Align::kLeft},
                                 {"format", "format", Align::kLeft},
                                 {"shape", "shape", Align::kLeft},
                                 {"family", "family", Align::kLeft}};
  if (has_prediction) {
    const std::vector<Column> more = {
        {"legal", "legal"}, {"left", "predicted"}, {"best µs", "best_ns"}, {"now", "default_ns"}, {"gain", "gain"}};
    columns.insert(columns.end(), more.begin(), more.end());
  } else {
    const std::vector<Column> more = {
        {"calls", "calls"}, {"points", "free_product"}, {"legal", "legal"}, {"refuted", "refuted"}};
    columns.insert(columns.end(), more.begin(), more.end());
  }
  Table table(columns);
  const auto number = [](std::uint64_t value) { return Cell(Thousands(value), fmt::format("{}", value)); };
  for (const FamilySurvey& row : survey.families) {
    std::vector<Cell> cells = {row.role, row.format, row.shape, row.family};
    if (has_prediction) {
      const Cell gain = row.gain ? Cell(Percent(*row.gain), fmt::format("{:.6f}", *row.gain)) : Cell("", "");
      const Cell left = row.floor_ns > 0 ? number(row.predicted) : Cell("", "");
      for (const Cell& cell : {number(row.legal), left, Time(row.best), Time(row.usual), gain}) {
        cells.push_back(cell);
      }
    } else {
      for (const std::uint64_t value : {std::uint64_t{row.calls}, row.free_product, row.legal, row.refuted}) {
        cells.push_back(number(value));
      }
    }
    table.Add(std::move(cells));
  }
  return table;
}

/// Reasons of one kind together, the evidence of the most frequent one.
std::vector<Rejected> ByReason(const std::vector<Rejected>& rejected) {
  std::vector<Rejected> reasons;
  for (const Rejected& one : rejected) {
    const auto known = std::ranges::find(reasons, one.reason, &Rejected::reason);
    if (known == reasons.end()) {
      reasons.push_back(one);
    } else {
      known->points += one.points;
    }
  }
  std::ranges::stable_sort(reasons, std::ranges::greater{}, &Rejected::points);
  return reasons;
}

std::string Reasons(const std::vector<Rejected>& rejected) {
  std::string text;
  std::size_t shown = 0;
  for (const Rejected& one : ByReason(rejected)) {
    if (++shown > kShownReasons) break;
    const std::string why = base::Printable(one.reason + ": " + one.evidence, 400);
    text += fmt::format("  {:>9}  {}\n", Thousands(one.points), Wrap(why, 13, 80, 13));
  }
  return text;
}

/// Families of equal reasons are shown once.
std::string WhyNot(const Survey& survey, bool has_prediction) {
  std::string text;
  std::vector<std::pair<std::string, std::string>> blocks;  // reasons, the parts that have them
  for (const FamilySurvey& row : survey.families) {
    std::string reasons = Reasons(row.rejected);
    if (has_prediction && !row.closed.empty()) reasons += "  and by what is foretold:\n" + Reasons(row.closed);
    if (has_prediction && row.floor_ns == 0) reasons += "  no time is foretold for this family\n";
    if (!row.unknown.empty()) {
      std::string facts;
      for (const std::string& fact : row.unknown) facts += (facts.empty() ? "" : ", ") + fact;
      reasons += "  " +
                 Wrap("not declared, so left out of the prediction, whose interval is wider: " + facts, 2, 80, 2) +
                 "\n";
    }
    if (!row.verdict.empty()) reasons += "  " + Wrap(row.verdict, 2, 80, 2) + "\n";
    const std::string name = fmt::format("{} {} {}", row.role, row.format, row.shape);
    const auto known = std::ranges::find(blocks, reasons, &std::pair<std::string, std::string>::first);
    if (known == blocks.end()) {
      blocks.emplace_back(reasons, row.family + ": " + name);
    } else {
      known->second += "; " + name;
    }
  }
  for (const auto& [reasons, parts] : blocks) {
    text += "\n" + Wrap(parts, 2) + "\n" + (reasons.empty() ? "  nothing is turned away\n" : reasons);
  }
  return text;
}

std::string Steps(const FusionIdea& idea) {
  std::string text;
  for (const std::string& step : idea.steps) text += (text.empty() ? "" : "+") + step;
  return text;
}

std::string Fusions(const Survey& survey) {
  if (survey.fusions.empty()) return "";
  std::string text = fmt::format("\nFusions: {} groups of steps of a layer, µs of the token\n", survey.fusions.size());
  const auto line = [&](const FusionIdea& idea) {
    const std::string what = Steps(idea) + (idea.closed.empty() ? "" : ": " + idea.closed);
    text += fmt::format("  {:>9} of {:>7}  {}\n", Microseconds(idea.predicted_ns), Microseconds(idea.bound_ns),
                        Wrap(what, 24, 80, 24));
  };
  std::size_t shown = 0;
  for (const FusionIdea& idea : survey.fusions) {
    // Those that are worth timing, and of the others one for each pair of steps.
    if ((idea.closed.empty() || idea.steps.size() == 2) && ++shown <= kShownIdeas + 8) line(idea);
  }
  return text;
}

std::string Recorded(const Survey& survey) {
  std::string text = fmt::format("\nRecorded routes: {}\n", survey.recorded.size());
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const search::RecordedNote& note : survey.recorded) {
    const auto known = std::ranges::find(counts, note.applies, &std::pair<std::string, std::size_t>::first);
    if (known == counts.end()) {
      counts.emplace_back(note.applies, 1);
    } else {
      ++known->second;
    }
  }
  for (const auto& [applies, count] : counts) text += fmt::format("  {:>9}  {}\n", count, applies);
  for (const search::RecordedNote& note : survey.recorded) {
    if (note.applies != "inherited") continue;
    text += "  " + Wrap(fmt::format("{}: {}", note.name, note.reason), 4, 80, 2) + "\n";
  }
  return text;
}

std::string Totals(const Survey& survey) {
  std::uint64_t points = 0, legal = 0, refuted = 0;
  for (const FamilySurvey& row : survey.families) {
    points += row.free_product;
    legal += row.legal;
    refuted += row.refuted;
  }
  std::string text = fmt::format("\n{} points of the free products, {} legal, {} refuted before.\n", Thousands(points),
                                 Thousands(legal), Thousands(refuted));
  text += Wrap(fmt::format("The token's space, the product of its kernels': {}. A fixed list of 334 changes makes "
                           "111,556 sequences in two steps and {} in four.",
                           Power(survey.token_log10), Power(survey.beam_log10))) +
          "\n";
  return text;
}

ordered_json Foreseen(const std::optional<Foretold>& one) {
  if (!one) return nullptr;
  return {{"knobs", one->knobs}, {"ns", one->ns}, {"low_ns", one->low_ns}, {"high_ns", one->high_ns}};
}

ordered_json ReasonsJson(const std::vector<Rejected>& rejected) {
  ordered_json rows = ordered_json::array();
  for (const Rejected& one : rejected) {
    rows.push_back({{"reason", one.reason}, {"evidence", one.evidence}, {"points", one.points}});
  }
  return rows;
}

ordered_json PartJson(const FamilySurvey& row) {
  ordered_json part = {{"role", row.role},
                       {"format", row.format},
                       {"shape", row.shape},
                       {"family", row.family},
                       {"calls", row.calls},
                       {"free_product", row.free_product},
                       {"legal", row.legal},
                       {"refuted", row.refuted},
                       {"predicted", row.predicted},
                       {"timed", 0},
                       {"best", Foreseen(row.best)},
                       {"default", Foreseen(row.usual)},
                       {"floor_ns", row.floor_ns},
                       {"rejected", ReasonsJson(row.rejected)},
                       {"closed", ReasonsJson(row.closed)},
                       {"unknown_facts", row.unknown},
                       {"verdict", row.verdict}};
  part["gain"] = row.gain ? ordered_json(*row.gain) : ordered_json();
  part["gain_bound"] = row.gain_bound ? ordered_json(*row.gain_bound) : ordered_json();
  return part;
}

std::string Json(const model::Model& model, const chip::Chip& chip, const Survey& survey, bool has_prediction) {
  ordered_json out = {{"schema", "boltbeam.search.v1"},
                      {"model", model.file().path()},
                      {"chip", chip.id},
                      {"until", has_prediction ? "predict" : "propose"},
                      {"token_ns", survey.token_ns},
                      {"token_space_log10", survey.token_log10},
                      {"beam_sequences_log10", survey.beam_log10}};
  out["parts"] = ordered_json::array();
  for (const FamilySurvey& row : survey.families) out["parts"].push_back(PartJson(row));
  out["fusions"] = ordered_json::array();
  for (const FusionIdea& idea : survey.fusions) {
    out["fusions"].push_back({{"steps", idea.steps},
                              {"bound_ns", idea.bound_ns},
                              {"predicted_ns", idea.predicted_ns},
                              {"pieces_before", idea.pieces_before},
                              {"pieces_after", idea.pieces_after},
                              {"gb_s_before", idea.gb_s_before},
                              {"gb_s_after", idea.gb_s_after},
                              {"closed", idea.closed}});
  }
  out["recorded"] = ordered_json::array();
  for (const search::RecordedNote& note : survey.recorded) {
    out["recorded"].push_back({{"name", note.name},
                               {"family", note.family},
                               {"status", note.status},
                               {"applies", note.applies},
                               {"reason", note.reason}});
  }
  return out.dump(1) + "\n";
}

}  // namespace

std::string SurveyReport(const model::Model& model, const chip::Chip& chip, const Survey& survey, bool has_prediction,
                         Form form) {
  if (form == Form::kJson) return Json(model, chip, survey, has_prediction);
  const Table table = FamilyTable(survey, has_prediction);
  if (form == Form::kCsv) return table.Csv();
  if (form == Form::kMarkdown) return table.Markdown();
  std::string text = base::Printable(chip.name) + "\n\n" + table.Text() + Totals(survey);
  text += "\nTurned away:\n" + WhyNot(survey, has_prediction);
  return text + Fusions(survey) + Recorded(survey);
}

}  // namespace boltbeam::report
