#include "search_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "measure/statistics.h"

namespace boltbeam::search {

void PrintTable(const std::vector<Row>& rows, std::uint32_t threads) {
  std::printf("Cold, %u threads; regret: time over that of the best of all that were timed last, in turns.\n\n",
              threads);
  std::printf("| format | shape | legal | sampled | knobs | codes | median/best | rank corr. | top-1 |");
  const char* const strategies[] = {"search", "exhaustive", "random", "hash", "beam", "default", "predicted"};
  for (const char* strategy : strategies) std::printf(" %s |", strategy);
  std::printf("\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  std::vector<double> correlations;
  for (const Row& row : rows) {
    std::printf("| %s | %s | %zu | %zu | %zu | %zu | %.2f | %.3f | %.3f |", row.format.c_str(), row.shape.c_str(),
                row.legal, row.sampled, row.knobs, row.codes, row.median_over_best, row.correlation, row.top1);
    for (const char* strategy : strategies) {
      const auto regret = row.regret.find(strategy);
      std::printf(" %.3f |", regret == row.regret.end() ? std::nan("") : regret->second);
    }
    std::printf("\n");
    correlations.push_back(row.correlation);
  }
  if (correlations.empty()) return;
  std::printf("\nrank correlation: median %.3f, worst %.3f; ", measure::Median(correlations),
              *std::ranges::min_element(correlations));
  for (const char* strategy : strategies) {
    std::vector<double> regrets;
    for (const Row& row : rows) regrets.push_back(row.regret.at(strategy));
    std::printf("%s: regret median %.3f, worst %.3f; ", strategy, measure::Median(regrets),
                *std::ranges::max_element(regrets));
  }
  std::printf("\n");
}

}  // namespace boltbeam::search
