// Test support: many sessions of one kind, counted.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "simulation/noise.h"

namespace boltbeam::simulation {

struct Tally {
  std::size_t sessions = 0, faster = 0, slower = 0, unstable = 0, covered = 0, equivalent = 0;
  double seconds = 0;   // of the budget, on average
  double smallest = 0;  // median of the smallest differences shown

  [[nodiscard]] double Share(std::size_t count) const {
    return static_cast<double>(count) / static_cast<double>(sessions);
  }
  [[nodiscard]] std::string Line(const std::string& name) const;
};

using MakeNoise = std::function<Noise(std::uint64_t seed)>;

/// Runs them on all CPUs; the result does not depend on how many there are.
Tally RunSessions(std::size_t sessions, double ratio, const MakeNoise& make_noise, const measure::PairedRules& rules);

}  // namespace boltbeam::simulation
