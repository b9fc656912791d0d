#include "audit/alone.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "measure/statistics.h"

namespace boltbeam::audit {
namespace {

constexpr double kNoSlowerHot = 1.1;  // out of the caches than out of memory
constexpr std::uint32_t kColdRuns = 5;
constexpr std::uint32_t kHotRuns = 40;

struct Times {
  double cold_ns = 0, hot_ns = 0;
};

std::vector<double> SlowestNs(const engine::AloneTimes& times, const measure::Clock& clock) {
  std::vector<double> runs;
  for (const std::vector<std::uint64_t>& run : times.ticks) {
    runs.push_back(clock.ToNs(*std::ranges::max_element(run)));
  }
  return runs;
}

// Of so little of the table that it stays in the caches, per share, as if all of it did.
double HotNs(const engine::AloneTimes& times, const measure::Clock& clock) {
  double slowest = 0;
  for (std::size_t thread = 0; thread < times.shares.size(); ++thread) {
    if (times.shares[thread] <= 0) continue;
    std::vector<double> whole;
    for (const std::vector<std::uint64_t>& run : times.ticks) {
      whole.push_back(clock.ToNs(run[thread]) / times.shares[thread]);
    }
    std::ranges::nth_element(whole, whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 4));
    slowest = std::max(slowest, whole[whole.size() / 4]);
  }
  return slowest;
}

Result<Times> TimeStep(engine::Session& session, const measure::Clock& clock, const AloneOptions& options,
                       std::uint32_t step, std::uint64_t bytes, std::uint32_t threads) {
  Times result;
  engine::Alone cold{.step = step, .runs = kColdRuns, .before = {}};
  cold.before = [&](std::uint32_t thread) { options.sweep(thread, threads); };
  if (options.sweep) {
    BOLTBEAM_ASSIGN(const engine::AloneTimes times, session.RunAlone(cold));
    if (times.ticks.empty()) return result;
    result.cold_ns = measure::Median(SlowestNs(times, clock));
  }
  // First a single item: how large a share of the table it is tells how many of them caches hold.
  BOLTBEAM_ASSIGN(const engine::AloneTimes one,
                  session.RunAlone({.step = step, .runs = 1, .most_items = 1, .before = {}}));
  if (one.ticks.empty()) return result;
  const double item_bytes = std::max(1.0, one.shares[0] * static_cast<double>(bytes) / threads);
  const auto items = static_cast<std::int64_t>(static_cast<double>(options.hot_bytes) / item_bytes);
  BOLTBEAM_ASSIGN(
      const engine::AloneTimes hot,
      session.RunAlone({.step = step, .runs = kHotRuns, .most_items = std::max<std::int64_t>(1, items), .before = {}}));
  result.hot_ns = HotNs(hot, clock);
  // What a call costs however little it reads was scaled with the table: that says nothing of instructions.
  if (result.cold_ns > 0 && result.hot_ns > kNoSlowerHot * result.cold_ns) result.hot_ns = 0;
  return result;
}

}  // namespace

Result<void> TimeAlone(const engine::Engine& engine, engine::Session& session, const measure::Clock& clock,
                       const AloneOptions& options, Account& account) {
  const std::span<const engine::StepInfo> steps = engine.steps();
  std::map<std::pair<std::string, std::uint64_t>, std::vector<std::uint32_t>> kinds;  // by kernel and size
  for (std::uint32_t step = 0; step < steps.size(); ++step) {
    if (steps[step].streams) kinds[{steps[step].kernel_id, steps[step].stored_bytes}].push_back(step);
  }
  std::map<std::uint32_t, Times> times;
  for (const auto& [kind, members] : kinds) {
    const std::uint32_t middle = members[members.size() / 2];
    BOLTBEAM_ASSIGN(const Times of_kind,
                    TimeStep(session, clock, options, middle, kind.second, engine.options().threads));
    for (const std::uint32_t step : members) times[step] = of_kind;
  }
  // A kernel of several parts is divided among them by their bytes, as in the token.
  std::size_t at = 0;
  for (std::uint32_t step = 0; step < steps.size(); ++step) {
    const std::size_t rows = std::max<std::size_t>(1, steps[step].parts.size());
    for (std::size_t row = 0; row < rows && at < account.steps.size(); ++row, ++at) {
      if (!steps[step].streams) continue;
      const StepTime& one = account.steps[at];
      const auto part = std::ranges::find_if(
          account.parts, [&](const Part& p) { return p.role == one.role && p.format == one.format; });
      const double share =
          rows == 1 ? 1 : static_cast<double>(one.bytes) / static_cast<double>(steps[step].stored_bytes);
      part->cold_ns += share * times[step].cold_ns;
      part->hot_ns += share * times[step].hot_ns;
    }
  }
  return {};
}

std::string WhatAloneSays(const Account& account, const Part& part) {
  if (part.hot_ns <= 0) return {};
  if (part.cold_ns <= 0) return part.hot_ns > part.floor_ns ? "instructions bind" : "not timed cold";
  if (part.cold_ns < (1 - account.band) * part.floor_ns) {
    const double before = account.alone_before_gb_s, after = account.alone_after_gb_s;
    if (std::abs(after - before) > kMovedShare * std::min(before, after)) return "alone the memory's speed changed";
    const double kernel_bytes =
        static_cast<double>(part.stored_bytes) / static_cast<double>(std::max<std::uint64_t>(1, part.steps));
    if (kernel_bytes < static_cast<double>(account.cache_bytes)) return "alone it stayed in a cache";
    return "alone faster than the probe";
  }
  if (std::abs(part.now_ns - part.cold_ns) <= account.band * part.cold_ns) return "as alone";
  return part.now_ns > part.cold_ns ? "slower in the token" : "alone it starts anew";
}

}  // namespace boltbeam::audit
