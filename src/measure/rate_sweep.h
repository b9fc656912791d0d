// The protocol by which an arithmetic rate is found: a sweep over the grid (on a CPU, the number of threads) with the
// first number of accumulators, a sweep over the accumulators on the best grid, and the grid again with the winner.
// With other accumulators another grid may win, so that the first sweep alone flatters nobody; and the first sweep's
// own shape, passed again among the last one's, shows how far the machine has drifted meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace boltbeam::measure {

/// A rate of one pass: on grid[i], with the shape's accumulators.
using RatePass = std::function<double(std::size_t grid, std::size_t shape)>;

struct RateSweep {
  std::vector<double> first;               // [grid] medians with the first shape
  std::vector<double> shapes;              // [shape] medians on the grid that was the best then
  std::size_t shape = 0;                   // the best
  std::vector<std::vector<double>> again;  // [grid] fresh samples with it
  std::vector<double> first_again;         // [grid] medians of the first shape, among them
  std::size_t grid = 0;                    // the best with the best shape

  /// How far the second sweep of the grid lies from the first one with the same shape, relative, where it is farthest.
  [[nodiscard]] double Drift() const;
  /// Relative, of the fresh samples on the best grid.
  [[nodiscard]] double Spread() const;
};

struct SweepSizes {
  std::uint32_t rounds = 7;    // of a choice
  std::uint32_t samples = 31;  // fresh ones, after the choices
};

/// Once; at most twice more where the samples spread by more than a tenth, as a core left alone never does. The
/// steadiest of them.
RateSweep SweepRates(std::size_t grid, std::size_t shapes, const RatePass& pass, const SweepSizes& sizes = {});

/// "grid 1, 2 threads: 7.1e+09, 1.42e+10 with 8 accumulators; accumulators 8, 10: 1.42e+10, 1.44e+10; grid again with
/// 10: 7.2e+09, 1.44e+10; drift 0.3 %"
std::string SweepText(const RateSweep& sweep, const std::vector<std::uint32_t>& threads,
                      const std::vector<std::uint32_t>& accumulators);

}  // namespace boltbeam::measure
