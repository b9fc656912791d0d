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
  measure::Interval seconds;                // of a token; infinite ends without an interval
  std::vector<std::string> extrapolations;  // in what it goes beyond the ladder; empty: within it

  [[nodiscard]] double tok_s() const { return 1 / seconds.estimate; }
  [[nodiscard]] double tok_s_low() const { return 1 / seconds.high; }
  [[nodiscard]] double tok_s_high() const { return seconds.low > 0 ? 1 / seconds.low : 1 / seconds.estimate; }
  [[nodiscard]] bool HasInterval() const { return seconds.low > 0 && seconds.high < 1e9; }
};

struct ForecastOptions {
  std::vector<std::uint64_t> depths{0, 512, 4096};
  double confidence = 0.95;
  std::optional<double> at_gb_s;  // the memory's rate then; without it that of the ladder
};

/// One forecast a depth; depths whose KV cache is not known are left out. kLabLine for a mixture of experts (its
/// kernels are more than its bytes); kUsage when at_gb_s is given for a line that was not scaled.
Result<std::vector<Forecast>> Predict(const MachineFit& fit, const ModelFacts& model, const ForecastOptions& options);

/// As the ledger keeps it: written before anyone runs the model.
ledger::Prediction ToRecord(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast,
                            double confidence);

/// A forecast met by a measurement.
struct Miss {
  double measured_s = 0;  // at the bandwidth of the ladder, as the forecast is
  double raw_s = 0;       // as it was
  double miss_s = 0;      // measured less foretold
  double miss_share = 0;  // of what was foretold
  bool is_inside = false;
  bool is_large = false;  // above a millisecond
  std::vector<std::string> notes;
};
Miss Compare(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast, const Visit& visit);

ledger::Measurement ToRecord(const MachineFit& fit, const ModelFacts& model, const Forecast& forecast, const Miss& miss,
                             const Visit& visit, const std::string& prediction);

}  // namespace boltbeam::lab
