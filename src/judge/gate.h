// From findings to one of the eight verdicts: the order of the gate, without a machine in it (docs/judge.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "judge/thresholds.h"
#include "ledger/records.h"
#include "measure/paired.h"

namespace boltbeam::judge {

using ledger::Condition;
using ledger::Ruling;
using ledger::State;

// The names of conditions, in the order of the gate.
inline constexpr std::string_view kRoute = "route";                  // the intended route ran, the other was closed
inline constexpr std::string_view kOutput = "output";                // equal logits or tokens, or the reference's gate
inline constexpr std::string_view kFreshOutput = "fresh_output";     // every token computed anew
inline constexpr std::string_view kDeterministic = "deterministic";  // the same again, to the last bit
inline constexpr std::string_view kMemory = "memory";
inline constexpr std::string_view kOffSwitch = "off_switch";
inline constexpr std::string_view kTimedWork = "timed_work";      // no work outside the timer
inline constexpr std::string_view kTimedOutput = "timed_output";  // in the windows the outputs of before them
inline constexpr std::string_view kAboveFloor = "above_floor";    // not faster than memory can be
inline constexpr std::string_view kQuiet = "quiet";               // not too many windows spoiled, A is like A
inline constexpr std::string_view kSpeed = "speed";
inline constexpr std::string_view kNoRegression = "no_regression";  // at any depth
inline constexpr std::string_view kRepeated = "repeated";           // in fresh processes

struct DepthFinding {
  std::uint64_t depth = 0;
  measure::PairedResult paired;
};

struct Findings {
  bool sides_seen = true;       // false: a program whose route and off-switch can't be seen
  bool route_available = true;  // false: this model and chip can't take the route at all
  std::vector<Condition> conditions;
  std::vector<DepthFinding> depths;
};

struct Judgement {
  Ruling ruling = Ruling::kInconclusive;
  measure::Outcome outcome = measure::Outcome::kNoDifference;
  measure::Interval ratio;  // time of B over time of A, mean over depths; NaN when nothing was measured
  double smallest = 0;      // the largest of the depths' smallest differences
  std::string tier;         // "A", "B" or empty
  std::string reason;
  std::vector<Condition> conditions;  // all of them, in the order of the gate
  bool refused = false;               // the measurement is not to be believed: exit status 3
};

/// Adds the conditions that follow from the times, and decides.
Judgement Decide(const Findings& findings, const Thresholds& thresholds);

/// Unknown when it is not among them.
State StateOf(const std::vector<Condition>& conditions, std::string_view name);

}  // namespace boltbeam::judge
