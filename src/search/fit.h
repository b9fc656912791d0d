// The predictor's coefficients from a chip's own measurements, and how far they carry.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "ledger/index.h"
#include "search/predict.h"

namespace boltbeam::search {

/// A timed geometry, as the ledger has it.
struct Sample {
  Part part;
  kernel::GemvGeometry geometry;
  std::uint32_t threads = 0;
  double ns = 0;
  double read_gb_s = 0;                             // by a probe beside it, with as many threads; 0: not known
  std::optional<codegen::StreamFacts> stream = {};  // how its code reads the table, where that was seen
};

/// "Q4_K.4096x14336" -> format, rows, columns. kLedgerRecord when it names no table.
Result<Part> PartOfTable(std::string_view table);
/// "gemv:lanes=16,..." -> the geometry. kLedgerRecord when it is none.
Result<kernel::GemvGeometry> GeometryOfCandidate(std::string_view candidate);

/// Every measurement of a kernel on this chip; of a geometry that was timed more than once beside one reading of the
/// memory's rate, the median. Records of other quantities or names are passed over.
Result<std::vector<Sample>> SamplesOf(ledger::Index& index, const std::string& chip);

struct Fit {
  Coefficients coefficients;
  std::size_t samples = 0, tables = 0;
  double error = 0;           // median of |predicted / measured - 1|, each table at each rate scaled to its own median
  double held_out_error = 0;  // the same for tables that had no part in the fit
  double held_out_rank = 0;   // median over those tables of Spearman's rank correlation
  double worst_rank = 0;
};

/// The memory's term of a timing is at the rate that was read beside it, so that slow and fast moments of one memory
/// teach the same coefficients. kMeasurementUnstable when there are too few samples or tables to fit and hold one out:
/// 40 of two tables.
Result<Fit> FitCoefficients(const std::vector<Sample>& samples, const chip::Chip& chip, std::uint32_t threads);

/// Fitted on what the ledger has of the chip, but not of these tables: what a search of them adds while it runs, and
/// takes up again after it was killed, must not change what it is led by. nullopt where that is too little.
Result<std::optional<Fit>> FitFromLedger(ledger::Index& index, const chip::Chip& chip, std::uint32_t threads,
                                         const std::vector<std::string>& without = {});

/// "fitted on 600 timings of 12 tables; held out: error 4 %, rank correlation 0.91, worst 0.83"
std::string Describe(const Fit& fit);

/// Spearman's rank correlation; equal values share a rank. 0 for fewer than three pairs.
double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b);

/// Candidates with a standing refutation on a chip.
class RefutedSet {
 public:
  void Add(const std::string& candidate, const std::string& shape) { known_.emplace(candidate, shape); }
  /// A refutation without a shape is one of any.
  [[nodiscard]] bool Has(const ledger::Subject& subject) const {
    return known_.contains({subject.candidate, subject.shape}) || known_.contains({subject.candidate, ""});
  }

 private:
  std::set<std::pair<std::string, std::string>> known_;
};
Result<RefutedSet> RefutedOn(ledger::Index& index, const std::string& chip);

}  // namespace boltbeam::search
