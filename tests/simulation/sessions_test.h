// The claims about error rates, made of the very function that `judge` calls: a few sessions by default, ten thousand
// of each kind in the slow program.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

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

inline Tally Show(const std::string& name, const std::vector<measure::PairedResult>& results, const Ratios& ratios) {
  Tally tally = Count(results, ratios);
  std::cout << tally.Line(name) << '\n';
  return tally;
}

/// Identical sides, sides at the edge of what may be claimed, half a per cent, two per cent.
inline void ExpectStatedRates(const std::string& name, const MakeNoise& noise, std::size_t sessions, bool needs_power) {
  const measure::PairedRules rules = judge::LoadThresholds()->Rules(1, 30, 1);
  const auto run = [&](const std::string& what, const Ratios& ratios) {
    std::vector<measure::PairedResult> results = RunSessions(sessions, ratios, noise, rules);
    const Tally tally = Show(name + " x " + what, results, ratios);
    EXPECT_GE(static_cast<double>(tally.covered),
              (1 - rules.error_rate) * static_cast<double>(sessions) -
                  3.1 * std::sqrt(rules.error_rate * static_cast<double>(sessions)));
    return std::pair(tally, std::move(results));
  };
  const Tally same = run("1", Alike(1)).first;
  EXPECT_LE(static_cast<double>(same.faster + same.slower), Allowed(rules.error_rate, sessions) / 10);
  const Tally edge = run("1.01, the edge", Alike(1 + rules.margin)).first;
  EXPECT_LE(static_cast<double>(edge.faster + edge.slower), Allowed(rules.error_rate, sessions));
  const auto [half, before] = run("1.005", Alike(1.005));
  EXPECT_LE(static_cast<double>(half.faster + half.slower), Allowed(rules.error_rate, sessions) / 10);
  if (!needs_power) return;
  const Tally two = run("1.02", Alike(1.02)).first;
  EXPECT_GE(two.Share(two.slower), 0.95);
  // What a session calls the smallest difference would indeed have been shown: each one is given its own.
  const Tally smallest =
      run("1 + its smallest", [&results = before](std::size_t i) { return 1 + results[i].smallest; }).first;
  EXPECT_LE(static_cast<double>(smallest.sessions - smallest.slower), Allowed(1 - rules.power, sessions));
}

/// As `judge` runs by default: several depths, which share the error rate.
inline void ExpectStatedRatesOverDepths(const std::string& name, const MakeNoise& noise, std::size_t sessions) {
  constexpr std::size_t kDepths = 3;
  const judge::Thresholds thresholds = *judge::LoadThresholds();
  const auto claims = [&](const std::string& what, double ratio) {
    std::vector<bool> any(sessions, false);
    for (std::size_t depth = 0; depth < kDepths; ++depth) {
      const auto results = RunSessions(sessions, Alike(ratio), noise, thresholds.Rules(kDepths, 30, 1), depth);
      Show(name + " x " + what + ", one of 3", results, Alike(ratio));
      for (std::size_t i = 0; i < sessions; ++i) {
        if (results[i].outcome != measure::Outcome::kNoDifference) any[i] = true;
      }
    }
    const auto count = static_cast<double>(std::ranges::count(any, true));
    std::cout << name << " x " << what << ": " << 100 * count / static_cast<double>(sessions)
              << " % of sessions claim something at one depth or more\n";
    return count;
  };
  EXPECT_LE(claims("1", 1), Allowed(thresholds.error_rate, sessions) / 10);
  EXPECT_LE(claims("1.005", 1.005), Allowed(thresholds.error_rate, sessions) / 10);
  EXPECT_LE(claims("1.01, the edge", 1 + thresholds.equivalence), Allowed(thresholds.error_rate, sessions));
  EXPECT_GE(claims("1.02", 1.02), 0.95 * static_cast<double>(sessions));
}

/// Copies of the same plan differ by where their pages lie, which one process can't see. What fresh ones repeat holds
/// of the plans.
inline void ExpectStatedRatesOverLoads(const std::string& name, const MakeNoise& noise, double load_sd,
                                       std::size_t sessions, double least_found) {
  constexpr std::size_t kProcesses = 3;  // the first and --confirm's two
  const judge::Thresholds thresholds = *judge::LoadThresholds();
  const auto repeated = [&](const std::string& what, double ratio) {
    std::vector<std::size_t> slower(sessions, 0);
    for (std::size_t process = 0; process < kProcesses; ++process) {
      const Ratios ratios = Alike(ratio, load_sd, process);
      const auto results = RunSessions(sessions, ratios, noise, thresholds.Rules(1, 30, 1), process);
      Show(name + " x " + what + ", one process", results, Alike(ratio));
      for (std::size_t i = 0; i < sessions; ++i) {
        if (results[i].outcome == measure::Outcome::kSlower) ++slower[i];
      }
    }
    const auto count = static_cast<double>(std::ranges::count(slower, kProcesses));
    std::cout << name << " x " << what << ": " << 100 * count / static_cast<double>(sessions) << " % are slower in all "
              << kProcesses << " processes\n";
    return count;
  };
  EXPECT_LE(repeated("1", 1), Allowed(thresholds.error_rate, sessions) / 10);
  EXPECT_LE(repeated("1.01, the edge", 1 + thresholds.equivalence), Allowed(thresholds.error_rate / 2, sessions));
  EXPECT_GE(repeated("1.02", 1.02), least_found * static_cast<double>(sessions));
}

}  // namespace boltbeam::simulation
