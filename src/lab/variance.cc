#include "lab/variance.h"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace boltbeam::lab {
namespace {

double Quantile(double freedom, double confidence) {
  const double share = (1 + confidence) / 2;
  if (std::isinf(freedom)) return boost::math::quantile(boost::math::normal(), share);
  return boost::math::quantile(boost::math::students_t(freedom), share);
}

}  // namespace

double HalfWidth(std::span<const Variance> parts, double confidence) {
  double sum = 0, squares = 0, cochran = 0;
  for (const Variance& part : parts) {
    if (part.value <= 0) continue;
    sum += part.value;
    squares += part.value * part.value / part.freedom;
    cochran += part.value * Quantile(part.freedom, confidence);
  }
  if (sum <= 0) return 0;
  const double freedom = squares > 0 ? sum * sum / squares : std::numeric_limits<double>::infinity();
  return (Quantile(freedom, confidence) + cochran / sum) / 2 * std::sqrt(sum);
}

}  // namespace boltbeam::lab
