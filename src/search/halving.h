// Successive halving: candidates are timed in turns, and after each round the slower half is out. A function of what a
// stopwatch says: a simulation, a record and a machine all fit behind it.
//
// A sweep is one window of every candidate still in, in an order by lot. Within a sweep the machine is the same for all
// of them, so a candidate is judged by its time over the mean of its sweep, and by the median of that over the sweeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"
#include "measure/statistics.h"
#include "search/trial_samples.h"

namespace boltbeam::search {

class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  /// Nanoseconds of one window of a candidate.
  virtual Result<double> Window(std::size_t candidate) = 0;
  /// Called before the finalists are timed: other data from now on.
  virtual void Refresh() = 0;
};

struct HalvingRules {
  std::vector<std::size_t> sweeps{5, 8, 12};  // of each round; the last number again for further ones
  std::size_t finalists = 3;                  // timed again on fresh data; the control is always one
  std::size_t final_sweeps = 24;
  double hopeless = 1.35;  // a candidate whose every window of a round's first two is slower than the best's is out
  std::uint64_t seed = 1;
};

/// Windows of the candidates that were in; an empty entry was out.
struct Sweep {
  std::size_t round = 0;   // from 0; kFinalRound: on fresh data
  std::vector<double> ns;  // [candidate]; NaN: not timed
};
inline constexpr std::size_t kFinalRound = 1000;

struct HalvingResult {
  std::vector<Sweep> sweeps;
  std::vector<std::size_t> order;        // finalists first, best first; then by the round in which they were out
  std::vector<std::size_t> rounds;       // [candidate]: in which so many it was timed
  std::vector<measure::Interval> ratio;  // [candidate]: its time over the best's, of the sweeps that both were in
  std::vector<PairedWindows> pairs;      // [candidate]: those sweeps' windows
};

struct HalvingHooks {
  /// After each round: what has been timed in it. A search that is killed goes on from here.
  std::function<Result<void>(std::size_t round, const std::vector<Sweep>& sweeps)> round_done;
  std::function<void(std::size_t candidate, std::size_t best)> progress;  // before each window
  std::function<bool()> cancelled;
};

/// Candidate 0 is the control: it stays in to the end, so that the gain is measured in every sweep. past: complete
/// rounds of the same candidates, which are not timed again. kInterrupted when cancelled.
Result<HalvingResult> RunHalving(std::size_t candidates, const HalvingRules& rules, Stopwatch& stopwatch,
                                 std::vector<Sweep> past = {}, const HalvingHooks& hooks = {});

}  // namespace boltbeam::search
