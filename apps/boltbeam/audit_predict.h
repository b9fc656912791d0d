// What an audit expects, written into the ledger before it measures, and what it then finds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "command.h"
#include "ledger/ledger.h"
#include "model/model.h"

namespace boltbeam::app {

class AuditPredictions {
 public:
  /// One prediction for each depth, before any token is timed. gb_s: what the memory reads.
  static Result<AuditPredictions> Write(const Globals& globals, const model::Model& model, const std::string& path,
                                        const chip::Chip& machine, const engine::Engine& engine,
                                        const std::vector<std::uint64_t>& depths, double gb_s);
  /// The measurements that answer them, and the lines that say how they did.
  Result<std::vector<std::string>> Answer(const audit::Audit& audit);

 private:
  struct One {
    ledger::Prediction prediction;
    std::string hash;
    double bytes = 0;
  };
  explicit AuditPredictions(ledger::Ledger memory) : memory_(std::move(memory)) {}

  ledger::Ledger memory_;
  std::vector<One> predictions_;  // by depth
};

}  // namespace boltbeam::app
