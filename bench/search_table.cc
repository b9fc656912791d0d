#include "search_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "measure/statistics.h"
#include "report/table.h"

namespace boltbeam::search {
namespace {

using report::Cell;

constexpr std::array<std::string_view, 7> kStrategies = {"search", "sample",  "random",   "hash",
                                                         "beam",   "default", "predicted"};
constexpr std::string_view kLegend =
    R"(Cold, {} threads. sampled: drawn at random from all legal points, each of them timed; codes: those of distinct machine
code. rank: of what was foretold with what was timed (Spearman); repeat: of the timings in one half of the sweeps with
those in the other. top-1: the one foretold as fastest over the fastest of the sample. GB/s: the memory's, then and at
the end. timed: by search, random, hash and beam. The last columns: the time of each strategy's choice over that of the
best of all, timed at the end in turns on fresh data; sample: the best of the sample.
)";

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
  for (const char* strategy : {"search", "random", "hash", "beam"}) {
    const auto known = row.timed.find(strategy);
    text += fmt::format("{}{}", text.empty() ? "" : " ", known == row.timed.end() ? 0 : known->second);
  }
  return text;
}

report::Table TableOf(const std::vector<Row>& rows) {
  using report::Align;
  std::vector<report::Column> columns{{"format", "format", Align::kLeft}, {"shape", "shape", Align::kLeft}};
  for (const char* name : {"legal", "sampled", "wrong", "knobs", "codes", "median/best", "rank", "repeat", "top-1"}) {
    columns.push_back({name, name});
  }
  columns.push_back({"GB/s", "gb_s"});
  columns.push_back({"timed", "timed"});
  for (const std::string_view strategy : kStrategies) columns.push_back({std::string(strategy), std::string(strategy)});
  report::Table table(std::move(columns));
  for (const Row& row : rows) {
    std::vector<Cell> cells{row.format, row.shape};
    for (const std::size_t count : {row.legal, row.sampled, row.wrong, row.knobs, row.codes}) {
      cells.emplace_back(fmt::format("{}", count));
    }
    cells.emplace_back(fmt::format("{:.2f}", row.median_over_best));
    for (const double one : {row.rank, row.repeat, row.top1}) cells.emplace_back(fmt::format("{:.3f}", one));
    cells.emplace_back(fmt::format("{:.0f}, {:.0f}", row.read_gb_s, row.last_gb_s));
    cells.emplace_back(TimedText(row));
    for (const std::string_view strategy : kStrategies) {
      const auto known = row.regret.find(std::string(strategy));
      cells.emplace_back(known == row.regret.end() ? "-" : fmt::format("{:.3f}", known->second));
    }
    table.Add(std::move(cells));
  }
  return table;
}

}  // namespace

std::string TableText(const std::vector<Row>& rows, std::uint32_t threads) {
  std::string text = fmt::format(fmt::runtime(kLegend), threads) + "\n" + TableOf(rows).Markdown() + "\n";
  if (rows.empty()) return text;
  std::vector<double> ranks, tops;
  for (const Row& row : rows) {
    ranks.push_back(row.rank);
    tops.push_back(row.top1);
    text += fmt::format("- {} {}: foretold by {}; {} of {} were not turned away\n", row.format, row.shape,
                        row.fitted_on, row.foretold, row.codes);
  }
  text += fmt::format("\nRank correlation: median {:.3f}, worst {:.3f}. Top-1: median {:.3f}, worst {:.3f}.\n",
                      measure::Median(ranks), std::ranges::min(ranks), measure::Median(tops), std::ranges::max(tops));
  for (const std::string_view strategy : kStrategies) {
    const std::vector<double> regrets = RegretsOf(rows, strategy);
    if (regrets.empty()) continue;
    text +=
        fmt::format("{}: median {:.3f}, worst {:.3f}\n", strategy, measure::Median(regrets), std::ranges::max(regrets));
  }
  return text;
}

}  // namespace boltbeam::search
