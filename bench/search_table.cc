#include "search_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "measure/statistics.h"
#include "report/table.h"

namespace boltbeam::search {
namespace {

using nlohmann::json;
using report::Cell;

constexpr std::array<std::string_view, 7> kStrategies = {"search", "random",  "hash",     "beam",
                                                         "sample", "default", "predicted"};

struct TextField {
  const char* name;
  std::string Row::* member;
};
constexpr TextField kTexts[] = {{"format", &Row::format}, {"shape", &Row::shape}, {"fitted_on", &Row::fitted_on}};

struct CountField {
  const char* name;
  std::size_t Row::* member;
};
constexpr CountField kCounts[] = {{"legal", &Row::legal}, {"knobs", &Row::knobs}, {"sampled", &Row::sampled},
                                  {"codes", &Row::codes}, {"wrong", &Row::wrong}, {"foretold", &Row::foretold}};

struct NumberField {
  const char* name;
  double Row::* member;
};
constexpr NumberField kNumbers[] = {{"median_over_best", &Row::median_over_best},
                                    {"rank", &Row::rank},
                                    {"top1", &Row::top1},
                                    {"repeat", &Row::repeat},
                                    {"foretold_gb_s", &Row::foretold_gb_s},
                                    {"read_gb_s", &Row::read_gb_s},
                                    {"last_gb_s", &Row::last_gb_s},
                                    {"other_cpus", &Row::other_cpus}};

std::vector<double> RegretsOf(const std::vector<Row>& rows, std::string_view strategy) {
  std::vector<double> regrets;
  for (const Row& row : rows) {
    const auto known = row.regret.find(std::string(strategy));
    if (known != row.regret.end()) regrets.push_back(known->second);
  }
  return regrets;
}

std::string TimedText(const Row& row) {
  std::string text;
  for (const auto& [strategy, count] : row.timed) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", strategy, count);
  }
  return text;
}

report::Table TableOf(const std::vector<Row>& rows) {
  using report::Align;
  std::vector<report::Column> columns{{"format", "format", Align::kLeft}, {"shape", "shape", Align::kLeft}};
  for (const char* name : {"legal", "knobs", "codes", "median ÷ best", "rank", "repeat", "top-1", "GB/s"}) {
    columns.push_back({name, name});
  }
  for (const std::string_view strategy : kStrategies) columns.push_back({std::string(strategy), std::string(strategy)});
  report::Table table(std::move(columns));
  for (const Row& row : rows) {
    std::vector<Cell> cells{row.format, row.shape};
    for (const std::size_t count : {row.legal, row.knobs, row.codes}) cells.emplace_back(fmt::format("{}", count));
    cells.emplace_back(fmt::format("{:.2f}", row.median_over_best));
    for (const double one : {row.rank, row.repeat, row.top1}) cells.emplace_back(fmt::format("{:.3f}", one));
    cells.emplace_back(fmt::format("{:.0f}, {:.0f}, {:.0f}", row.foretold_gb_s, row.read_gb_s, row.last_gb_s));
    for (const std::string_view strategy : kStrategies) {
      const auto known = row.regret.find(std::string(strategy));
      cells.emplace_back(known == row.regret.end() ? "-" : fmt::format("{:.3f}", known->second));
    }
    table.Add(std::move(cells));
  }
  return table;
}

std::string SummaryText(const std::vector<Row>& rows) {
  std::vector<double> ranks, tops, spaces;
  for (const Row& row : rows) {
    ranks.push_back(row.rank);
    tops.push_back(row.top1);
    spaces.push_back(row.median_over_best);
  }
  std::string text = fmt::format(
      "- Rank correlation: median {:.3f}, worst {:.3f}. Top-1: median {:.3f}, worst {:.3f}. Median over best: at least "
      "{:.2f}.\n",
      measure::Median(ranks), std::ranges::min(ranks), measure::Median(tops), std::ranges::max(tops),
      std::ranges::min(spaces));
  text += "- A choice over the best of all:";
  for (const std::string_view strategy : kStrategies) {
    const std::vector<double> regrets = RegretsOf(rows, strategy);
    if (regrets.empty()) continue;
    const auto within = std::ranges::count_if(regrets, [](double regret) { return regret <= 1.02; });
    text += fmt::format("\n  {} median {:.3f}, worst {:.3f}, within 2 % in {} of {};", strategy,
                        measure::Median(regrets), std::ranges::max(regrets), within, regrets.size());
  }
  text.back() = '.';
  return text + "\n";
}

}  // namespace

json ToJson(const Row& row) {
  json text{{"regret", row.regret}, {"timed", row.timed}, {"points", row.points}};
  for (const TextField& field : kTexts) text[field.name] = row.*field.member;
  for (const CountField& field : kCounts) text[field.name] = row.*field.member;
  for (const NumberField& field : kNumbers) text[field.name] = row.*field.member;
  return text;
}

Result<Row> RowFrom(const json& text) {
  Row row;
  try {
    for (const TextField& field : kTexts) text.at(field.name).get_to(row.*field.member);
    for (const CountField& field : kCounts) text.at(field.name).get_to(row.*field.member);
    for (const NumberField& field : kNumbers) text.at(field.name).get_to(row.*field.member);
    text.at("regret").get_to(row.regret);
    text.at("timed").get_to(row.timed);
    row.points = text.at("points");
  } catch (const json::exception& error) {
    return Fail(Code::kJson, "a row", error.what(), "what search_bench has written");
  }
  return row;
}

std::string TableText(const std::vector<Row>& rows) {
  std::string text = TableOf(rows).Markdown() + "\n";
  if (rows.empty()) return text;
  text += SummaryText(rows);
  for (const Row& row : rows) {
    text += fmt::format(
        "- {} {}: {} sampled, {} wrong, {} of {} codes foretold, by {}; timed: {}; others' CPUs {:.2f}\n", row.format,
        row.shape, row.sampled, row.wrong, row.foretold, row.codes, row.fitted_on, TimedText(row), row.other_cpus);
  }
  return text;
}

}  // namespace boltbeam::search
