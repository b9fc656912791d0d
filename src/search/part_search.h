// BoltBeam on one part: which of its candidates is the fastest, with few of them timed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "search/halving.h"
#include "search/predict.h"
#include "search/strategies.h"
#include "search/trial_memory.h"
#include "search/workshop.h"

namespace boltbeam::search {

struct PartRules {
  std::size_t most_timed = 12;  // candidates, the start among them
  std::size_t neighbours = 4;   // of these, kept for points beside the best of the others
  double claim = 0.01;          // who is slower by no more than this is not refuted
  HalvingRules halving;
  unsigned compilers = 1;    // threads
  std::size_t refined = 24;  // of those foretold as fastest: compiled and foretold again before any is chosen
};

/// What became of one candidate.
struct Trial {
  kernel::GemvGeometry geometry;
  std::string name;
  enum class Fate : std::uint8_t { kBest, kEven, kSlower, kDuplicate, kWrong, kFailed } fate = Fate::kEven;
  std::string why;
  measure::Interval ratio{1, 1, 1};  // its time over that of the best of its stage
  double ns = 0, predicted_ns = 0;   // median; 0: not timed, not foretold
  std::size_t windows = 0;
  bool is_remembered = false;  // what is said of it comes from the ledger: nothing was timed now
};

struct PartInput {
  const Part& part;
  const std::vector<kernel::GemvGeometry>& legal;
  const Foresight& foresight;
  kernel::GemvGeometry start;  // what runs it now: the control
  const GateRows& rows;
  const chip::Chip& chip;  // and the coefficients that the foresight comes from
  Coefficients coefficients;
};

struct PartSearch {
  Part part;
  std::uint64_t legal = 0, predicted = 0;
  kernel::GemvGeometry start, best;
  measure::Interval gain{1, 1, 1};  // time of the best over that of the start
  double start_ns = 0, best_ns = 0;
  std::size_t timed = 0, remembered = 0;  // candidates
  std::uint64_t windows = 0;
  std::vector<Trial> trials;
  double seconds = 0, compile_seconds = 0;  // of it, compiled and checked

  /// Whether the best is another than the start and its interval says that it is faster.
  [[nodiscard]] bool IsGain() const { return !(best == start) && gain.high < 1; }
};

struct PartHooks {
  std::function<void(const std::string& trying, const std::string& best)> progress;
  std::function<bool()> cancelled;
};

/// Compiles, checks, times, remembers. What the memory knows is not timed again. kInterrupted: complete rounds are
/// kept.
Result<PartSearch> SearchPart(const PartInput& input, const kernel::VectorFacts& facts, TimingBench& bench,
                              runtime::KernelCache& kernels, TrialMemory& memory, const PartRules& rules,
                              const PartHooks& hooks = {});

/// The halving of ready contenders, the first of which is the control; shared with whoever compares strategies.
Result<HalvingResult> TimeContenders(const Part& part, const std::vector<Contender>& contenders, TimingBench& bench,
                                     TrialMemory& memory, const HalvingRules& rules, const PartHooks& hooks,
                                     bool& is_remembered);

}  // namespace boltbeam::search
