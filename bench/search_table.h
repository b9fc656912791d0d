// What search_bench found of each format and shape, as a Markdown table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace boltbeam::search {

struct Row {
  std::string format, shape, fitted_on;
  std::size_t legal = 0, knobs = 0, sampled = 0, codes = 0, wrong = 0, foretold = 0;
  double median_over_best = 0, rank = 0, top1 = 0;
  double repeat = 0;                         // rank correlation of the timing with itself: no prediction comes higher
  double read_gb_s = 0, last_gb_s = 0;       // while the sample was timed, and at the end
  std::map<std::string, double> regret;      // of each strategy's choice
  std::map<std::string, std::size_t> timed;  // candidates
};

/// With the medians and the worst over all rows below it.
std::string TableText(const std::vector<Row>& rows, std::uint32_t threads);

}  // namespace boltbeam::search
