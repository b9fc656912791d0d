// The windows that the verdict on a candidate rests on, as the ledger keeps them, and the verdict's ratio from them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "measure/statistics.h"

namespace boltbeam::search {

inline constexpr std::string_view kTrialSamplesFormat = "boltbeam.search_trial.v1";

/// Two candidates' windows, pair by pair from the same sweeps, in nanoseconds.
struct PairedWindows {
  std::vector<double> best, own;
  std::uint64_t seed = 1;   // of the bootstrap
  bool is_inverse = false;  // what is asked is the best's time over the other's

  /// own over best, or the other way.
  [[nodiscard]] measure::Interval Ratio() const;
};

/// Of two ratios, one after the other.
measure::Interval Product(const measure::Interval& a, const measure::Interval& b);
/// The product over stages, each of which began with the best of the one before.
measure::Interval RatioOf(std::span<const PairedWindows> stages);

std::string TrialSamples(std::span<const PairedWindows> stages);
/// The verdict's fields that follow: ratio, ratio_low, ratio_high. kJson when the text is no such samples.
Result<nlohmann::json> RederiveTrial(std::string_view samples);

}  // namespace boltbeam::search
