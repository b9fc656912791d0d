// Which of two sides is faster: the one protocol by which anything is compared (docs/judge.md).
//
// A round is four windows, A B B A or B A A B by lot. Its contrast is log(time of B / time of A); the lot makes the
// contrasts symmetric about the true difference whatever the noise does, so that a signed-rank interval holds. The
// interval is looked at a few times within the budget; each look spends a part of the error rate that is fixed in
// advance. Functions of samples: where they come from (engines, programs, a simulation, a record) is not known here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "measure/environment.h"
#include "measure/statistics.h"

namespace boltbeam::measure {

struct TimedWindow {
  double ns = 0;  // of a token
  Causes causes;  // that spoiled it: kept, and its round left out of the estimate
  // Of a token too: what its side did outside the timer since its last window, where that can be seen.
  double outside_ns = 0;
};

struct PairedRound {
  bool b_first = false;                  // B A A B
  std::array<TimedWindow, 4> windows{};  // in the order in which they ran
  double limit = 0;                      // the chip's, the larger of readings before and after; 0: not probed
  double at_s = 0;                       // of the budget, spent when the round was over
  // Where outputs can be seen: how far the sides' lie apart, by the largest logit (0: the same bits), and whether a
  // window ended with the logits of an earlier one of its side.
  double output_difference = 0;
  bool reused_output = false;

  [[nodiscard]] bool IsB(std::size_t window) const { return b_first == (window == 0 || window == 3); }
  [[nodiscard]] Causes AllCauses() const;
  /// log(time of B / time of A), each the geometric mean of its two windows.
  [[nodiscard]] double LogRatio() const;
};

/// Fixed before the first sample is seen.
struct PairedRules {
  double margin = 0.01;       // no smaller difference is claimed; the session's A/A control may raise it
  double equivalence = 0.01;  // an interval within this is no difference, and ends the session
  double error_rate = 0.05;   // of sessions that claim a difference which is not beyond the margin, both ways together
  double power = 0.9;         // with which the smallest difference would have been shown
  double budget_s = 30;
  std::vector<double> looks{0.1, 0.25, 0.5, 1};  // shares of the budget
  std::size_t least_rounds = 8;                  // of the last look, not spoiled
  std::size_t patience = 3;                      // times least_rounds: then spoiled ones count too
  double spoiled_share = 0.2;                    // of the windows; above it the session is unstable
  std::uint64_t seed = 1;                        // of the lots and the bootstrap
  int resamples = 2000;                          // 0: no bootstrap interval
};

enum class Outcome : std::uint8_t { kFaster, kSlower, kNoDifference };  // of B
std::string_view OutcomeName(Outcome outcome);

/// Ratios are times of B over times of A: below 1, B is faster.
struct PairedResult {
  Outcome outcome = Outcome::kNoDifference;
  Interval ratio;       // Hodges and Lehmann's, at the level that the last look spent: what decided
  Interval median;      // of the rounds' ratios, with a 95 % bootstrap interval over the rounds
  Interval control;     // A against A and B against B from the same windows, 95 %
  double margin = 0;    // in force: that of the rules, or what the control reached
  double smallest = 0;  // relative difference that would have been shown with the stated power
  bool equivalent = false;
  bool stable = true;        // not too many windows spoiled, and the control shows nothing
  double spoiled_share = 0;  // of the windows
  std::size_t rounds = 0, used = 0, looks = 0;
  double spent_s = 0, tail = 0;                // the tail that the last look spent, each way
  double a_ns = 0, b_ns = 0;                   // medians of the used windows
  double limit = 0, limit_spread = 0;          // median, and 1.4826 MAD over it
  std::map<std::string, std::size_t> spoiled;  // windows by cause
};

/// Where rounds come from.
class RoundSource {
 public:
  virtual ~RoundSource() = default;
  virtual Result<PairedRound> Next(bool b_first) = 0;
};

struct PairedHooks {
  std::function<void(double done_s, double budget_s)> progress;  // between rounds
  std::function<bool()> cancelled;
};

struct PairedSession {
  PairedResult result;
  std::vector<PairedRound> rounds;
};

/// Takes rounds until a look decides or the budget is spent. kMeasurementImpossible: a window that took no time.
Result<PairedSession> RunPaired(RoundSource& source, const PairedRules& rules, const PairedHooks& hooks = {});

/// The same from stored rounds, for whoever re-derives a verdict. kMeasurementUnstable: they end before any look
/// decided.
Result<PairedResult> ReplayPaired(const std::vector<PairedRound>& rounds, const PairedRules& rules);

/// The part of `error` (one way) that O'Brien and Fleming's rule has spent at a share of the budget (Lan and DeMets).
double SpentError(double error, double share);

}  // namespace boltbeam::measure
