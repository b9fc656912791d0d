// A record's figures computed again from its stored samples. What computes them lies above this module: it is entered
// here by the form of the samples that it understands.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ledger/ledger.h"

namespace boltbeam::ledger {

struct DerivedFields {
  nlohmann::json fields;             // of the payload, under the same names
  std::vector<std::string> derived;  // what of them follows from the samples, where not all does
  std::vector<std::string> taken;    // what does not: the blob only repeats what was seen beside them
};
using Rederive = std::function<Result<DerivedFields>(const Record& record, std::string_view samples)>;

struct Difference {
  std::string field;  // as a JSON pointer: "/depths/0/ratio"
  std::string stored, derived;
};

struct Rederivation {
  nlohmann::json derived;
  std::vector<std::string> from_samples, from_record;  // as in DerivedFields
  std::size_t compared = 0;                            // figures
  std::vector<Difference> differences;
  /// kLedgerDiffers when there are any.
  [[nodiscard]] Result<void> AsRecorded(const std::string& where) const;
};

class RederiveTable {
 public:
  /// format: as in Samples, such as "boltbeam.judge_samples.v1".
  void Register(const std::string& format, Rederive function) { functions_[format] = std::move(function); }
  /// kLedgerNotDerivable: no samples, or of a form that nothing here understands.
  [[nodiscard]] Result<Rederivation> Run(const Ledger& ledger, const Record& record) const;

 private:
  std::map<std::string, Rederive> functions_;
};

}  // namespace boltbeam::ledger
