#include "audit/compare/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace boltbeam::audit {
namespace {

constexpr double kNsPerUs = 1e3;
constexpr double kWorthNaming = 0.002;  // of the token
constexpr std::size_t kMostNamed = 4;

// Regions in which one side is faster, the largest difference first: "ffn_down Q4_K (12.3 µs)".
std::string Wins(const Comparison& comparison, bool ours) {
  std::vector<const Region*> wins;
  const double least = kWorthNaming * std::max(comparison.ours_token_ns, comparison.theirs_token_ns);
  for (const Region& region : comparison.regions) {
    const double gain = ours ? -region.DifferenceNs() : region.DifferenceNs();
    if (gain > least) wins.push_back(&region);
  }
  std::ranges::sort(wins, std::greater<>(), [](const Region* region) { return std::fabs(region->DifferenceNs()); });
  std::vector<std::string> names;
  for (const Region* region : wins) {
    if (names.size() == kMostNamed) {
      names.push_back(fmt::format("{} more", wins.size() - kMostNamed));
      break;
    }
    names.push_back(fmt::format("{} ({:.1f} µs)", region->region, std::fabs(region->DifferenceNs()) / kNsPerUs));
  }
  return names.empty() ? "nowhere" : fmt::format("in {}", fmt::join(names, ", "));
}

}  // namespace

double Comparison::ResidualNs() const {
  double explained = 0;
  for (const Region& region : regions) explained += region.DifferenceNs();
  for (const Term& term : terms) explained += term.DifferenceNs();
  return DifferenceNs() - explained;
}

std::string Comparison::Sentence() const {
  const double shares = std::fabs(DifferenceNs()) / std::max(ours_token_ns, theirs_token_ns);
  const std::string whole =
      shares < kWorthNaming
          ? fmt::format("{} and {} take the same time for a token", ours, theirs)
          : fmt::format("{} needs {:.1f} % less time for a token than {}", DifferenceNs() < 0 ? ours : theirs,
                        100 * shares, DifferenceNs() < 0 ? theirs : ours);
  return fmt::format("{} ({}): {} wins {}; {} wins {}; {:+.1f} µs are in no region and no term.", whole, basis, ours,
                     Wins(*this, true), theirs, Wins(*this, false), ResidualNs() / kNsPerUs);
}

}  // namespace boltbeam::audit
