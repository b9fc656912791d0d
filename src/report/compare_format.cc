#include "report/compare_format.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using audit::Comparison;
using audit::Region;
using audit::Term;
using Json = nlohmann::json;

Json Optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string Us(double ns) { return Decimal(ns / 1e3, 1); }
std::string SignedUs(double ns) { return (ns > 0 ? "+" : "") + Us(ns); }
std::string Us(const std::optional<double>& ns) { return ns ? Us(*ns) : std::string(); }

bool HasGains(const Comparison& comparison) {
  for (const Region& region : comparison.regions) {
    if (region.ours_gain_ns) return true;
  }
  return false;
}

Table RegionsTable(const Comparison& comparison) {
  std::vector<Column> columns{
      {"region", "region", Align::kLeft}, {"A, µs", "ours_us"}, {"B, µs", "theirs_us"}, {"A - B", "difference_us"}};
  const bool gains = HasGains(comparison);
  if (gains) {
    columns.push_back({"A would gain", "ours_gain_us"});
    columns.push_back({"B would gain", "theirs_gain_us"});
  }
  Table table(std::move(columns));
  for (const Region& region : comparison.regions) {
    std::vector<Cell> cells{base::Printable(region.region, 40), region.in_ours ? Us(region.ours_ns) : "none",
                            region.in_theirs ? Us(region.theirs_ns) : "none", SignedUs(region.DifferenceNs())};
    if (gains) {
      cells.emplace_back(Us(region.ours_gain_ns));
      cells.emplace_back(Us(region.theirs_gain_ns));
    }
    table.Add(std::move(cells));
  }
  table.AddRule();
  for (const Term& term : comparison.terms) {
    table.Add({term.name, term.ours_ns ? Us(*term.ours_ns) : "-", term.theirs_ns ? Us(*term.theirs_ns) : "-",
               SignedUs(term.DifferenceNs())});
  }
  table.Add({"residual", "", "", SignedUs(comparison.ResidualNs())});
  table.AddRule();
  table.Add(
      {"token", Us(comparison.ours_token_ns), Us(comparison.theirs_token_ns), SignedUs(comparison.DifferenceNs())});
  return table;
}

Table BesideTable(const Comparison& comparison) {
  Table table({{"other terms", "term", Align::kLeft}, {"A, µs", "ours_us"}, {"B, µs", "theirs_us"}});
  for (const Term& term : comparison.beside) {
    table.Add({term.name, term.ours_ns ? Us(*term.ours_ns) : "-", term.theirs_ns ? Us(*term.theirs_ns) : "-"});
  }
  return table;
}

std::string PairedSentence(const audit::PairedTokens& paired) {
  std::string disturbed;
  if (paired.left_out > 0) {
    disturbed = fmt::format(" {} more are left out: one of the programs was kept from computing.", paired.left_out);
  } else if (paired.disturbed > 0) {
    disturbed = fmt::format(" In {} of them one of the programs was kept from computing: too few others are left.",
                            paired.disturbed);
  }
  return fmt::format(
      "In turns, {}: B's token takes {} times as long as A's ({} to {}, 95 %), A is faster in {} of {} pairs.{}",
      paired.basis, Decimal(paired.ratio.estimate, 2), Decimal(paired.ratio.low, 2), Decimal(paired.ratio.high, 2),
      paired.ours_faster, paired.pairs, disturbed);
}

std::string One(const Comparison& comparison, std::string_view format) {
  const bool md = format == "md";
  const auto shown = [&](const Table& table) { return md ? table.Markdown() : table.Text(); };
  const auto wrapped = [&](const std::string& text) { return (md ? text : Wrap(text)) + "\n"; };
  std::string text =
      fmt::format("{}A: {}\n{}B: {}\n\n{}\n", md ? "- " : "", base::Printable(comparison.ours, 120), md ? "- " : "",
                  base::Printable(comparison.theirs, 120), wrapped("Each token: " + comparison.basis));
  text += shown(RegionsTable(comparison)) + "\n";
  if (!comparison.beside.empty()) text += shown(BesideTable(comparison)) + "\n";
  for (const audit::PairedTokens& paired : comparison.paired) text += wrapped(PairedSentence(paired));
  for (const std::string& note : comparison.notes) text += wrapped(note);
  return text + "\n" + wrapped(comparison.Sentence());
}

Json TermJson(const Term& term) {
  Json json = {{"term", term.name},
               {"ours_ns", Optional(term.ours_ns)},
               {"theirs_ns", Optional(term.theirs_ns)},
               {"note", term.note}};
  if (term.budget_ns) {
    json["budget_ns"] = *term.budget_ns;
    json["within_budget"] = term.IsWithinBudget();
  }
  return json;
}

Json ComparisonJson(const Comparison& comparison) {
  Json regions = Json::array(), terms = Json::array(), beside = Json::array();
  for (const Region& region : comparison.regions) {
    regions.push_back({{"region", region.region},
                       {"ours_ns", region.ours_ns},
                       {"theirs_ns", region.theirs_ns},
                       {"difference_ns", region.DifferenceNs()},
                       {"in_ours", region.in_ours},
                       {"in_theirs", region.in_theirs},
                       {"ours_bytes", Optional(region.ours_bytes)},
                       {"theirs_bytes", Optional(region.theirs_bytes)},
                       {"ours_gain_ns", Optional(region.ours_gain_ns)},
                       {"theirs_gain_ns", Optional(region.theirs_gain_ns)}});
  }
  for (const Term& term : comparison.terms) terms.push_back(TermJson(term));
  for (const Term& term : comparison.beside) beside.push_back(TermJson(term));
  Json paired = Json::array();
  for (const audit::PairedTokens& one : comparison.paired) {
    paired.push_back({{"basis", one.basis},
                      {"pairs", one.pairs},
                      {"left_out", one.left_out},
                      {"disturbed", one.disturbed},
                      {"ours_faster", one.ours_faster},
                      {"ratio", one.ratio.estimate},
                      {"ratio_low", one.ratio.low},
                      {"ratio_high", one.ratio.high}});
  }
  return {{"ours", comparison.ours},
          {"theirs", comparison.theirs},
          {"basis", comparison.basis},
          {"depth", comparison.depth},
          {"token",
           {{"ours_ns", comparison.ours_token_ns},
            {"theirs_ns", comparison.theirs_token_ns},
            {"difference_ns", comparison.DifferenceNs()}}},
          {"paired", std::move(paired)},
          {"regions", std::move(regions)},
          {"terms", std::move(terms)},
          {"other_terms", std::move(beside)},
          {"parts_alone", Optional(comparison.parts_alone)},
          {"parts_and_between", Optional(comparison.parts_and_between)},
          {"residual_ns", comparison.ResidualNs()},
          {"notes", comparison.notes},
          {"sentence", comparison.Sentence()}};
}

}  // namespace

std::string CompareReport(std::span<const Comparison> comparisons, std::string_view format) {
  if (format == "json") {
    Json document = comparisons.empty() ? Json::object() : ComparisonJson(comparisons.front());
    document["schema"] = "boltbeam.compare.v1";
    Json all = Json::array();
    for (const Comparison& comparison : comparisons) all.push_back(ComparisonJson(comparison));
    document["comparisons"] = std::move(all);
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  std::string text;
  for (const Comparison& comparison : comparisons) text += (text.empty() ? "" : "\n") + One(comparison, format);
  return text;
}

}  // namespace boltbeam::report
