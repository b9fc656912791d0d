#include "ledger/reopen.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace boltbeam::ledger {
namespace {

using nlohmann::json;

std::string Shown(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// 19.1.7 as 19, 1, 7; nothing when it is not made of numbers.
std::optional<std::vector<std::uint64_t>> VersionParts(const std::string& text) {
  std::vector<std::uint64_t> parts;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::uint64_t part = 0;
    const auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc()) return std::nullopt;
    parts.push_back(part);
    if (next == end) return parts;
    if (*next != '.') return std::nullopt;
    at = next + 1;
  }
}

/// now < then, for two numbers or two versions.
std::optional<bool> IsLess(const json& now, const json& then) {
  if (now.is_number() && then.is_number()) return now.get<double>() < then.get<double>();
  if (!now.is_string() || !then.is_string()) return std::nullopt;
  const auto a = VersionParts(now.get<std::string>()), b = VersionParts(then.get<std::string>());
  if (!a || !b) return std::nullopt;
  return *a < *b;
}

/// Verdicts that agree in all of this say the same.
std::vector<std::string> KeyOf(const Verdict& verdict) {
  const Subject& subject = verdict.subject;
  return {subject.candidate,
          subject.baseline,
          subject.plan,
          subject.chip,
          subject.model_hash,
          subject.shape,
          std::string(RulingName(verdict.ruling))};
}

bool IsSameCandidate(const Subject& a, const Subject& b) {
  return a.candidate == b.candidate && a.chip == b.chip && a.model_hash == b.model_hash && a.shape == b.shape;
}

Truth TruthOf(bool value) { return value ? Truth::kTrue : Truth::kFalse; }

Result<Refutation> RefutationOf(Row row, const Facts& now) {
  Refutation refutation;
  BOLTBEAM_ASSIGN(refutation.verdict, VerdictFrom(row.payload));
  for (const ReopenWhen& when : refutation.verdict.reopen_when) refutation.holds.push_back(Holds(when, now));
  refutation.row = std::move(row);
  return refutation;
}

}  // namespace

Truth Holds(const ReopenWhen& when, const Facts& now) {
  const auto fact = now.find(when.fact);
  if (when.comparison == Comparison::kStated || fact == now.end() || fact->second.is_null()) return Truth::kUnknown;
  if (when.comparison == Comparison::kChanges) {
    return TruthOf(when.value.is_number() && fact->second.is_number()
                       ? when.value.get<double>() != fact->second.get<double>()
                       : when.value != fact->second);
  }
  const std::optional<bool> less = IsLess(fact->second, when.value);
  if (!less) return Truth::kUnknown;
  return TruthOf(when.comparison == Comparison::kBelow ? *less : !*less);
}

std::string Describe(const ReopenWhen& when, const Facts& now) {
  if (when.comparison == Comparison::kStated) return when.text;
  const char* relation = when.comparison == Comparison::kChanges   ? "is another than"
                         : when.comparison == Comparison::kAtLeast ? "is at least"
                                                                   : "is below";
  std::string text = fmt::format("{} {} {}", when.fact, relation, Shown(when.value));
  if (const auto fact = now.find(when.fact); fact != now.end()) text += fmt::format(" (now {})", Shown(fact->second));
  return when.text.empty() ? text : text + ": " + when.text;
}

bool Refutation::IsDue() const { return std::ranges::find(holds, Truth::kTrue) != holds.end(); }

Result<std::optional<Refutation>> FindRefutation(Index& index, const std::string& candidate, const std::string& chip,
                                                 const std::string& shape, const Facts& now) {
  BOLTBEAM_ASSIGN(std::vector<Row> rows, index.Refutations(candidate, chip, shape));
  if (rows.empty()) return std::nullopt;
  BOLTBEAM_ASSIGN(Refutation refutation, RefutationOf(std::move(rows.back()), now));
  return refutation;
}

Result<bool> IsRefuted(Index& index, const std::string& candidate, const std::string& chip, const std::string& shape) {
  BOLTBEAM_ASSIGN(const std::vector<Row> rows, index.Refutations(candidate, chip, shape));
  return !rows.empty();
}

Result<std::vector<Refutation>> StandingRefutations(Index& index, const Facts& now) {
  BOLTBEAM_ASSIGN(std::vector<Row> rows, index.StandingRefutations());
  std::vector<Refutation> refutations;
  for (Row& row : rows) {
    BOLTBEAM_ASSIGN(Refutation refutation, RefutationOf(std::move(row), now));
    refutations.push_back(std::move(refutation));
  }
  return refutations;
}

Result<std::vector<Receipt>> Reopen(Ledger& ledger, Index& index, const std::string& id, const std::string& reason) {
  BOLTBEAM_ASSIGN(const Row row, index.Find(id));
  BOLTBEAM_ASSIGN(const std::vector<Row> standing, index.StandingRefutations());
  if (std::ranges::none_of(standing, [&](const Row& one) { return one.hash == row.hash; })) {
    return Fail(Code::kUsage, id, "no standing refutation", "a record that `boltbeam ledger list --refuted` shows");
  }
  BOLTBEAM_ASSIGN(const Record record, LoadRecord(ledger, row));
  BOLTBEAM_ASSIGN(const Verdict verdict, VerdictFrom(record.payload));
  std::vector<Receipt> receipts;
  for (const Row& one : standing) {
    BOLTBEAM_ASSIGN(const Verdict other, VerdictFrom(one.payload));
    if (!IsSameCandidate(other.subject, verdict.subject)) continue;
    BOLTBEAM_ASSIGN(const Receipt receipt, ledger.AppendReopening({other.subject, one.hash, reason}));
    receipts.push_back(receipt);
  }
  return receipts;
}

Result<Sightings> CountSightings(Index& index, const Verdict& verdict) {
  Filter filter;
  filter.kind = Kind::kVerdict;
  filter.candidate = verdict.subject.candidate;
  filter.chip = verdict.subject.chip;
  filter.verdict = RulingName(verdict.ruling);
  BOLTBEAM_ASSIGN(const std::vector<Row> rows, index.List(filter));
  return SightingsTable(rows).Of(verdict);
}

SightingsTable::SightingsTable(const std::vector<Row>& verdicts) {
  std::map<std::vector<std::string>, std::set<std::string>> machines;
  for (const Row& row : verdicts) {
    const Result<Verdict> verdict = VerdictFrom(row.payload);
    if (!verdict) continue;  // `ledger verify` names it
    const std::vector<std::string> key = KeyOf(*verdict);
    Sightings& sightings = by_subject_[key];
    sightings.repetitions += verdict->repetitions;
    sightings.sessions += verdict->sessions;
    machines[key].insert(MachineOf(row.writer));
    sightings.machines = machines[key].size();
  }
}

Sightings SightingsTable::Of(const Verdict& verdict) const {
  const auto found = by_subject_.find(KeyOf(verdict));
  return found == by_subject_.end() ? Sightings{} : found->second;
}

std::string Describe(const Sightings& sightings) {
  if (sightings.SeenOnce()) return "seen once";
  return fmt::format("{} sessions, {} machine{}, {} repetitions", sightings.sessions, sightings.machines,
                     sightings.machines == 1 ? "" : "s", sightings.repetitions);
}

std::string MachineOf(const std::string& writer) {
  // host-<8 digits>-user
  constexpr std::size_t kDigits = 8;
  for (std::size_t at = writer.find('-'); at != std::string::npos; at = writer.find('-', at + 1)) {
    const std::size_t end = at + 1 + kDigits;
    if (end >= writer.size() || writer[end] != '-') continue;
    const bool hex = std::ranges::all_of(writer.substr(at + 1, kDigits),
                                         [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
    if (hex) return writer.substr(0, end);
  }
  return writer;
}

}  // namespace boltbeam::ledger
