// The claims about error rates, made of the very function that `judge` calls: a few sessions by default, ten thousand
// of each kind in the slow program.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "judge/thresholds.h"
#include "simulation/sessions.h"

namespace boltbeam::simulation {

inline const Recording& Recorded() {
  static const Recording recording = LoadRecording();
  return recording;
}

inline MakeNoise Modelled(const NoiseModel& model) {
  constexpr double kSessionWindows = 30 / (kWindowS + kBetweenS);
  return [model](std::uint64_t seed) { return Noise(model, seed, kSessionWindows); };
}

/// The most claims among so many sessions that a rate explains, but for one chance in a thousand.
inline double Allowed(double rate, std::size_t sessions) {
  const double expected = rate * static_cast<double>(sessions);
  return expected + 3.1 * std::sqrt(expected) + 1;
}

/// Identical sides, sides at the edge of what may be claimed, half a per cent, two per cent.
inline void ExpectStatedRates(const std::string& name, const MakeNoise& noise, std::size_t sessions, bool needs_power) {
  const measure::PairedRules rules = judge::LoadThresholds()->Rules(1, 30, 1);
  const auto run = [&](double ratio) {
    const Tally tally = RunSessions(sessions, ratio, noise, rules);
    std::cout << tally.Line(name + " x " + std::to_string(ratio).substr(0, 6)) << '\n';
    EXPECT_GE(static_cast<double>(tally.covered),
              (1 - rules.error_rate) * static_cast<double>(sessions) -
                  3.1 * std::sqrt(rules.error_rate * static_cast<double>(sessions)));
    return tally;
  };
  const Tally same = run(1);
  EXPECT_LE(static_cast<double>(same.faster + same.slower), Allowed(rules.error_rate, sessions) / 10);
  const Tally edge = run(1 + rules.margin);
  EXPECT_LE(static_cast<double>(edge.faster + edge.slower), Allowed(rules.error_rate, sessions));
  const Tally half = run(1.005);
  EXPECT_LE(static_cast<double>(half.faster + half.slower), Allowed(rules.error_rate, sessions) / 10);
  if (!needs_power) return;
  const Tally two = run(1.02);
  EXPECT_GE(two.Share(two.slower), 0.95);
  // What a session calls the smallest difference would indeed have been shown.
  const Tally smallest = run(1 + half.smallest);
  EXPECT_GE(smallest.Share(smallest.slower), rules.power - 0.02);
}

}  // namespace boltbeam::simulation
