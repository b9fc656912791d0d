// What was refuted, whether it still is, and whether what would reopen it has come true.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ledger/index.h"

namespace boltbeam::ledger {

/// What is true of this machine and this build now: "llvm_version", "boltbeam_version", "chip.l2_bytes",
/// "kernel_family.gemv". A condition about a fact that is not here is unknown.
using Facts = std::map<std::string, nlohmann::json>;

enum class Truth : std::uint8_t { kTrue, kFalse, kUnknown };

Truth Holds(const ReopenWhen& when, const Facts& now);
/// "llvm_version is another than 19.1.7 (now 20.1.0)"
std::string Describe(const ReopenWhen& when, const Facts& now);

struct Refutation {
  Row row;
  Verdict verdict;
  std::vector<Truth> holds;  // one for each of verdict.reopen_when
  /// A condition has come true: worth `ledger reopen`. It stays refuted until somebody does.
  [[nodiscard]] bool IsDue() const;
};

/// The newest standing refutation; nothing when the candidate may be searched and judged.
Result<std::optional<Refutation>> FindRefutation(Index& index, const std::string& candidate, const std::string& chip,
                                                 const std::string& shape, const Facts& now = {});
Result<bool> IsRefuted(Index& index, const std::string& candidate, const std::string& chip, const std::string& shape);
Result<std::vector<Refutation>> StandingRefutations(Index& index, const Facts& now);

/// Lets a refuted idea be judged again: a record for each standing refutation of that candidate on that chip, model and
/// shape. It promotes nothing: what it is worth, the next verdict says. kUsage: the record is no refutation, or is open
/// already.
Result<std::vector<Receipt>> Reopen(Ledger& ledger, Index& index, const std::string& id, const std::string& reason);

/// How often the same was said about the same candidate, model and shape on that chip, in every chain.
struct Sightings {
  std::uint64_t repetitions = 0;
  std::uint64_t sessions = 0;
  std::uint64_t machines = 0;
  [[nodiscard]] bool SeenOnce() const { return sessions <= 1; }
};
Result<Sightings> CountSightings(Index& index, const Verdict& verdict);
/// The same for many verdicts: each row is read once.
class SightingsTable {
 public:
  explicit SightingsTable(const std::vector<Row>& verdicts);
  [[nodiscard]] Sightings Of(const Verdict& verdict) const;

 private:
  std::map<std::vector<std::string>, Sightings> by_subject_;
};
/// "seen once", or "3 sessions, 2 machines, 1200 repetitions"
std::string Describe(const Sightings& sightings);

/// The part of a writer's name that is the machine's.
std::string MachineOf(const std::string& writer);

}  // namespace boltbeam::ledger
