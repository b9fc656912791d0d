#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace boltbeam::measure {
namespace {

constexpr double kLowQuantile = 0.025, kHighQuantile = 0.975;  // of a 95 % interval

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kNormalFromMad = 1.4826;

bool AnyNotANumber(std::span<const double> values) {
  return std::ranges::any_of(values, [](double value) { return std::isnan(value); });
}

double QuantileOfSorted(std::span<const double> sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = position - static_cast<double>(below);
  // Equal neighbours must give themselves, infinities included.
  if (sorted[below] == sorted[above]) return sorted[below];
  return sorted[below] + share * (sorted[above] - sorted[below]);
}

std::vector<double> Sorted(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return sorted;
}

}  // namespace

double Quantile(std::span<const double> values, double q) {
  if (values.empty() || AnyNotANumber(values)) return kNotANumber;
  return QuantileOfSorted(Sorted(values), std::clamp(q, 0.0, 1.0));
}

double Median(std::span<const double> values) { return Quantile(values, 0.5); }

double Mean(std::span<const double> values) {
  if (values.empty()) return kNotANumber;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double StandardDeviation(std::span<const double> values) {
  if (values.empty() || AnyNotANumber(values)) return kNotANumber;
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double MedianAbsoluteDeviation(std::span<const double> values) {
  const double median = Median(values);
  if (std::isnan(median)) return kNotANumber;
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - median));
  return Median(distances);
}

double Summary::RelativeSpread() const { return median == 0 ? 0 : kNormalFromMad * mad / std::abs(median); }

Summary Summarise(std::span<const double> values) {
  Summary summary;
  summary.n = values.size();
  if (values.empty() || AnyNotANumber(values)) {
    summary.min = summary.p10 = summary.median = summary.p90 = summary.max = summary.mad = summary.mean = kNotANumber;
    return summary;
  }
  const std::vector<double> sorted = Sorted(values);
  summary.min = sorted.front();
  summary.p10 = QuantileOfSorted(sorted, 0.1);
  summary.median = QuantileOfSorted(sorted, 0.5);
  summary.p90 = QuantileOfSorted(sorted, 0.9);
  summary.max = sorted.back();
  summary.mad = MedianAbsoluteDeviation(values);
  summary.mean = Mean(values);
  return summary;
}

Interval BootstrapMean(std::span<const double> values, std::uint64_t seed, int resamples) {
  if (values.empty() || AnyNotANumber(values)) return {kNotANumber, kNotANumber, kNotANumber};
  std::mt19937_64 random(seed);
  std::vector<double> means;
  for (int i = 0; i < resamples; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < values.size(); ++k) sum += values[random() % values.size()];
    means.push_back(sum / static_cast<double>(values.size()));
  }
  return {Mean(values), Quantile(means, kLowQuantile), Quantile(means, kHighQuantile)};
}

Interval BootstrapMedian(std::span<const double> values, std::uint64_t seed, int resamples) {
  if (values.empty() || AnyNotANumber(values)) return {kNotANumber, kNotANumber, kNotANumber};
  // The engine's own output is fixed by the standard, the distributions' are not: the index is taken by hand.
  std::mt19937_64 random(seed);
  std::vector<double> medians, sample(values.size());
  medians.reserve(static_cast<std::size_t>(resamples));
  for (int i = 0; i < resamples; ++i) {
    for (double& value : sample) value = values[random() % values.size()];
    const auto middle = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
    std::ranges::nth_element(sample, middle);
    double median = *middle;
    if (sample.size() % 2 == 0) median = (median + *std::max_element(sample.begin(), middle)) / 2;
    medians.push_back(median);
  }
  return {Median(values), Quantile(medians, kLowQuantile), Quantile(medians, kHighQuantile)};
}

std::vector<double> PairedLogRatios(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  const std::size_t pairs = std::min(a.size(), b.size());
  ratios.reserve(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    ratios.push_back(a[i] > 0 && b[i] > 0 ? std::log(b[i] / a[i]) : kNotANumber);
  }
  return ratios;
}

Interval PairedRatio(std::span<const double> a, std::span<const double> b, std::uint64_t seed, int resamples) {
  const Interval logs = BootstrapMedian(PairedLogRatios(a, b), seed, resamples);
  return {std::exp(logs.estimate), std::exp(logs.low), std::exp(logs.high)};
}

StrictWindow ApplyStrictWindow(std::span<const double> values_ns) {
  constexpr double kLeastDistanceNs = 250'000;
  constexpr double kMads = 6;
  constexpr std::size_t kLeastKept = 3;
  StrictWindow window;
  window.limit_ns = Median(values_ns) + std::max(kLeastDistanceNs, kMads * MedianAbsoluteDeviation(values_ns));
  for (const double value : values_ns) (value > window.limit_ns ? window.rejected : window.accepted).push_back(value);
  if (window.accepted.size() < kLeastKept) {
    window.accepted.assign(values_ns.begin(), values_ns.end());
    window.rejected.clear();
  }
  window.median_ns = Median(window.accepted);
  return window;
}

std::vector<std::size_t> MiddleHalf(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  const std::size_t cut = values.size() / 4;
  std::vector<std::size_t> middle(order.begin() + static_cast<std::ptrdiff_t>(cut),
                                  order.end() - static_cast<std::ptrdiff_t>(cut));
  std::ranges::sort(middle);
  return middle;
}

}  // namespace boltbeam::measure
