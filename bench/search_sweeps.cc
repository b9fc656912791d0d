#include "search_sweeps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "measure/statistics.h"
#include "search/fit.h"

namespace boltbeam::search {
namespace {

constexpr double kUsualRate = 0.15;  // relative: within this of the median
constexpr std::size_t kLeastSweeps = 5;
constexpr std::uint64_t kLots = 3;

using Logs = std::vector<double>;  // of one sweep, by contender

/// The memory's rate drifts from sweep to sweep: all of a sweep are brought to one mean.
Swept Together(const std::vector<const Logs*>& sweeps, double rate) {
  std::vector<double> means;
  for (const Logs* sweep : sweeps) means.push_back(measure::Mean(*sweep));
  Swept swept;
  swept.read_gb_s = rate;
  const double mean = measure::Median(means);
  std::vector<double> halves[2];
  for (std::size_t i = 0; i < sweeps.front()->size(); ++i) {
    std::vector<double> all, half[2];
    for (std::size_t k = 0; k < sweeps.size(); ++k) {
      all.push_back((*sweeps[k])[i] - means[k]);
      half[k % 2].push_back(all.back());
    }
    swept.ns.push_back(std::exp(measure::Median(all) + mean));
    for (const int h : {0, 1}) halves[h].push_back(half[h].empty() ? 0 : measure::Median(half[h]));
  }
  swept.repeat = RankCorrelation(halves[0], halves[1]);
  return swept;
}

}  // namespace

Swept SweepAll(TimingBench& bench, const std::vector<Contender>& contenders, std::size_t sweeps) {
  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const runtime::Pin pin(bench.first_cpu());
  std::mt19937_64 lots(kLots);
  std::vector<Logs> logs(sweeps, Logs(contenders.size()));
  std::vector<double> rates{bench.ReadRate()};
  for (Logs& sweep : logs) {
    std::ranges::shuffle(order, lots);
    for (const std::size_t i : order) sweep[i] = std::log(bench.Window(contenders[i]));
    rates.push_back(bench.ReadRate());
  }
  const double rate = measure::Median(rates);
  const auto is_usual = [&](double one) { return std::abs(one / rate - 1) < kUsualRate; };
  std::vector<const Logs*> counted;
  for (std::size_t i = 0; i < sweeps; ++i) {
    if (is_usual(rates[i]) && is_usual(rates[i + 1])) counted.push_back(&logs[i]);
  }
  if (counted.size() < kLeastSweeps) {
    counted.clear();
    for (const Logs& sweep : logs) counted.push_back(&sweep);
  }
  return Together(counted, rate);
}

}  // namespace boltbeam::search
