// How good the predictions were: those that were written down first and then met by a measurement or a verdict.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "ledger/index.h"

namespace boltbeam::ledger {

struct ScoredPrediction {
  Row row;
  Prediction prediction;
  std::string answered_by;  // hash of the record that measured it
  double actual = 0;
  [[nodiscard]] bool IsHit() const { return prediction.low <= actual && actual <= prediction.high; }
};

/// One method's predictions of one quantity.
struct Score {
  std::uint64_t answered = 0;
  std::uint64_t hits = 0;  // inside the interval
  double promised = 0;     // mean of the chances that the intervals were meant to have
  double bias = 0;         // geometric mean of actual over predicted, minus 1: above 0, it was slower than foretold
  double width = 0;        // mean of (high - low) / value
  std::uint64_t unanswered = 0;  // nothing was measured yet
};

struct Scores {
  std::map<std::pair<std::string, std::string>, Score> by_method;  // method, quantity
  std::vector<ScoredPrediction> scored;
  std::uint64_t late = 0;  // answered by a record that is older than they are: they foretold nothing
};

Result<Scores> ScorePredictions(Index& index);

}  // namespace boltbeam::ledger
