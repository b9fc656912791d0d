#include "judge/window_conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace boltbeam::judge {
namespace {

constexpr std::array kOfWindows = {kTimedWork, kAboveFloor, kTimedOutput};
constexpr std::array kOfTimes = {kQuiet, kSpeed, kNoRegression};

// The first pairs before the windows are a sample of what rounding does; more of them come a little further.
constexpr double kFurther = 2, kRounding = 1e-3;
// Of rounds that may lie further still. Wrong work in fewer than these is worth less than tier B.
constexpr double kStrayShare = 0.02;

struct Share {
  double outside_ns = 0, timed_ns = 0;
  [[nodiscard]] double Value() const { return timed_ns > 0 ? outside_ns / timed_ns : outside_ns > 0 ? 1 : 0; }
};

// What comes from outside the process and may stretch work between windows; a side could spoil its own in other ways.
bool IsFromOutside(const measure::Causes& causes) {
  return std::ranges::any_of(std::array{measure::Cause::kQuota, measure::Cause::kSteal, measure::Cause::kInterrupted},
                             [&](measure::Cause cause) { return causes.test(static_cast<std::size_t>(cause)); });
}

// Over all of a side's windows together, so that work put off into a few of them counts as it weighs. Those that other
// programs spoiled only where there are no others.
Share OutsideOf(const DepthSamples& samples, bool is_b) {
  Share clean, all;
  for (const measure::PairedRound& round : samples.rounds) {
    for (std::size_t i = 0; i < round.windows.size(); ++i) {
      const measure::TimedWindow& window = round.windows[i];
      if (round.IsB(i) != is_b) continue;
      for (Share* share : {&clean, &all}) {
        if (share == &clean && IsFromOutside(window.causes)) continue;
        share->outside_ns += window.outside_ns;
        share->timed_ns += window.ns;
      }
    }
  }
  return clean.timed_ns > 0 ? clean : all;
}

bool AllSeen(const std::vector<DepthSamples>& samples) {
  return !samples.empty() && std::ranges::all_of(samples, &DepthSamples::sides_seen);
}

}  // namespace

Condition TimedWork(const std::vector<DepthSamples>& samples, const Thresholds& thresholds) {
  if (!AllSeen(samples)) return {std::string(kTimedWork), State::kUnknown, "can't be seen"};
  Condition condition{std::string(kTimedWork), State::kPass, ""};
  double most = 0;
  for (const DepthSamples& one : samples) {
    for (const bool is_b : {false, true}) {
      const double share = OutsideOf(one, is_b).Value();
      most = std::max(most, share);
      if (share <= thresholds.untimed_share || condition.state == State::kFail) continue;
      condition = {std::string(kTimedWork), State::kFail,
                   fmt::format("depth {}: {} works outside the timer, {:.0f} % of a window's time", one.depth,
                               is_b ? "B" : "A", share * 100)};
    }
  }
  if (condition.state == State::kPass) condition.detail = fmt::format("at most {:.1f} % outside the timer", most * 100);
  return condition;
}

Condition AboveFloor(const std::vector<DepthSamples>& samples, const std::vector<DepthFinding>& depths,
                     const Thresholds& thresholds) {
  Condition condition{std::string(kAboveFloor), State::kUnknown, "the chip's limit was not probed"};
  for (const DepthFinding& finding : depths) {
    const auto one = std::ranges::find(samples, finding.depth, &DepthSamples::depth);
    const measure::PairedResult& paired = finding.paired;
    if (one == samples.end() || !(one->a_bytes > 0) || !(paired.limit > 0)) continue;
    if (!(paired.a_ns > 0 && paired.b_ns > 0)) {
      condition.detail = "every round was spoiled";
      continue;
    }
    if (condition.state == State::kUnknown) condition = {std::string(kAboveFloor), State::kPass, ""};
    for (const auto& [side, bytes, ns] :
         {std::tuple("A", one->a_bytes, paired.a_ns), std::tuple("B", one->b_bytes, paired.b_ns)}) {
      const double floor_ns = bytes / paired.limit;  // GB/s are bytes per nanosecond
      if (ns >= floor_ns * (1 - thresholds.floor_band)) continue;
      condition.state = State::kFail;
      condition.detail = fmt::format("depth {}: {} took {:.0f} us, its bytes alone {:.0f} us: not read from memory",
                                     finding.depth, side, ns / 1e3, floor_ns / 1e3);
    }
  }
  return condition;
}

Condition TimedOutput(const std::vector<DepthSamples>& samples) {
  if (!AllSeen(samples)) return {std::string(kTimedOutput), State::kUnknown, "can't be seen"};
  std::size_t rounds = 0, reused = 0;
  double largest = 0;
  for (const DepthSamples& one : samples) {
    const double allowed = one.same_bits ? 0 : std::max(kRounding, kFurther * one.output_difference);
    std::size_t strays = 0;
    for (const measure::PairedRound& round : one.rounds) {
      strays += round.output_difference > allowed ? 1 : 0;
      reused += round.reused_output ? 1 : 0;
      largest = std::max(largest, round.output_difference);
    }
    rounds += one.rounds.size();
    const double most = one.same_bits ? 0 : std::max(1.0, kStrayShare * static_cast<double>(one.rounds.size()));
    if (static_cast<double>(strays) > most) {
      return {
          std::string(kTimedOutput), State::kFail,
          fmt::format("depth {}: in {} of {} timed rounds the sides' logits lie further apart than before them ({})",
                      one.depth, strays, one.rounds.size(),
                      one.same_bits ? "not at all" : fmt::format("{:.1e}", one.output_difference))};
    }
  }
  if (reused > 0) {
    return {std::string(kTimedOutput), State::kFail,
            fmt::format("the logits of another window in {} of {} rounds", reused, rounds)};
  }
  return {std::string(kTimedOutput), State::kPass,
          largest == 0 ? fmt::format("logits equal to the last bit in {} timed rounds", rounds)
                       : fmt::format("logits within {:.1e} in {} timed rounds", largest, rounds)};
}

void AddWindowConditions(Findings& findings, const std::vector<DepthSamples>& samples, const Thresholds& thresholds) {
  if (!AllSeen(samples)) return;
  std::erase_if(findings.conditions,
                [](const Condition& one) { return std::ranges::find(kOfWindows, one.name) != kOfWindows.end(); });
  findings.conditions.push_back(TimedWork(samples, thresholds));
  findings.conditions.push_back(AboveFloor(samples, findings.depths, thresholds));
  findings.conditions.push_back(TimedOutput(samples));
}

bool FollowsFromWindows(std::string_view name, const std::vector<DepthSamples>& samples) {
  if (!samples.empty() && std::ranges::find(kOfTimes, name) != kOfTimes.end()) return true;
  return AllSeen(samples) && std::ranges::find(kOfWindows, name) != kOfWindows.end();
}

}  // namespace boltbeam::judge
