// A model's rate before anyone has run it, from a machine's line and the bytes that the model reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/fit.h"
#include "lab/ladder.h"
#include "lab/model_facts.h"
#include "ledger/records.h"

namespace boltbeam::lab {

struct Forecast {
  std::uint64_t depth = 0;
  double bytes = 0;                         // weights and KV cache
  double kv_bytes = 0;                      // of them the cache's
  measure::Interval seconds;                // of a token in another session; infinite ends without an interval
  measure::Interval in_session;             // in the ladder's own sessions
  double depth_half_s = 0;                  // of both half-widths, what the depth adds by itself
  std::vector<std::string> extrapolations;  // in what it goes beyond the ladder; empty: within it
  std::vector<std::string> notes;           // what it rests on

  [[nodiscard]] double tok_s() const { return 1 / seconds.estimate; }
  [[nodiscard]] double tok_s_low() const { return 1 / seconds.high; }
  [[nodiscard]] double tok_s_high() const { return seconds.low > 0 ? 1 / seconds.low : 1 / seconds.estimate; }
  [[nodiscard]] bool HasInterval() const { return seconds.low > 0 && seconds.high < 1e9; }
};

struct ForecastOptions {
  std::vector<std::uint64_t> depths{0, 512, 4096};
  double confidence = 0.95;
  std::optional<double> at_gb_s;   // the memory's rate then; without it that of the ladder
  model::CacheFormats cache = {};  // that the model is to be run with
};

/// The rows of other models than this one: what is foretold from them has not seen it. A row is of this model when its
/// file has the same header or the same name.
std::vector<Row> RowsOfOthers(std::span<const Row> rows, const ModelFacts& model);

/// What the bytes of the cache cost, against those of weights.
struct CacheCost {
  double factor = 1;
  Variance spread;        // of one further model's factor
  std::size_t pairs = 0;  // that it was measured from; 0: taken to cost as much as weights
  std::uint64_t deepest = 0;
};
/// From rows of the line's models at other depths: three of them, or nothing is learnt.
CacheCost CostOfCache(const MachineFit& fit);

/// One forecast a depth, its interval widened by what sessions differ by and, beyond the ladder's depth, by what is not
/// known of the cache's bytes; depths whose KV cache is not known are left out. kLabLine for a mixture of experts (its
/// kernels are more than its bytes); kUsage when at_gb_s is given for a line that was not scaled.
Result<std::vector<Forecast>> Predict(const MachineFit& fit, const ModelFacts& model, const ForecastOptions& options);

/// As the ledger keeps it: written before anyone runs the model. is_unseen: the line is of RowsOfOthers, which the
/// ledger scores as a method of its own.
ledger::Prediction ToRecord(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast, double confidence,
                            bool is_unseen = false);

/// A forecast met by a measurement: as it was, and at the memory speed that the forecast is for.
struct Miss {
  double measured_s = 0;  // at one memory speed, each window corrected by the reading beside it
  double raw_s = 0;       // as it was
  double miss_s = 0;      // measured at one memory speed less foretold
  double miss_share = 0;  // of what was foretold
  double raw_miss_s = 0, raw_miss_share = 0;
  std::optional<double> beside_gb_s, at_gb_s;  // what the memory streamed beside it, and what it was brought to
  bool is_inside = false;                      // the interval of another session
  bool is_inside_session = false;              // that of the ladder's own
  bool is_large = false;                       // above a millisecond
  std::vector<std::string> notes;
};
/// at_gb_s: the memory speed that the forecast is for, where it is another than the ladder's.
Miss Compare(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast, const Visit& visit,
             std::optional<double> at_gb_s = {});

ledger::Measurement ToRecord(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast, const Miss& miss,
                             const Visit& visit, const std::string& prediction);

}  // namespace boltbeam::lab
