#include "judge/record.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "judge/samples.h"

namespace boltbeam::judge {
namespace {

using nlohmann::json;

std::optional<double> Finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

bool IsWhole(const measure::Interval& interval) {
  return std::isfinite(interval.low) && std::isfinite(interval.estimate) && std::isfinite(interval.high) &&
         interval.low > 0;
}

std::vector<ledger::DepthRatio> DepthRatios(const std::vector<DepthFinding>& depths) {
  std::vector<ledger::DepthRatio> ratios;
  for (const DepthFinding& finding : depths) {
    const measure::PairedResult& paired = finding.paired;
    if (!IsWhole(paired.ratio)) continue;
    ratios.push_back({finding.depth, paired.ratio.estimate, paired.ratio.low, paired.ratio.high, 4 * paired.used});
  }
  return ratios;
}

// What would make a refutation worth another look.
std::vector<ledger::ReopenWhen> ReopenConditions(const Judgement& judgement, const RecordContext& context) {
  if (judgement.ruling != Ruling::kRefute && judgement.ruling != Ruling::kSearchSpaceIncomplete) return {};
  std::vector<ledger::ReopenWhen> conditions = {{"boltbeam_version", ledger::Comparison::kChanges, base::kVersion,
                                                 "another boltbeam: its kernels and plans may differ"}};
  for (const auto& [fact, value] : context.build) {
    conditions.push_back({fact, ledger::Comparison::kChanges, value, "other machine code of the same kernels"});
  }
  return conditions;
}

}  // namespace

json EnvironmentJson(const measure::Environment& environment) {
  return {{"cpu", environment.cpu_model},
          {"kernel", environment.kernel},
          {"governor", environment.governor},
          {"huge_pages", environment.huge_pages},
          {"boltbeam", environment.boltbeam_version},
          {"affinity", environment.affinity},
          {"quota_cpus", environment.quota_cpus},
          {"load_1m", environment.load_1m},
          {"pressure_percent", environment.pressure_percent},
          {"mhz", environment.mhz},
          {"doubts", environment.doubts},
          {"date", environment.date}};
}

ledger::Verdict ToVerdict(const Judgement& judgement, const Run& run, const Thresholds& thresholds,
                          const RecordContext& context) {
  ledger::Verdict verdict;
  verdict.subject = context.subject;
  verdict.ruling = judgement.ruling;
  verdict.conditions = judgement.conditions;
  verdict.reason = judgement.reason;
  verdict.refused = judgement.refused;
  verdict.tier = judgement.ruling == Ruling::kPromote ? judgement.tier : "";
  verdict.off_switch = context.off_switch;
  verdict.prediction = context.prediction;
  verdict.samples = context.samples;
  if (!run.findings.depths.empty()) verdict.outcome = measure::OutcomeName(judgement.outcome);
  if (IsWhole(judgement.ratio)) {
    verdict.ratio = judgement.ratio.estimate;
    verdict.ratio_low = judgement.ratio.low;
    verdict.ratio_high = judgement.ratio.high;
    verdict.smallest_difference = Finite(judgement.smallest);
  }
  for (const DepthFinding& finding : run.findings.depths) verdict.repetitions += finding.paired.used;
  verdict.depths = DepthRatios(run.findings.depths);
  verdict.reopen_when = ReopenConditions(judgement, context);
  verdict.environment = EnvironmentJson(run.environment);
  verdict.environment["disturbances"] = run.disturbances;
  verdict.details = {{"thresholds", ToJson(thresholds)},
                     {"command", context.command},
                     {"seconds", run.seconds},
                     {"build", context.build}};
  return verdict;
}

json DerivedFields(const Judgement& judgement, const std::vector<DepthFinding>& depths) {
  // As the ledger writes them, so that the names and the numbers are its own.
  Run run;
  run.findings.depths = depths;
  const json payload = ledger::ToJson(ToVerdict(judgement, run, {}, {}));
  json fields;
  for (const char* name : {"verdict", "reason", "conditions", "repetitions", "outcome", "ratio", "ratio_low",
                           "ratio_high", "smallest_difference", "tier", "depths"}) {
    fields[name] = payload.value(name, json());  // what does not follow must not be recorded either
  }
  return fields;
}

Result<ledger::DerivedFields> RederiveFields(std::string_view samples) {
  BOLTBEAM_ASSIGN(const Rederived rederived, Rederive(samples));
  ledger::DerivedFields fields{DerivedFields(rederived.judgement, rederived.depths), {}, {}};
  for (const std::string& name : rederived.derived) fields.derived.push_back("condition " + name);
  for (const std::string& name : rederived.taken) fields.taken.push_back("condition " + name);
  return fields;
}

}  // namespace boltbeam::judge
