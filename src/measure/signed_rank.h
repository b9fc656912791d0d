// Wilcoxon's signed-rank test, turned into an interval: where the middle of a symmetric law lies.
//
// It asks only that the values lie symmetrically about the middle. A contrast between two sides whose order was drawn
// by lot has that by construction, whatever the noise: drift, bursts, several speeds, heavy tails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/statistics.h"

namespace boltbeam::measure {

/// P(W >= w) for the sum W of the ranks of the positive ones among n values symmetric about 0. Exact up to 40 values,
/// the normal law with a correction for continuity above.
double SignedRankTail(std::size_t n, double w);

/// The smallest w with P(W >= w) <= tail; n (n + 1) / 2 + 1 when there is none.
std::int64_t SignedRankCritical(std::size_t n, double tail);

/// The means of all pairs of values, each value with itself included, in order: without making the list.
class PairMeans {
 public:
  /// No value may be NaN.
  explicit PairMeans(std::span<const double> values);

  /// Hodges and Lehmann's estimate: the median of the means.
  [[nodiscard]] double Estimate() const;
  /// The ends of the interval, each of which lies beyond the middle with at most the probability `tail`. Infinite: too
  /// few values for so small a tail. The estimate is not filled in.
  [[nodiscard]] Interval Bounds(double tail) const;

 private:
  [[nodiscard]] std::int64_t Above(double place) const;
  [[nodiscard]] double OfRank(std::int64_t k) const;

  std::vector<double> sorted_;
  std::int64_t count_ = 0;
};

/// Both together; NaN when there are no values or one is NaN.
Interval HodgesLehmann(std::span<const double> values, double tail);

/// The normal law's distribution function and its inverse.
double NormalBelow(double z);
double NormalQuantile(double probability);

}  // namespace boltbeam::measure
