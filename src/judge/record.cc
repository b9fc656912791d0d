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

// What would make a refutation worth another look.
std::vector<ledger::ReopenWhen> ReopenConditions(const Judgement& judgement) {
  if (judgement.ruling != Ruling::kRefute && judgement.ruling != Ruling::kSearchSpaceIncomplete) return {};
  return {{"boltbeam_version", ledger::Comparison::kChanges, base::kVersion,
           "another boltbeam: its kernels and plans may differ"}};
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
          {"date", environment.date}};
}

ledger::Verdict ToVerdict(const Judgement& judgement, const Run& run, const Thresholds& thresholds,
                          const RecordContext& context) {
  ledger::Verdict verdict;
  verdict.subject = context.subject;
  verdict.ruling = judgement.ruling;
  verdict.conditions = judgement.conditions;
  verdict.reason = judgement.reason;
  verdict.tier = judgement.ruling == Ruling::kPromote ? judgement.tier : "";
  verdict.off_switch = context.off_switch;
  verdict.prediction = context.prediction;
  verdict.samples = context.samples;
  verdict.sessions = context.sessions;
  if (!run.findings.depths.empty()) verdict.outcome = measure::OutcomeName(judgement.outcome);
  if (IsWhole(judgement.ratio)) {
    verdict.ratio = judgement.ratio.estimate;
    verdict.ratio_low = judgement.ratio.low;
    verdict.ratio_high = judgement.ratio.high;
    verdict.smallest_difference = Finite(judgement.smallest);
  }
  for (const DepthFinding& finding : run.findings.depths) {
    const measure::PairedResult& paired = finding.paired;
    verdict.repetitions += paired.used;
    if (!IsWhole(paired.ratio)) continue;
    verdict.depths.push_back(
        {finding.depth, paired.ratio.estimate, paired.ratio.low, paired.ratio.high, 4 * paired.used});
  }
  verdict.reopen_when = ReopenConditions(judgement);
  verdict.environment = EnvironmentJson(run.environment);
  verdict.environment["disturbances"] = run.disturbances;
  verdict.details = {{"thresholds", ToJson(thresholds)}, {"command", context.command}, {"seconds", run.seconds}};
  return verdict;
}

json DerivedFields(const Judgement& judgement) {
  json fields = {{"verdict", ledger::RulingName(judgement.ruling)}, {"reason", judgement.reason}};
  if (IsWhole(judgement.ratio)) {
    fields["outcome"] = measure::OutcomeName(judgement.outcome);
    fields["ratio"] = judgement.ratio.estimate;
    fields["ratio_low"] = judgement.ratio.low;
    fields["ratio_high"] = judgement.ratio.high;
    if (std::isfinite(judgement.smallest)) fields["smallest_difference"] = judgement.smallest;
  }
  return fields;
}

Result<json> RederiveFields(std::string_view samples) {
  BOLTBEAM_ASSIGN(const Judgement judgement, Rederive(samples));
  return DerivedFields(judgement);
}

}  // namespace boltbeam::judge
