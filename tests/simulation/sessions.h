// Test support: many sessions of one kind, counted.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "simulation/noise.h"

namespace boltbeam::simulation {

using MakeNoise = std::function<Noise(std::uint64_t seed)>;
/// The true time of B over that of A in each session.
using Ratios = std::function<double(std::size_t session)>;

/// All alike, but for what the two copies that a session loads differ by (standard deviation of the logarithm): where
/// their pages lie.
Ratios Alike(double ratio, double load_sd = 0, std::uint64_t seed = 0);

/// Runs them on all CPUs; the result does not depend on how many there are. `seed`: others give other sessions.
std::vector<measure::PairedResult> RunSessions(std::size_t sessions, const Ratios& ratios, const MakeNoise& make_noise,
                                               const measure::PairedRules& rules, std::uint64_t seed = 0);

struct Tally {
  std::size_t sessions = 0, faster = 0, slower = 0, unstable = 0, covered = 0, equivalent = 0;
  double seconds = 0;   // of the budget, on average
  double smallest = 0;  // median of the smallest differences shown

  [[nodiscard]] double Share(std::size_t count) const {
    return static_cast<double>(count) / static_cast<double>(sessions);
  }
  [[nodiscard]] std::string Line(const std::string& name) const;
};

Tally Count(const std::vector<measure::PairedResult>& results, const Ratios& ratios);

}  // namespace boltbeam::simulation
