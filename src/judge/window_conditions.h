// The conditions that follow from the windows alone: found when they are taken, and again from a record's samples.
#pragma once

#include <vector>

#include "judge/gate.h"

namespace boltbeam::judge {

struct DepthSamples {
  std::uint64_t depth = 0;
  measure::PairedRules rules;
  std::vector<measure::PairedRound> rounds;
  bool sides_seen = false;          // whether work outside the timer and outputs were looked at: not of programs
  double a_bytes = 0, b_bytes = 0;  // that a token must read; 0: not known
  bool same_plan = true;            // both sides run one plan of one model
  bool same_bits = false;           // before the windows both sides gave the same bits
  double output_difference = 0;     // before the windows: the largest, by the largest logit
};

/// timed_work: at most a share of a window's time is spent in a side outside the timer.
Condition TimedWork(const std::vector<DepthSamples>& samples, const Thresholds& thresholds);
/// above_floor: no token is faster than its bytes at the limit, each round with the limit that was probed around it;
/// unknown of fewer than five such rounds.
Condition AboveFloor(const std::vector<DepthSamples>& samples, const Thresholds& thresholds);
/// timed_output: in the windows the sides give what they gave before, and never the logits of another window. Equal to
/// the last bit where the arithmetic is one; another plan's may round otherwise now and then, as far as the gate
/// allows.
Condition TimedOutput(const std::vector<DepthSamples>& samples);

/// Adds the three, in the place of what is there under their names; nothing of programs.
void AddWindowConditions(Findings& findings, const std::vector<DepthSamples>& samples, const Thresholds& thresholds);

/// Whether a condition is derived from samples such as these.
bool FollowsFromWindows(std::string_view name, const std::vector<DepthSamples>& samples);

}  // namespace boltbeam::judge
