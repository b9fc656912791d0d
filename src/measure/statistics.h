// Estimators of a set of samples: pure functions, no clock and no machine in them.
//
// A value that is not a number makes every estimate not a number; an empty set does too. Nothing is dropped by value
// except by StrictWindow, whose rule is declared in advance and whose rejected samples are kept and reported.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace boltbeam::measure {

/// Linear interpolation between order statistics (type 7 of Hyndman and Fan, the common default); q from 0 to 1.
double Quantile(std::span<const double> values, double q);
double Median(std::span<const double> values);
double Mean(std::span<const double> values);
/// Of the sample, n - 1 below; 0 for fewer than two values, as llama-bench prints it.
double StandardDeviation(std::span<const double> values);
/// Median of the distances from the median, not scaled.
double MedianAbsoluteDeviation(std::span<const double> values);

struct Summary {
  std::size_t n = 0;
  double min = 0, p10 = 0, median = 0, p90 = 0, max = 0, mad = 0, mean = 0;

  /// 1.4826 MAD / median: the standard deviation of a normal law with this MAD, relative.
  [[nodiscard]] double RelativeSpread() const;
};
Summary Summarise(std::span<const double> values);

struct Interval {
  double estimate = 0, low = 0, high = 0;
};
/// The median with a 95 % percentile interval from resamples of the values, drawn with a seed that is recorded.
Interval BootstrapMean(std::span<const double> values, std::uint64_t seed, int resamples = 2000);
Interval BootstrapMedian(std::span<const double> values, std::uint64_t seed, int resamples = 2000);

/// log(b / a) of every pair; exp of its median is the paired ratio.
std::vector<double> PairedLogRatios(std::span<const double> a, std::span<const double> b);
/// exp of the bootstrap interval of the paired log-ratios: how many times longer b takes than a.
Interval PairedRatio(std::span<const double> a, std::span<const double> b, std::uint64_t seed, int resamples = 2000);

/// The high-side rule of strict windows: limit = median + max(250 us, 6 MAD); samples above it are rejected, unless
/// fewer than three would remain, and then none is. Low ones never are. In nanoseconds.
struct StrictWindow {
  double limit_ns = 0;
  std::vector<double> accepted, rejected;
  double median_ns = 0;  // of the accepted
};
StrictWindow ApplyStrictWindow(std::span<const double> values_ns);

/// The indices of the middle half of the values by rank (all of them when there are fewer than four): the rounds whose
/// mean is the midmean, the same for every line of an account so that the lines still add up.
std::vector<std::size_t> MiddleHalf(std::span<const double> values);

}  // namespace boltbeam::measure
