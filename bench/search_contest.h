// One table's contest: a sample of its legal geometries foretold and timed, then every strategy's choice beside the
// best of the sample.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "search/predict.h"
#include "search/refine.h"
#include "search/workshop.h"
#include "search_record.h"
#include "search_sweeps.h"
#include "search_table.h"

namespace boltbeam::search {

struct ContestRules {
  std::size_t points = 200;  // of the sample
  std::size_t timed = 12;    // candidates of a strategy
  std::string cache;         // folder
};

class Contest {
 public:
  /// All but the rules must outlive it. chip: with the rates that predictions need.
  Contest(const Part& part, const chip::Chip& chip, runtime::KernelCache& kernels, TimingBench& bench, Record& record,
          ContestRules rules);

  /// Compiles and checks every geometry that a strategy may time, the neighbours of what wins aside, and reads how the
  /// sample's code reads the table. Times nothing: other programs may run.
  Result<void> Prepare();
  /// Foretells the sample at the memory's rate of now, into the ledger, and times it; then the strategies. Where the
  /// memory changed its rate meanwhile, or other programs ran, the sample is foretold and timed anew, a few times;
  /// then kMeasurementUnstable.
  Result<Row> Time();

 private:
  struct Foretold {
    double ns = 0;
    std::string record;  // its hash
  };

  /// What was seen in compiled code, from one run to the next.
  [[nodiscard]] std::string StreamsFile() const;
  void ReadStreams();
  Result<void> WriteStreams() const;

  Result<std::vector<Contender>> Make(const std::vector<kernel::GemvGeometry>& points);
  Result<void> ForetellSample();
  Result<void> TimeSample();
  Result<void> Rank();

  void Enter(const std::string& strategy, const Contender& contender);
  void EnterBestOfSample();
  Result<void> EnterSearch();
  Result<void> EnterSimple(const std::string& strategy, const std::vector<kernel::GemvGeometry>& points);
  Result<void> EnterBeam();
  Result<void> EnterOne(const std::string& strategy, const std::vector<kernel::GemvGeometry>& point);
  Result<void> EnterPredicted();
  void TimeLast();

  const Part& part_;
  chip::Chip chip_;  // with the rate of now
  const kernel::VectorFacts facts_;
  runtime::KernelCache& kernels_;
  TimingBench& bench_;
  Record& record_;
  const ContestRules rules_;
  const unsigned cpus_;
  const Proposal proposal_;
  const kernel::GemvGeometry start_;
  const std::vector<kernel::GemvGeometry> points_;  // the sample
  CodeReader reader_;
  Coefficients coefficients_;
  Foresight foresight_;                        // before anything is compiled
  std::map<std::string, Foretold> foretold_;   // of the sample, by name
  std::vector<Contender> all_;                 // of the sample
  Swept swept_;                                // of them
  std::vector<Contender> last_;                // timed in the end
  std::map<std::string, std::size_t> places_;  // in that, by strategy
  Row row_;
};

}  // namespace boltbeam::search
