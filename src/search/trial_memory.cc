#include "search/trial_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "ledger/reopen.h"
#include "measure/environment.h"

namespace boltbeam::search {
namespace {

// Names in details and environments of records.
constexpr const char* kCode = "machine_code";
constexpr const char* kColdBytes = "cold_bytes";
constexpr const char* kSession = "session";
constexpr const char* kRound = "round";
constexpr const char* kLegal = "chosen_from";
constexpr const char* kWindows = "windows_ns";
constexpr std::size_t kSessionDigits = 16;
constexpr std::string_view kMethod = "search";

std::vector<double> NumbersOf(const nlohmann::json& list) {
  std::vector<double> numbers;
  if (!list.is_array()) return numbers;
  for (const nlohmann::json& one : list) numbers.push_back(one.is_number() ? one.get<double>() : 0);
  return numbers;
}

/// Fields of a verdict's details, with a default where one is missing or of another type.
template <typename T>
T Field(const nlohmann::json& object, const char* name, T otherwise) {
  const auto found = object.find(name);
  if (found == object.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>)
    return found->is_string() ? found->get<std::string>() : otherwise;
  else if constexpr (std::is_same_v<T, bool>)
    return found->is_boolean() ? found->get<bool>() : otherwise;
  else
    return found->is_number() ? found->get<T>() : otherwise;
}

}  // namespace

Result<TrialMemory> TrialMemory::Open(ledger::Ledger& memory, TrialConditions conditions) {
  TrialMemory trials;
  trials.ledger_ = &memory;
  trials.conditions_ = std::move(conditions);
  BOLTBEAM_ASSIGN(ledger::Index index, ledger::Index::Open(memory));
  trials.index_ = std::make_shared<ledger::Index>(std::move(index));
  BOLTBEAM_TRY(trials.ReadAll());
  return trials;
}

Result<void> TrialMemory::ReadAll() {
  ledger::Filter filter;
  filter.kind = ledger::Kind::kVerdict;
  filter.chip = conditions_.chip;
  BOLTBEAM_ASSIGN(const std::vector<ledger::Row> verdicts, index_->List(filter));
  for (const ledger::Row& row : verdicts) {
    auto verdict = ledger::VerdictFrom(row.payload);
    if (!verdict || !verdict->details.contains(kCode)) continue;  // of another kind
    const Key key{verdict->subject.shape, verdict->subject.candidate};
    verdicts_[key] = {std::move(*verdict), row.hash};
  }
  BOLTBEAM_ASSIGN(const std::vector<ledger::Row> standing, index_->StandingRefutations());
  for (const ledger::Row& row : standing) standing_.insert(row.hash);
  filter.kind = ledger::Kind::kMeasurement;
  BOLTBEAM_ASSIGN(const std::vector<ledger::Row> measurements, index_->List(filter));
  for (const ledger::Row& row : measurements) {
    const auto measured = ledger::MeasurementFrom(row.payload);
    if (!measured || measured->quantity != kKernelQuantity) continue;
    const auto session = Field<std::string>(measured->environment, kSession, "");
    if (session.empty()) continue;
    const auto round = static_cast<std::size_t>(std::max(0.0, Field(measured->environment, kRound, 0.0)));
    sessions_[session][measured->subject.candidate].push_back(
        {round, NumbersOf(measured->environment.value(kWindows, nlohmann::json()))});
  }
  return {};
}

Result<std::optional<Settled>> TrialMemory::Find(const Part& part, const TrialKey& key) {
  const auto found = verdicts_.find({part.table, key.candidate});
  if (found == verdicts_.end()) return std::nullopt;
  const ledger::Verdict& verdict = found->second.verdict;
  const bool is_refuted = verdict.ruling == ledger::Ruling::kRefute;
  if (is_refuted && !standing_.contains(found->second.record)) return std::nullopt;  // reopened
  std::string changed;
  const auto check = [&](bool is_same, std::string_view what) {
    if (!is_same) changed += (changed.empty() ? "" : ", ") + std::string(what);
  };
  check(Field<std::string>(verdict.details, kCode, "") == key.code, "its machine code");
  check(Field(verdict.details, "threads", 0.0) == conditions_.threads, "the threads");
  check(Field(verdict.details, kColdBytes, 0.0) == static_cast<double>(conditions_.cold_bytes), "the last-level cache");
  if (!changed.empty()) {
    if (is_refuted) {
      BOLTBEAM_TRY(ledger::Reopen(*ledger_, *index_, found->second.record, "search: changed since then: " + changed));
      standing_.erase(found->second.record);
    }
    verdicts_.erase(found);
    return std::nullopt;
  }
  Settled settled;
  if (verdict.ratio) settled.ratio = {*verdict.ratio, *verdict.ratio_low, *verdict.ratio_high};
  settled.against = verdict.subject.baseline;
  settled.is_refuted = is_refuted;
  settled.is_best = Field(verdict.details, "is_best", false);
  settled.reason = verdict.reason;
  settled.ns = Field(verdict.details, "ns", 0.0);
  settled.windows = verdict.repetitions;
  settled.record = found->second.record;
  return settled;
}

std::string TrialMemory::ChosenFor(const Part& part, const std::string& start, std::uint64_t legal) const {
  for (const auto& [key, known] : verdicts_) {
    const nlohmann::json& details = known.verdict.details;
    if (key.first == part.table && known.verdict.subject.baseline == start &&
        Field(details, kLegal, 0.0) == static_cast<double>(legal)) {
      return key.second;
    }
  }
  return {};
}

std::string TrialMemory::SessionOf(const Part& part, const std::vector<TrialKey>& keys) const {
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n", part.table, conditions_.chip, conditions_.threads, conditions_.cold_bytes);
  for (const TrialKey& key : keys) text += key.candidate + " " + key.code + "\n";
  return base::Sha256Hex(text).substr(0, kSessionDigits);
}

ledger::Subject TrialMemory::SubjectFor(const Part& part, const std::string& candidate) const {
  ledger::Subject subject;
  subject.candidate = candidate;
  subject.chip = conditions_.chip;
  subject.shape = part.table;
  return subject;
}

std::vector<Sweep> TrialMemory::Rounds(const Part& part, const std::vector<TrialKey>& keys) const {
  const auto session = sessions_.find(SessionOf(part, keys));
  std::vector<Sweep> sweeps;
  if (session == sessions_.end()) return sweeps;
  std::map<std::size_t, std::vector<Sweep>> rounds;
  for (std::size_t candidate = 0; candidate < keys.size(); ++candidate) {
    const auto windows = session->second.find(keys[candidate].candidate);
    if (windows == session->second.end()) continue;
    for (const Windows& of_round : windows->second) {
      std::vector<Sweep>& list = rounds[of_round.round];
      for (std::size_t i = 0; i < of_round.ns.size(); ++i) {
        if (i == list.size()) {
          list.push_back({of_round.round, std::vector<double>(keys.size(), std::numeric_limits<double>::quiet_NaN())});
        }
        list[i].ns[candidate] = of_round.ns[i];
      }
    }
  }
  // The control is in every sweep and its record is written last: without it the round was not complete.
  for (auto& [round, list] : rounds) {
    if (std::ranges::any_of(list, [](const Sweep& sweep) { return std::isnan(sweep.ns.front()); })) break;
    sweeps.insert(sweeps.end(), list.begin(), list.end());
  }
  return sweeps;
}

Result<void> TrialMemory::Predict(const Part& part, const Prediction& prediction) {
  if (ledger_ == nullptr) return {};
  const ledger::Prediction record = ToRecord(part, prediction, conditions_.chip, kMethod);
  BOLTBEAM_ASSIGN(const ledger::Receipt receipt, ledger_->AppendPrediction(record));
  predictions_[{part.table, record.subject.candidate}] = receipt.hash;
  return {};
}

Result<void> TrialMemory::AddRound(const Part& part, const std::vector<TrialKey>& keys, std::size_t round,
                                   const std::vector<Sweep>& sweeps, double read_gb_s) {
  if (ledger_ == nullptr) return {};
  const std::string session = SessionOf(part, keys);
  for (std::size_t i = keys.size(); i-- > 0;) {
    std::vector<double> windows;
    for (const Sweep& sweep : sweeps) {
      if (!std::isnan(sweep.ns[i])) windows.push_back(sweep.ns[i]);
    }
    if (windows.empty()) continue;
    ledger::Measurement record;
    record.subject = SubjectFor(part, keys[i].candidate);
    record.quantity = kKernelQuantity;
    record.value = measure::Median(windows);
    record.low = measure::Quantile(windows, 0.1);
    record.high = measure::Quantile(windows, 0.9);
    record.repetitions = windows.size();
    if (const auto prediction = predictions_.find({part.table, keys[i].candidate}); prediction != predictions_.end()) {
      record.prediction = prediction->second;
    }
    record.environment[kThreadsField] = conditions_.threads;
    if (read_gb_s > 0) record.environment[kBandwidthField] = read_gb_s;
    record.environment[kColdBytes] = conditions_.cold_bytes;
    AddStream(record.environment, keys[i].stream);
    record.environment[kCode] = keys[i].code;
    record.environment[kSession] = session;
    record.environment[kRound] = round;
    record.environment[kWindows] = windows;
    record.environment["date"] = measure::UtcNow();
    BOLTBEAM_TRY(ledger_->AppendMeasurement(record));
  }
  return {};
}

std::vector<ledger::ReopenWhen> TrialMemory::Grounds(const TrialKey& key) const {
  return {{kCode, ledger::Comparison::kChanges, key.code, "the compiler makes other machine code of it"},
          {std::string("search.") + kColdBytes, ledger::Comparison::kChanges, conditions_.cold_bytes,
           "the last-level cache has another size"}};
}

Result<void> TrialMemory::Append(const Part& part, const TrialKey& key, const ledger::Verdict& verdict) {
  if (ledger_ == nullptr) return {};
  BOLTBEAM_ASSIGN(const ledger::Receipt receipt, ledger_->AppendVerdict(verdict));
  verdicts_[{part.table, key.candidate}] = {verdict, receipt.hash};
  if (verdict.ruling == ledger::Ruling::kRefute) standing_.insert(receipt.hash);
  return {};
}

Result<void> TrialMemory::Settle(const Part& part, const TrialKey& key, const Settled& settled) {
  ledger::Verdict verdict;
  verdict.subject = SubjectFor(part, key.candidate);
  verdict.subject.baseline = settled.against;
  verdict.ruling = settled.is_refuted ? ledger::Ruling::kRefute
                   : settled.is_best  ? ledger::Ruling::kCandidate
                                      : ledger::Ruling::kDiagnostic;
  verdict.outcome = settled.is_refuted                          ? "slower"
                    : settled.is_best && settled.ratio.high < 1 ? "faster"
                                                                : "no difference shown";
  if (settled.ratio.estimate > 0 && settled.ratio.low > 0 && std::isfinite(settled.ratio.high)) {
    verdict.ratio = settled.ratio.estimate;
    verdict.ratio_low = settled.ratio.low;
    verdict.ratio_high = settled.ratio.high;
  }
  verdict.reason = settled.reason;
  verdict.repetitions = settled.windows;
  if (const auto prediction = predictions_.find({part.table, key.candidate}); prediction != predictions_.end()) {
    verdict.prediction = prediction->second;
  }
  verdict.reopen_when = Grounds(key);
  verdict.details[kCode] = key.code;
  verdict.details[kColdBytes] = conditions_.cold_bytes;
  verdict.details["threads"] = conditions_.threads;
  verdict.details["is_best"] = settled.is_best;
  if (settled.legal > 0) verdict.details[kLegal] = settled.legal;
  verdict.details["ns"] = settled.ns;
  if (ledger_ != nullptr && !settled.stages.empty() && verdict.ratio) {
    BOLTBEAM_ASSIGN(verdict.samples.sha256, ledger_->StoreSamples(TrialSamples(settled.stages)));
    verdict.samples.format = kTrialSamplesFormat;
  }
  return Append(part, key, verdict);
}

Result<void> TrialMemory::SettleWrong(const Part& part, const TrialKey& key, const std::string& reason) {
  ledger::Verdict verdict;
  verdict.subject = SubjectFor(part, key.candidate);
  verdict.ruling = ledger::Ruling::kRefute;
  verdict.reason = reason;
  verdict.conditions.push_back({"output", ledger::State::kFail, reason});
  verdict.reopen_when = {Grounds(key).front()};
  verdict.details[kCode] = key.code;
  verdict.details[kColdBytes] = conditions_.cold_bytes;
  verdict.details["threads"] = conditions_.threads;
  return Append(part, key, verdict);
}

}  // namespace boltbeam::search
