#include "ledger/score.h"

#include <cmath>
#include <optional>

namespace boltbeam::ledger {
namespace {

/// What a record says about the quantity, at the depth that was foretold.
std::optional<double> ActualOf(const Row& row, const Prediction& prediction) {
  if (row.kind == Kind::kMeasurement) {
    const Result<Measurement> measured = MeasurementFrom(row.payload);
    if (measured && measured->quantity == prediction.quantity && measured->depth == prediction.depth) {
      return measured->value;
    }
  }
  if (row.kind == Kind::kVerdict && prediction.quantity == "ratio") {
    const Result<Verdict> verdict = VerdictFrom(row.payload);
    if (!verdict || verdict->refused) return std::nullopt;
    if (!prediction.depth) return verdict->ratio;
    for (const DepthRatio& at : verdict->depths) {
      if (at.depth == *prediction.depth) return at.ratio;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Scores> ScorePredictions(Index& index) {
  Scores scores;
  Filter predictions;
  predictions.kind = Kind::kPrediction;
  BOLTBEAM_ASSIGN(const std::vector<Row> rows, index.List(predictions));
  for (const Row& row : rows) {
    BOLTBEAM_ASSIGN(Prediction prediction, PredictionFrom(row.payload));
    Score& score = scores.by_method[{prediction.method, prediction.quantity}];
    Filter answers;
    answers.about = row.hash;
    BOLTBEAM_ASSIGN(const std::vector<Row> candidates, index.List(answers));
    bool late = false, answered = false;
    for (const Row& answer : candidates) {
      const std::optional<double> actual = ActualOf(answer, prediction);
      if (!actual || !(*actual > 0)) continue;
      if (!IsBefore(row, answer)) {
        late = true;
        continue;
      }
      // The first answer counts: a later one may have been taken with the first in view.
      scores.scored.push_back({row, prediction, answer.hash, *actual});
      answered = true;
      break;
    }
    if (answered) {
      ++score.answered;
      score.hits += scores.scored.back().IsHit() ? 1 : 0;
      score.promised += prediction.confidence;
      score.bias += std::log(scores.scored.back().actual / prediction.value);
      score.width += (prediction.high - prediction.low) / prediction.value;
    } else {
      (late ? scores.late : score.unanswered) += 1;
    }
  }
  for (auto& [method, score] : scores.by_method) {
    if (score.answered == 0) continue;
    const double count = static_cast<double>(score.answered);
    score.promised /= count;
    score.bias = std::exp(score.bias / count) - 1;
    score.width /= count;
  }
  return scores;
}

}  // namespace boltbeam::ledger
