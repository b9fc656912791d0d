// What search_bench found of each format and shape: a row in a file when it is done, all of them as a Markdown table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace boltbeam::search {

struct Row {
  std::string format, shape, fitted_on;
  std::size_t legal = 0, knobs = 0, sampled = 0, codes = 0, wrong = 0, foretold = 0;
  double median_over_best = 0, rank = 0, top1 = 0;
  double repeat = 0;                         // rank correlation of the timing with itself: no prediction comes higher
  double foretold_gb_s = 0;                  // the memory's rate that predictions were made with
  double read_gb_s = 0, last_gb_s = 0;       // while the sample was timed, and at the end
  double other_cpus = 0;                     // that other programs kept busy while the sample was timed
  std::map<std::string, double> regret;      // of each strategy's choice
  std::map<std::string, std::size_t> timed;  // candidates
  nlohmann::json points = nlohmann::json::array();  // of the sample: what was foretold and timed
};

nlohmann::json ToJson(const Row& row);
/// kJson when it is no row.
Result<Row> RowFrom(const nlohmann::json& json);

/// As it stands in docs/search.md, with the medians and the worst over all rows below it.
std::string TableText(const std::vector<Row>& rows);

}  // namespace boltbeam::search
