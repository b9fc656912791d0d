#include "ledger/verify.h"

#include <fmt/format.h>

#include <set>

#include "ledger/blobs.h"
#include "ledger/records.h"

namespace boltbeam::ledger {
namespace {

/// The payload must be what its kind says it is: a chain can be whole and still hold what nobody can read.
template <typename From>
Result<void> CheckAs(From from, const nlohmann::json& payload) {
  const auto record = from(payload);
  if (!record) return std::unexpected(record.error());
  return Check(*record);
}

Result<void> CheckPayload(const Record& record) {
  switch (record.kind) {
    case Kind::kChipFacts:
      return CheckAs(ChipFactsFrom, record.payload);
    case Kind::kPrediction:
      return CheckAs(PredictionFrom, record.payload);
    case Kind::kMeasurement:
      return CheckAs(MeasurementFrom, record.payload);
    case Kind::kVerdict:
      return CheckAs(VerdictFrom, record.payload);
    case Kind::kReopening:
      return CheckAs(ReopeningFrom, record.payload);
    case Kind::kRecovery:
      return {};
  }
  return {};
}

void VerifyEntries(const Chain& chain, const Blobs& blobs, std::set<std::string>& seen, Verification& result) {
  for (const Entry& entry : chain.entries) {
    ++result.records;
    const std::string where = fmt::format("{}: line {}", chain.path, entry.record.seq);
    if (const Result<void> checked = CheckPayload(entry.record); !checked) {
      result.faults.push_back(
          {Code::kLedgerRecord, where + ": " + checked.error().where, checked.error().found, checked.error().expected});
    }
    for (const std::string& hash : BlobsOf(entry.record)) {
      if (!seen.insert(hash).second) continue;
      const Result<std::string> bytes = blobs.Load(hash);
      if (bytes) ++result.blobs;
      if (!bytes) {
        result.faults.push_back(
            {bytes.error().code, where + " names " + bytes.error().where, bytes.error().found, bytes.error().expected});
      }
    }
  }
}

}  // namespace

std::vector<std::string> BlobsOf(const Record& record) {
  std::vector<std::string> hashes;
  const auto samples = record.payload.find("samples");
  if (samples != record.payload.end() && samples->is_object()) {
    const auto hash = samples->find("sha256");
    if (hash != samples->end() && hash->is_string()) hashes.push_back(hash->get<std::string>());
  }
  for (const char* kept : {"cut_sha256", "anchor_sha256"}) {
    const auto found = record.payload.find(kept);
    if (record.kind == Kind::kRecovery && found != record.payload.end() && found->is_string()) {
      hashes.push_back(found->get<std::string>());
    }
  }
  return hashes;
}

Result<Verification> Verify(FileOps& files, const std::string& folder) {
  Verification result;
  BOLTBEAM_ASSIGN(const std::vector<std::string> paths, ChainFiles(files, folder));
  const Blobs blobs(files, folder);
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    BOLTBEAM_ASSIGN(Chain chain, ReadChain(files, path));
    VerifyEntries(chain, blobs, seen, result);
    if (chain.state == ChainState::kDamaged) result.faults.push_back(*chain.fault);
    if (chain.state == ChainState::kTorn) {
      result.notes.push_back(
          fmt::format("{}: {} ({} bytes that nobody was told were recorded; the next record of this "
                      "writer says what was cut)",
                      chain.fault->where, chain.fault->found, chain.torn_bytes));
    }
    if (!chain.anchor && chain.state == ChainState::kWhole) {
      result.notes.push_back(fmt::format("{}: no anchor beside it, so a cut end would not be seen", path));
    }
    result.chains.push_back(std::move(chain));
  }
  return result;
}

}  // namespace boltbeam::ledger
