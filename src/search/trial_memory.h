// What was timed before: windows and verdicts of candidates, kept in the ledger and found again there.
//
// A candidate's time hangs on its machine code, the chip, the threads and how much memory was rotated through. Where
// all of these are as they were, nothing is timed a second time; where one differs, what hung on it is open again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ledger/index.h"
#include "ledger/ledger.h"
#include "search/candidate.h"
#include "search/halving.h"
#include "search/predict.h"

namespace boltbeam::search {

/// The same for all candidates of a search.
struct TrialConditions {
  std::string chip;  // id
  std::uint32_t threads = 0;
  std::uint64_t cold_bytes = 0;  // rotated through
};

/// A candidate as it was compiled.
struct TrialKey {
  std::string candidate;  // CandidateName
  std::string code;       // hash of its machine code
  std::optional<codegen::StreamFacts> stream = {};
};

/// What a search found about one candidate of a part.
struct Settled {
  measure::Interval ratio{1, 1, 1};  // its time over that of `against`
  std::string against;               // the candidate that it was compared with: the best, and of the best the start
  bool is_best = false, is_refuted = false;
  std::string reason;
  double ns = 0;  // median
  std::uint64_t windows = 0;
  std::string record;                 // hash
  std::vector<PairedWindows> stages;  // that the ratio follows from; empty: not kept
  std::uint64_t legal = 0;  // of the part's last word: how many points it was chosen from; 0: not the last word
};

class TrialMemory {
 public:
  /// Remembers nothing, and keeps nothing.
  TrialMemory() = default;
  /// memory must outlive this.
  static Result<TrialMemory> Open(ledger::Ledger& memory, TrialConditions conditions);

  /// What is known about a candidate. A refutation whose grounds have changed is reopened: nothing is known then.
  Result<std::optional<Settled>> Find(const Part& part, const TrialKey& key);

  /// The candidate that a finished search of the part chose, from as many legal points, in place of `start`; empty:
  /// none did. Whether it still stands, Find says.
  [[nodiscard]] std::string ChosenFor(const Part& part, const std::string& start, std::uint64_t legal) const;

  /// Rounds of exactly these candidates that were timed before, in order; empty: none.
  [[nodiscard]] std::vector<Sweep> Rounds(const Part& part, const std::vector<TrialKey>& keys) const;

  /// To be written before anything is timed.
  Result<void> Predict(const Part& part, const Prediction& prediction);
  /// A round of these candidates. read_gb_s: what a probe read in the same round; 0: not probed.
  Result<void> AddRound(const Part& part, const std::vector<TrialKey>& keys, std::size_t round,
                        const std::vector<Sweep>& sweeps, double read_gb_s);
  Result<void> Settle(const Part& part, const TrialKey& key, const Settled& settled);
  /// A kernel that is wrong: refuted until its machine code changes.
  Result<void> SettleWrong(const Part& part, const TrialKey& key, const std::string& reason);

  [[nodiscard]] const TrialConditions& conditions() const { return conditions_; }

 private:
  using Key = std::pair<std::string, std::string>;  // shape, candidate
  struct Known {
    ledger::Verdict verdict;
    std::string record;
  };
  struct Windows {
    std::size_t round = 0;
    std::vector<double> ns;
  };

  [[nodiscard]] std::string SessionOf(const Part& part, const std::vector<TrialKey>& keys) const;
  [[nodiscard]] ledger::Subject SubjectFor(const Part& part, const std::string& candidate) const;
  [[nodiscard]] std::vector<ledger::ReopenWhen> Grounds(const TrialKey& key) const;
  Result<void> Append(const Part& part, const TrialKey& key, const ledger::Verdict& verdict);
  Result<void> ReadAll();

  ledger::Ledger* ledger_ = nullptr;
  std::shared_ptr<ledger::Index> index_;
  TrialConditions conditions_;
  std::map<Key, Known> verdicts_;                                                // the newest of each
  std::set<std::string> standing_;                                               // hashes of refutations
  std::map<std::string, std::map<std::string, std::vector<Windows>>> sessions_;  // by session and candidate
  std::map<Key, std::string> predictions_;                                       // hashes of records
};

}  // namespace boltbeam::search
