// Sums of variances of which each is known from few samples, and the intervals that follow.
#pragma once

#include <span>

namespace boltbeam::lab {

/// An estimate of a variance, and by how many degrees of freedom it is known: infinity where somebody states it.
struct Variance {
  double value = 0;
  double freedom = 0;
};

/// Half the width of an interval about an estimate whose error has all these parts, each independent of the others.
///
/// One part: Student's t. Of several the law is not Student's (Behrens and Fisher). Welch and Satterthwaite's quantile
/// is somewhat short for few degrees of freedom, Cochran's (the parts' quantiles, weighed by the parts) as much too
/// long: this is the mean of both. A test draws ladders of several sessions and counts.
double HalfWidth(std::span<const Variance> parts, double confidence);

}  // namespace boltbeam::lab
