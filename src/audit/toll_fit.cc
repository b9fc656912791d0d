#include "audit/toll_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace boltbeam::audit {
namespace {

constexpr double kMostOfExcess = 2.0 / 3;
constexpr double kSizesApart = 2;  // the largest table's floor over the smallest's: less tells nothing
constexpr double kNsPerUs = 1e3;

LaunchLoss LossOf(const Launches& launches, double gb_s, double band, double cache_bytes) {
  LaunchLoss loss{.name = launches.name, .count = launches.count, .bytes = launches.bytes, .now_ns = launches.now_ns};
  loss.floor_ns = launches.bytes / gb_s;
  loss.excess_ns = loss.now_ns - loss.floor_ns;
  loss.share_of_rate = loss.floor_ns / loss.now_ns;
  const bool fits = cache_bytes <= 0 || loss.bytes <= cache_bytes;
  loss.cached = fits && loss.now_ns < loss.floor_ns * (1 - band);
  return loss;
}

struct Line {
  double toll = 0, rate = 0;
};

// Sums of the normal equations of y = toll * x + rate, with x = 1 / floor, y = excess / floor and weight floor * count.
struct Sums {
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;

  void Add(const LaunchLoss& loss) {
    const double weight = loss.count * loss.floor_ns;
    const double inverse = 1 / loss.floor_ns, relative = loss.excess_ns / loss.floor_ns;
    w += weight;
    x += weight * inverse;
    y += weight * relative;
    xx += weight * inverse * inverse;
    xy += weight * inverse * relative;
  }
  // The best line with neither term below 0: the free solution, or the better of the two with one term alone.
  [[nodiscard]] Line Solve() const {
    const double determinant = w * xx - x * x;
    const Line both{(w * xy - x * y) / determinant, (xx * y - x * xy) / determinant};
    if (both.toll >= 0 && both.rate >= 0) return both;
    const Line toll{std::max(0.0, xy / xx), 0}, rate{0, std::max(0.0, y / w)};
    return Cost(toll) <= Cost(rate) ? toll : rate;
  }
  // The squared misfit, less the part that no line changes.
  [[nodiscard]] double Cost(const Line& line) const {
    return line.toll * line.toll * xx + 2 * line.toll * line.rate * x + line.rate * line.rate * w -
           2 * (line.toll * xy + line.rate * y);
  }
};

Loss Judge(const TollFit& fit, double floor_ns, double band) {
  if (fit.excess_ns <= band * floor_ns) return Loss::kNone;
  if (fit.toll_share >= kMostOfExcess) return Loss::kToll;
  return fit.toll_share <= 1 - kMostOfExcess ? Loss::kRate : Loss::kMixed;
}

}  // namespace

std::string_view LossName(Loss loss) {
  constexpr std::array kNames{"none", "toll", "rate", "mixed", "unknown"};
  return kNames.at(static_cast<std::size_t>(loss));
}

TollFit FitToll(std::span<const Launches> launches, double gb_s, double band, double cache_bytes) {
  TollFit fit;
  Sums sums;
  double floor_ns = 0, smallest = INFINITY, largest = 0, calls = 0;
  for (const Launches& row : launches) {
    if (!(row.count > 0 && row.bytes > 0 && row.now_ns > 0 && gb_s > 0)) continue;
    const LaunchLoss loss = LossOf(row, gb_s, band, cache_bytes);
    fit.launches.push_back(loss);
    if (loss.cached) continue;
    sums.Add(loss);
    floor_ns += loss.count * loss.floor_ns;
    fit.excess_ns += loss.count * loss.excess_ns;
    calls += loss.count;
    smallest = std::min(smallest, loss.floor_ns);
    largest = std::max(largest, loss.floor_ns);
  }
  if (largest < kSizesApart * smallest) return fit;  // also when no row is left
  const Line line = sums.Solve();
  fit.toll_ns = line.toll;
  fit.rate = line.rate;
  const double explained = line.toll * calls + line.rate * floor_ns;
  fit.toll_share = explained > 0 ? line.toll * calls / explained : 0;
  double missed = 0;
  for (const LaunchLoss& loss : fit.launches) {
    if (!loss.cached) missed += loss.count * std::fabs(loss.excess_ns - line.toll - line.rate * loss.floor_ns);
  }
  fit.misfit = fit.excess_ns > 0 ? missed / fit.excess_ns : 0;
  fit.loss = Judge(fit, floor_ns, band);
  return fit;
}

std::string DescribeToll(const TollFit& fit) {
  const std::string both =
      fmt::format("{:.2f} µs per launch and {:.1f} % of the bytes' time", fit.toll_ns / kNsPerUs, 100 * fit.rate);
  switch (fit.loss) {
    case Loss::kNone:
      return "none: the tables are read at the memory's rate";
    case Loss::kToll:
      return fmt::format("toll per launch: the loss does not grow with the table ({})", both);
    case Loss::kRate:
      return fmt::format("steady rate: the loss grows with the table ({})", both);
    case Loss::kMixed:
      return fmt::format("a toll and a rate: {}", both);
    case Loss::kUnknown:
      break;
  }
  return "unknown: the tables are too much of one size to tell a toll from a rate";
}

}  // namespace boltbeam::audit
