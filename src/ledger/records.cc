#include "ledger/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/printable.h"
#include "ledger/line.h"

namespace boltbeam::ledger {
namespace {

constexpr std::array<std::string_view, 8> kRulings = {
    "diagnostic",        "candidate", "promote", "refute", "defer", "inconclusive", "search-space-incomplete",
    "adapter-incomplete"};
constexpr std::array<std::string_view, 3> kStates = {"pass", "fail", "unknown"};
constexpr std::array<std::string_view, 3> kOutcomes = {"faster", "slower", "no difference shown"};
// What has to be shown before something becomes the default.
constexpr std::array<std::string_view, 5> kNeededToPromote = {"output", "route", "speed", "memory", "off_switch"};

std::unexpected<Error> Broken(std::string field, std::string found, std::string expected) {
  return Fail(Code::kLedgerRecord, std::move(field), std::move(found), std::move(expected));
}

Result<void> Named(const std::string& field, const std::string& text) {
  if (text.empty()) return Broken(field, "nothing", "a name");
  if (!base::IsUtf8(text)) return Broken(field, base::Printable(text), "UTF-8");
  return {};
}

Result<void> HashOrNothing(const std::string& field, const std::string& text) {
  if (text.empty() || IsHash(text)) return {};
  return Broken(field, base::Printable(text), "a SHA-256: 64 hexadecimal digits");
}

Result<void> CheckSubject(const Subject& subject) {
  BOLTBEAM_TRY(Named("candidate", subject.candidate));
  BOLTBEAM_TRY(Named("chip", subject.chip));
  return HashOrNothing("model_hash", subject.model_hash);
}

Result<void> CheckSamples(const Samples& samples) {
  BOLTBEAM_TRY(HashOrNothing("samples.sha256", samples.sha256));
  if (samples.sha256.empty() == samples.format.empty()) return {};
  return Broken("samples.format", base::Printable(samples.format), "the form of the samples, when there are any");
}

Result<void> Interval(const std::string& field, double low, double value, double high) {
  const bool ordered = std::isfinite(low) && std::isfinite(high) && low <= value && value <= high;
  if (ordered) return {};
  return Broken(field, fmt::format("{} in {} to {}", value, low, high), "finite numbers, low <= value <= high");
}

Result<void> CheckRatios(const Verdict& verdict) {
  const bool all = verdict.ratio && verdict.ratio_low && verdict.ratio_high;
  if (!all && (verdict.ratio || verdict.ratio_low || verdict.ratio_high)) {
    return Broken("ratio", "a part of it", "ratio, ratio_low and ratio_high, or none of them");
  }
  if (all) {
    BOLTBEAM_TRY(Interval("ratio", *verdict.ratio_low, *verdict.ratio, *verdict.ratio_high));
    if (*verdict.ratio_low <= 0) return Broken("ratio_low", fmt::format("{}", *verdict.ratio_low), "above 0");
  }
  for (const DepthRatio& at : verdict.depths) {
    BOLTBEAM_TRY(Interval(fmt::format("depth {}", at.depth), at.low, at.ratio, at.high));
  }
  if (!verdict.outcome.empty() && std::ranges::find(kOutcomes, verdict.outcome) == kOutcomes.end()) {
    return Broken("outcome", base::Printable(verdict.outcome), "faster, slower or no difference shown");
  }
  return {};
}

Result<void> CheckPromotion(const Verdict& verdict) {
  for (const std::string_view name : kNeededToPromote) {
    const auto met = [&](const Condition& condition) {
      return condition.name == name && condition.state == State::kPass;
    };
    if (std::ranges::none_of(verdict.conditions, met)) {
      return Broken("conditions", fmt::format("{} is not shown", name), "every condition of a promotion passed");
    }
  }
  const auto failed = [](const Condition& condition) { return condition.state == State::kFail; };
  if (std::ranges::any_of(verdict.conditions, failed)) {
    return Broken("conditions", "a condition that failed", "none in a promotion");
  }
  if (verdict.off_switch.empty()) return Broken("off_switch", "nothing", "how a promotion is turned off again");
  if (!verdict.origin.is_null()) return Broken("verdict", "an imported promotion", "one that was judged here");
  if (verdict.samples.sha256.empty()) return Broken("samples", "none", "the raw samples of a promotion");
  return {};
}

Result<void> CheckReopenWhen(const ReopenWhen& when) {
  if (when.comparison == Comparison::kStated) return Named("reopen_when.text", when.text);
  BOLTBEAM_TRY(Named("reopen_when.fact", when.fact));
  if (when.value.is_string() || when.value.is_number()) return {};
  return Broken("reopen_when.value", when.value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace),
                "text or a number");
}

}  // namespace

std::string_view RulingName(Ruling ruling) { return kRulings[static_cast<std::size_t>(ruling)]; }

Result<Ruling> ParseRuling(std::string_view name) {
  const auto found = std::ranges::find(kRulings, name);
  if (found != kRulings.end()) return static_cast<Ruling>(found - kRulings.begin());
  return Broken("verdict", base::Printable(name), fmt::format("{}", fmt::join(kRulings, ", ")));
}

std::vector<std::string> RulingNames() { return {kRulings.begin(), kRulings.end()}; }

std::string_view StateName(State state) { return kStates[static_cast<std::size_t>(state)]; }

Result<void> Check(const ChipFacts& record) {
  BOLTBEAM_TRY(Named("chip", record.chip));
  if (!record.facts.is_object() || record.facts.empty()) return Broken("facts", "none", "an object of facts");
  return CheckSamples(record.samples);
}

Result<void> Check(const Prediction& record) {
  BOLTBEAM_TRY(CheckSubject(record.subject));
  BOLTBEAM_TRY(Named("quantity", record.quantity));
  BOLTBEAM_TRY(Named("method", record.method));
  BOLTBEAM_TRY(Interval(record.quantity, record.low, record.value, record.high));
  if (record.low <= 0) return Broken(record.quantity, fmt::format("{}", record.low), "an interval above 0");
  if (record.confidence > 0 && record.confidence < 1) return {};
  return Broken("confidence", fmt::format("{}", record.confidence), "a chance between 0 and 1");
}

Result<void> Check(const Measurement& record) {
  BOLTBEAM_TRY(CheckSubject(record.subject));
  BOLTBEAM_TRY(Named("quantity", record.quantity));
  BOLTBEAM_TRY(Interval(record.quantity, record.low, record.value, record.high));
  if (record.value <= 0) return Broken(record.quantity, fmt::format("{}", record.value), "above 0");
  if (record.repetitions == 0) return Broken("repetitions", "0", "how often it was measured");
  BOLTBEAM_TRY(HashOrNothing("prediction", record.prediction));
  return CheckSamples(record.samples);
}

Result<void> Check(const Verdict& record) {
  BOLTBEAM_TRY(CheckSubject(record.subject));
  BOLTBEAM_TRY(Named("reason", record.reason));
  BOLTBEAM_TRY(CheckRatios(record));
  BOLTBEAM_TRY(HashOrNothing("prediction", record.prediction));
  BOLTBEAM_TRY(CheckSamples(record.samples));
  for (const Condition& condition : record.conditions) BOLTBEAM_TRY(Named("conditions.name", condition.name));
  for (const ReopenWhen& when : record.reopen_when) BOLTBEAM_TRY(CheckReopenWhen(when));
  if (record.sessions == 0) return Broken("sessions", "0", "at least this one");
  if (record.ruling == Ruling::kPromote) BOLTBEAM_TRY(CheckPromotion(record));
  if (!record.tier.empty() && (record.ruling != Ruling::kPromote || (record.tier != "A" && record.tier != "B"))) {
    return Broken("tier", base::Printable(record.tier), "A or B, of a promotion");
  }
  const bool leaves = record.ruling == Ruling::kRefute || record.ruling == Ruling::kSearchSpaceIncomplete;
  if (leaves && record.reopen_when.empty()) {
    return Broken("reopen_when", "nothing", "what would make it worth another look");
  }
  return {};
}

Result<void> Check(const Reopening& record) {
  BOLTBEAM_TRY(CheckSubject(record.subject));
  if (!IsHash(record.refutation)) return Broken("refutation", base::Printable(record.refutation), "a record's hash");
  return Named("reason", record.reason);
}

}  // namespace boltbeam::ledger
