#include "judge/window_conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "judge/output_check.h"
#include "measure/statistics.h"

namespace boltbeam::judge {
namespace {

constexpr std::array kOfWindows = {kTimedWork, kAboveFloor, kTimedOutput};
constexpr std::array kOfTimes = {kQuiet, kSpeed, kNoRegression};

// The first pairs before the windows are a sample of what rounding does; more of them come a little further.
constexpr double kFurther = 2, kRounding = 1e-3;
// Of rounds that may lie further still. Wrong work in fewer than these is worth less than tier B.
constexpr double kStrayShare = 0.02;
// Of the limit, in rounds that nothing spoiled: below that one odd reading would decide.
constexpr std::size_t kLeastReadings = 5;

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

// How many times what its bytes take at the limit a side's token took: the median over the rounds in which the limit
// was probed, because memory's speed changes between rounds by more than the band. Nothing: too few of them were left.
std::optional<double> OverFloor(const DepthSamples& one, bool is_b, double bytes) {
  std::vector<double> shares;
  for (const measure::PairedRound& round : one.rounds) {
    if (!(round.limit > 0) || round.AllCauses().any()) continue;
    double ns = 1;
    for (std::size_t i = 0; i < round.windows.size(); ++i) ns *= round.IsB(i) == is_b ? round.windows[i].ns : 1;
    shares.push_back(std::sqrt(ns) * round.limit / bytes);  // GB/s are bytes per nanosecond
  }
  return shares.size() < kLeastReadings ? std::nullopt : std::optional(measure::Median(shares));
}

// How far the outputs of one depth's timed rounds lie apart, against what they may.
struct Apart {
  double allowed = 0;      // in most rounds
  double most = 0;         // rounds that may lie further
  double furthest = 0;     // and none of them further than this
  std::size_t strays = 0;  // further than allowed
  double largest = 0;
};

Apart ApartIn(const DepthSamples& one) {
  Apart apart;
  const bool is_exact = one.same_plan && one.same_bits;
  if (!is_exact) {
    apart.allowed = std::max(kRounding, kFurther * one.output_difference);
    apart.most = std::max(1.0, kStrayShare * static_cast<double>(one.rounds.size()));
    apart.furthest = std::max(kNearLogits, apart.allowed);  // the gate's own bound, where rounding keeps within it
  }
  for (const measure::PairedRound& round : one.rounds) {
    apart.strays += round.output_difference > apart.allowed ? 1 : 0;
    apart.largest = std::max(apart.largest, round.output_difference);
  }
  return apart;
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

Condition AboveFloor(const std::vector<DepthSamples>& samples, const Thresholds& thresholds) {
  Condition condition{std::string(kAboveFloor), State::kUnknown, "the chip's limit was not probed"};
  for (const DepthSamples& one : samples) {
    const auto is_probed = [](const measure::PairedRound& round) { return round.limit > 0; };
    if (!(one.a_bytes > 0) || std::ranges::none_of(one.rounds, is_probed)) continue;
    for (const auto& [side, is_b, bytes] : {std::tuple("A", false, one.a_bytes), std::tuple("B", true, one.b_bytes)}) {
      const std::optional<double> share = OverFloor(one, is_b, bytes);
      if (!share) {
        if (condition.state == State::kUnknown)
          condition.detail =
              fmt::format("the limit was read in fewer than {} rounds that are not spoiled", kLeastReadings);
        continue;
      }
      if (condition.state == State::kUnknown) condition = {std::string(kAboveFloor), State::kPass, ""};
      if (*share >= 1 - thresholds.floor_band) continue;
      condition.state = State::kFail;
      condition.detail = fmt::format("depth {}: {} took {:.0f} % of what its bytes alone take: not read from memory",
                                     one.depth, side, *share * 100);
    }
  }
  return condition;
}

Condition TimedOutput(const std::vector<DepthSamples>& samples) {
  if (!AllSeen(samples)) return {std::string(kTimedOutput), State::kUnknown, "can't be seen"};
  std::size_t rounds = 0, reused = 0;
  double largest = 0;
  for (const DepthSamples& one : samples) {
    const Apart apart = ApartIn(one);
    if (static_cast<double>(apart.strays) > apart.most || apart.largest > apart.furthest) {
      return {std::string(kTimedOutput), State::kFail,
              fmt::format("depth {}: in {} of {} timed rounds the sides' logits lie further apart than before them "
                          "({}), by {:.1e}",
                          one.depth, apart.strays, one.rounds.size(),
                          one.same_bits ? "not at all" : fmt::format("{:.1e}", one.output_difference), apart.largest)};
    }
    rounds += one.rounds.size();
    largest = std::max(largest, apart.largest);
    reused += static_cast<std::size_t>(std::ranges::count_if(one.rounds, &measure::PairedRound::reused_output));
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
  findings.conditions.push_back(AboveFloor(samples, thresholds));
  findings.conditions.push_back(TimedOutput(samples));
}

bool FollowsFromWindows(std::string_view name, const std::vector<DepthSamples>& samples) {
  if (!samples.empty() && std::ranges::find(kOfTimes, name) != kOfTimes.end()) return true;
  return AllSeen(samples) && std::ranges::find(kOfWindows, name) != kOfWindows.end();
}

}  // namespace boltbeam::judge
