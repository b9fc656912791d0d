// What search_bench found of each format and shape, as a Markdown table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace boltbeam::search {

struct Row {
  std::string format, shape;
  std::size_t legal = 0, knobs = 0, sampled = 0, codes = 0, wrong = 0;
  double median_over_best = 0, correlation = 0, top1 = 0;
  std::map<std::string, double> regret;      // of each strategy's choice
  std::map<std::string, std::size_t> timed;  // candidates
};

/// With the medians and the worst over all rows below it.
void PrintTable(const std::vector<Row>& rows, std::uint32_t threads);

}  // namespace boltbeam::search
