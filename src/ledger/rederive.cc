#include "ledger/rederive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace boltbeam::ledger {
namespace {

using nlohmann::json;

// What a verdict says. Where the samples of a form do not give one of these, the record alone says it.
constexpr std::array kClaims = {"verdict", "outcome", "tier", "conditions"};

// Sums may be taken in another order by another compiler.
constexpr double kTolerance = 1e-9;

bool Same(const json& stored, const json& derived) {
  if (!stored.is_number() || !derived.is_number()) return stored == derived;
  const double a = stored.get<double>(), b = derived.get<double>();
  return a == b || std::abs(a - b) <= kTolerance * std::max(std::abs(a), std::abs(b));
}

std::string Shown(const json& value) { return value.dump(-1, ' ', true, json::error_handler_t::replace); }

// Members of a derived object that nothing gives.
void AddSurplus(const json& stored, const json& derived, const std::string& field, Rederivation& result) {
  for (const auto& [key, value] : stored.items()) {
    if (derived.contains(key)) continue;
    ++result.compared;
    result.differences.push_back({field + "/" + key, Shown(value), "nothing"});
  }
}

void Compare(const json& stored, const json& derived, const std::string& field, Rederivation& result) {
  if (derived.is_structured() && !derived.empty() && stored.type() == derived.type()) {
    for (const auto& [key, value] : derived.items()) {
      const json* inner = nullptr;
      if (stored.is_object() && stored.contains(key)) inner = &stored.at(key);
      if (stored.is_array() && std::stoul(key) < stored.size()) inner = &stored.at(std::stoul(key));
      Compare(inner == nullptr ? json() : *inner, value, field + "/" + key, result);
    }
    if (stored.is_object() && !field.empty()) AddSurplus(stored, derived, field, result);
    if (stored.is_array() && stored.size() > derived.size()) {
      result.differences.push_back(
          {field, fmt::format("{} elements", stored.size()), fmt::format("{}", derived.size())});
    }
    return;
  }
  ++result.compared;
  if (Same(stored, derived)) return;
  result.differences.push_back({field, Shown(stored), Shown(derived)});
}

}  // namespace

Result<void> Rederivation::AsRecorded(const std::string& where) const {
  if (differences.empty()) return {};
  const Difference& first = differences.front();
  return Fail(Code::kLedgerDiffers, where,
              fmt::format("{} of {} figures do not follow from the samples: {} is recorded as {}", differences.size(),
                          compared, first.field, first.stored),
              first.derived);
}

Result<Rederivation> RederiveTable::Run(const Ledger& ledger, const Record& record) const {
  const std::string where = fmt::format("record {}", record.seq);
  const auto samples = record.payload.find("samples");
  if (samples == record.payload.end() || !samples->is_object()) {
    return Fail(Code::kLedgerNotDerivable, where, fmt::format("a {} without samples", KindName(record.kind)),
                "a record that keeps its raw samples");
  }
  const std::string format = samples->value("format", json("")).is_string() ? samples->value("format", "") : "";
  const auto function = functions_.find(format);
  if (function == functions_.end()) {
    std::vector<std::string> known;
    for (const auto& [name, unused] : functions_) known.push_back(name);
    return Fail(Code::kLedgerNotDerivable, where, "samples of the form " + format,
                known.empty() ? "a form that this build recomputes" : fmt::format("{}", fmt::join(known, ", ")));
  }
  const auto hash = samples->find("sha256");
  BOLTBEAM_ASSIGN(
      const std::string bytes,
      ledger.LoadSamples(hash != samples->end() && hash->is_string() ? hash->get<std::string>() : std::string()));
  BOLTBEAM_ASSIGN(DerivedFields fields, function->second(record, bytes));
  Rederivation result;
  result.derived = std::move(fields.fields);
  result.from_samples = std::move(fields.derived);
  result.from_record = std::move(fields.taken);
  if (!result.derived.is_object() || result.derived.empty()) {
    return Fail(Code::kLedgerNotDerivable, where, "nothing follows from the samples", "figures of the record");
  }
  for (const char* claim : kClaims) {
    if (record.payload.contains(claim) && !result.derived.contains(claim)) result.from_record.emplace_back(claim);
  }
  Compare(record.payload, result.derived, "", result);
  return result;
}

}  // namespace boltbeam::ledger
