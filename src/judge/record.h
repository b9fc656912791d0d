// A judgement as the ledger keeps it.
#pragma once

#include <map>
#include <string>

#include "judge/judge.h"
#include "ledger/records.h"
#include "ledger/rederive.h"

namespace boltbeam::judge {

/// What a record says beside what was found.
struct RecordContext {
  ledger::Subject subject;
  std::string off_switch;
  std::string prediction;  // hash of the record that foretold it
  ledger::Samples samples;
  std::string command;                       // as it was typed
  std::map<std::string, std::string> build;  // what made the kernels: names and values of ledger::Facts
};

ledger::Verdict ToVerdict(const Judgement& judgement, const Run& run, const Thresholds& thresholds,
                          const RecordContext& context);

/// The fields of a verdict's payload that follow from its samples.
nlohmann::json DerivedFields(const Judgement& judgement, const std::vector<DepthFinding>& depths);
/// From a blob; judge's entry in the ledger's table of what re-derives.
Result<ledger::DerivedFields> RederiveFields(std::string_view samples);

nlohmann::json EnvironmentJson(const measure::Environment& environment);

}  // namespace boltbeam::judge
