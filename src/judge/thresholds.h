// The numbers by which verdicts are given: data/judge/thresholds.json, and nowhere else.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "measure/paired.h"

namespace boltbeam::judge {

struct Thresholds {
  double tier_a = 0, tier_b = 0;    // gains of the token's time
  double equivalence = 0;           // no smaller difference is claimed, and an interval within it is none
  double protected_regression = 0;  // at any depth
  double error_rate = 0;            // of a whole session: shared among its depths
  double power = 0;
  std::vector<double> looks;
  std::size_t least_rounds = 0;
  double spoiled_share = 0;
  double untimed_share = 0;  // of a window, spent in a side outside the timer
  double floor_band = 0;     // how far below its floor a token may seem to be
  double kl_growth = 0, kl_least = 0;

  /// The protocol's rules for one of so many depths.
  [[nodiscard]] measure::PairedRules Rules(std::size_t depths, double budget_s, std::uint64_t seed) const;
};

Result<Thresholds> LoadThresholds();
/// kJson names the field that is missing or makes no sense.
Result<Thresholds> ParseThresholds(std::string_view text);

}  // namespace boltbeam::judge
