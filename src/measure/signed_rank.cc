#include "measure/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace boltbeam::measure {
namespace {

constexpr std::size_t kExact = 40;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Pairs(std::size_t n) { return static_cast<double>(n) * static_cast<double>(n + 1) / 2; }

// tails[w] = P(W >= w): each rank is in the sum or not, with equal chances.
std::vector<double> ExactTails(std::size_t n) {
  const auto most = static_cast<std::size_t>(Pairs(n));
  std::vector<double> chance(most + 1);
  chance[0] = 1;
  std::size_t reached = 0;
  for (std::size_t rank = 1; rank <= n; ++rank) {
    reached += rank;
    for (std::size_t w = reached; w >= rank; --w) chance[w] = (chance[w] + chance[w - rank]) / 2;
    for (std::size_t w = 0; w < rank; ++w) chance[w] /= 2;
  }
  for (std::size_t w = most; w > 0; --w) chance[w - 1] += chance[w];
  return chance;
}

}  // namespace

double NormalBelow(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

double NormalQuantile(double probability) {
  if (probability <= 0) return -kInfinity;
  if (probability >= 1) return kInfinity;
  double low = -40, high = 40;
  constexpr int kHalvings = 80;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::midpoint(low, high);
    (NormalBelow(middle) < probability ? low : high) = middle;
  }
  return high;
}

double SignedRankTail(std::size_t n, double w) {
  if (w <= 0) return 1;
  if (w > Pairs(n)) return 0;
  if (n <= kExact) return ExactTails(n)[static_cast<std::size_t>(std::ceil(w))];
  const double count = static_cast<double>(n);
  const double deviation = std::sqrt(count * (count + 1) * (2 * count + 1) / 24);
  return NormalBelow(-(w - 0.5 - Pairs(n) / 2) / deviation);
}

std::int64_t SignedRankCritical(std::size_t n, double tail) {
  const auto all = static_cast<std::int64_t>(Pairs(n));
  if (n <= kExact) {
    const std::vector<double> tails = ExactTails(n);
    std::int64_t w = all + 1;
    while (w > 0 && tails[static_cast<std::size_t>(w - 1)] <= tail) --w;
    return w;
  }
  const double count = static_cast<double>(n);
  const double deviation = std::sqrt(count * (count + 1) * (2 * count + 1) / 24);
  const double w = std::ceil(Pairs(n) / 2 + 0.5 - NormalQuantile(tail) * deviation);
  return static_cast<std::int64_t>(std::clamp(w, 0.0, static_cast<double>(all + 1)));
}

PairMeans::PairMeans(std::span<const double> values)
    : sorted_(values.begin(), values.end()), count_(static_cast<std::int64_t>(Pairs(values.size()))) {
  std::ranges::sort(sorted_);
}

// How many means lie above the place. Both ends walk once.
std::int64_t PairMeans::Above(double place) const {
  std::int64_t above = 0;
  std::size_t low = 0, high = sorted_.size();  // partners of the largest value not yet counted: [low, high)
  while (high > 0) {
    while (low < high && sorted_[low] + sorted_[high - 1] <= 2 * place) ++low;
    if (low >= high) break;
    above += static_cast<std::int64_t>(high - low);
    --high;
  }
  return above;
}

// The k-th smallest, k from 1, to a ten-thousand-millionth.
double PairMeans::OfRank(std::int64_t k) const {
  constexpr double kPrecision = 1e-10;
  double low = sorted_.front(), high = sorted_.back();
  if (count_ - Above(low) >= k) return low;
  // Invariant: fewer than k means at or below `low`, at least k at or below `high`.
  while (high - low > kPrecision * std::max(1.0, std::max(std::abs(low), std::abs(high)))) {
    const double middle = std::midpoint(low, high);
    (count_ - Above(middle) >= k ? high : low) = middle;
  }
  return high;
}

double PairMeans::Estimate() const {
  return count_ % 2 == 1 ? OfRank(count_ / 2 + 1) : std::midpoint(OfRank(count_ / 2), OfRank(count_ / 2 + 1));
}

Interval PairMeans::Bounds(double tail) const {
  const std::int64_t critical = SignedRankCritical(sorted_.size(), tail);
  Interval interval;
  // A middle below the (count - critical + 1)-th mean would have at least `critical` means above it: refused.
  interval.low = critical > count_ ? -kInfinity : OfRank(count_ - critical + 1);
  interval.high = critical > count_ ? kInfinity : OfRank(critical);
  return interval;
}

Interval HodgesLehmann(std::span<const double> values, double tail) {
  constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
  if (values.empty() || std::ranges::any_of(values, [](double value) { return !std::isfinite(value); })) {
    return {kNotANumber, kNotANumber, kNotANumber};
  }
  const PairMeans means(values);
  Interval interval = means.Bounds(tail);
  interval.estimate = means.Estimate();
  return interval;
}

}  // namespace boltbeam::measure
