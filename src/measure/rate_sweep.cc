#include "measure/rate_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "measure/statistics.h"

namespace boltbeam::measure {
namespace {

constexpr double kSteady = 0.1;
constexpr int kMostSweeps = 3;

using Samples = std::vector<std::vector<double>>;

std::vector<double> Medians(const Samples& samples) {
  std::vector<double> medians;
  for (const std::vector<double>& own : samples) medians.push_back(Median(own));
  return medians;
}

std::size_t Best(const std::vector<double>& rates) {
  return static_cast<std::size_t>(std::ranges::max_element(rates) - rates.begin());
}

/// Every other round backwards, so that a drift within the sweep treats all alike.
template <typename Pass>
void Sweep(std::uint32_t rounds, std::size_t count, const Pass& pass) {
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) pass(round % 2 == 0 ? i : count - 1 - i);
  }
}

std::string Rates(const std::vector<double>& rates) { return fmt::format("{:.3g}", fmt::join(rates, ", ")); }

RateSweep SweepOnce(std::size_t grid, std::size_t shapes, const RatePass& pass, const SweepSizes& sizes) {
  RateSweep sweep;
  Samples first(grid), by_shape(shapes), first_again(grid);
  Sweep(sizes.rounds, grid, [&](std::size_t i) { first[i].push_back(pass(i, 0)); });
  sweep.first = Medians(first);
  const std::size_t best_grid = Best(sweep.first);
  Sweep(sizes.rounds, shapes, [&](std::size_t i) { by_shape[i].push_back(pass(best_grid, i)); });
  sweep.shapes = Medians(by_shape);
  sweep.shape = Best(sweep.shapes);
  sweep.again.resize(grid);
  std::uint32_t round = 0;
  Sweep(sizes.samples, grid, [&](std::size_t i) {
    sweep.again[i].push_back(pass(i, sweep.shape));
    if (round++ < sizes.rounds * grid) first_again[i].push_back(pass(i, 0));
  });
  sweep.first_again = Medians(first_again);
  sweep.grid = Best(Medians(sweep.again));
  return sweep;
}

}  // namespace

double RateSweep::Drift() const {
  double farthest = 0;
  for (std::size_t i = 0; i < first.size(); ++i) farthest = std::max(farthest, std::abs(first_again[i] / first[i] - 1));
  return farthest;
}

double RateSweep::Spread() const { return Summarise(again[grid]).RelativeSpread(); }

RateSweep SweepRates(std::size_t grid, std::size_t shapes, const RatePass& pass, const SweepSizes& sizes) {
  RateSweep steadiest = SweepOnce(grid, shapes, pass, sizes);
  for (int sweep = 1; sweep < kMostSweeps && steadiest.Spread() > kSteady; ++sweep) {
    RateSweep another = SweepOnce(grid, shapes, pass, sizes);
    if (another.Spread() < steadiest.Spread()) steadiest = std::move(another);
  }
  return steadiest;
}

std::string SweepText(const RateSweep& sweep, const std::vector<std::uint32_t>& threads,
                      const std::vector<std::uint32_t>& accumulators) {
  return fmt::format(
      "grid {} thread(s): {} with {} accumulators; accumulators {}: {}; grid again with {}: {}; drift {:.1f} %",
      fmt::join(threads, ", "), Rates(sweep.first), accumulators.front(), fmt::join(accumulators, ", "),
      Rates(sweep.shapes), accumulators[sweep.shape], Rates(Medians(sweep.again)), sweep.Drift() * 100);
}

}  // namespace boltbeam::measure
