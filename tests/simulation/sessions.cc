#include "simulation/sessions.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "measure/statistics.h"

namespace boltbeam::simulation {

std::string Tally::Line(const std::string& name) const {
  return fmt::format(
      "{:<28} {:>6} sessions: faster {:.2f} %, slower {:.2f} %, not shown {:.2f} %, covered {:.1f} %, unstable {:.1f} "
      "%, "
      "{:.1f} s, smallest {:.2f} %",
      name, sessions, 100 * Share(faster), 100 * Share(slower), 100 * Share(sessions - faster - slower),
      100 * Share(covered), 100 * Share(unstable), seconds, 100 * smallest);
}

Ratios Alike(double ratio, double load_sd, std::uint64_t seed) {
  return [=](std::size_t session) {
    std::mt19937_64 random(7919 * session + seed);
    return ratio * std::exp(std::normal_distribution<double>(0, 1)(random) * load_sd);
  };
}

std::vector<measure::PairedResult> RunSessions(std::size_t sessions, const Ratios& ratios, const MakeNoise& make_noise,
                                               const measure::PairedRules& rules, std::uint64_t seed) {
  std::vector<measure::PairedResult> results(sessions);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < sessions; i = next++) {
      measure::PairedRules own = rules;
      own.seed = 1'000'003 * i + 17 + seed;
      own.resamples = 0;
      SimulatedSource source(make_noise(2 * i + 1 + 1'000'000 * seed), ratios(i), i + 1'000'000 * seed);
      results[i] = measure::RunPaired(source, own).value().result;
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < std::max(1U, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
  threads.clear();
  return results;
}

Tally Count(const std::vector<measure::PairedResult>& results, const Ratios& ratios) {
  Tally tally;
  tally.sessions = results.size();
  std::vector<double> smallest;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const measure::PairedResult& result = results[i];
    tally.faster += result.outcome == measure::Outcome::kFaster ? 1 : 0;
    tally.slower += result.outcome == measure::Outcome::kSlower ? 1 : 0;
    tally.unstable += result.stable ? 0 : 1;
    tally.equivalent += result.equivalent ? 1 : 0;
    tally.covered += result.ratio.low <= ratios(i) && ratios(i) <= result.ratio.high ? 1 : 0;
    tally.seconds += result.spent_s / static_cast<double>(results.size());
    smallest.push_back(result.smallest);
  }
  tally.smallest = measure::Median(smallest);
  return tally;
}

}  // namespace boltbeam::simulation
