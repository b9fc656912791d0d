// search_bench's side of the ledger: what was foretold of a geometry before it was timed, and what timing then said.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/paths.h"
#include "chip/facts.h"
#include "ledger/ledger.h"
#include "search/fit.h"
#include "search/workshop.h"

namespace boltbeam::search {

class Record {
 public:
  /// What the ledger holds now: nothing of what is added later changes a fit.
  static Result<std::unique_ptr<Record>> Open(const base::Paths& paths, const chip::Chip& chip, std::uint32_t threads);

  /// Fitted on timings of neither this part's format nor its shape; without enough of them, a guess.
  [[nodiscard]] Coefficients CoefficientsFor(const Part& part) const;
  /// The record's hash.
  Result<std::string> Predict(const Part& part, const Prediction& prediction);
  /// ns: the median of so many sweeps. read_gb_s: by a probe beside them. foretold: the hash, or empty.
  Result<void> Measure(const Part& part, const Contender& contender, double ns, std::uint64_t sweeps, double read_gb_s,
                       const std::string& foretold);

 private:
  Record(ledger::Ledger ledger, chip::Chip chip, std::uint32_t threads)
      : ledger_(std::move(ledger)), chip_(std::move(chip)), threads_(threads) {}

  ledger::Ledger ledger_;
  chip::Chip chip_;
  std::uint32_t threads_;
  std::vector<Sample> past_;
};

}  // namespace boltbeam::search
