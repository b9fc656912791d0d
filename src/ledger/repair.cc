#include "ledger/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ledger/durable.h"

namespace boltbeam::ledger {
namespace {

// The ledger's folder, the data folder above it, and the one that this lies in.
constexpr int kOwnLevels = 3;

/// A damaged chain and the bytes that it was read from.
struct Found {
  Chain chain;
  std::string bytes;
  std::string anchor;  // as it stands in its file; empty: there is none
};

Result<std::string> ReadOrNothing(FileOps& files, const std::string& path) {
  Result<std::string> bytes = ReadFile(files, path);
  if (!bytes && IsMissing(bytes.error())) return std::string();
  return bytes;
}

Result<Found> Read(FileOps& files, const std::string& path) {
  Found found;
  BOLTBEAM_ASSIGN(found.chain, ReadChain(files, path));
  BOLTBEAM_ASSIGN(found.bytes, ReadOrNothing(files, path));
  BOLTBEAM_ASSIGN(found.anchor, ReadOrNothing(files, AnchorPath(path)));
  return found;
}

std::uint64_t WholeRecords(std::string_view bytes) {
  std::uint64_t count = 0;
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    if (ReadLine(bytes.substr(0, end))) ++count;
    bytes.remove_prefix(end + 1);
  }
  return count;
}

/// Keeps what is going to be cut, and says what will be.
Result<Repaired> KeepAside(Ledger& ledger, const Found& found) {
  const std::string_view rest = std::string_view(found.bytes).substr(found.chain.good_bytes);
  Repaired repaired;
  repaired.writer = found.chain.writer;
  repaired.fault = found.chain.fault->Message();
  repaired.records = found.chain.entries.size();
  repaired.cut_at_byte = found.chain.good_bytes;
  repaired.cut_bytes = rest.size();
  repaired.whole_records = WholeRecords(rest);
  if (!rest.empty()) {
    BOLTBEAM_ASSIGN(repaired.kept, ledger.StoreSamples(rest));
  }
  if (!found.anchor.empty()) {
    BOLTBEAM_ASSIGN(repaired.kept_anchor, ledger.StoreSamples(found.anchor));
  }
  return repaired;
}

nlohmann::json PayloadOf(const Repaired& repaired) {
  nlohmann::json payload = {{"chain", repaired.writer},
                            {"cut_at_byte", repaired.cut_at_byte},
                            {"cut_bytes", repaired.cut_bytes},
                            {"whole_records", repaired.whole_records},
                            {"reason", repaired.fault}};
  if (!repaired.kept.empty()) payload["cut_sha256"] = repaired.kept;
  if (!repaired.kept_anchor.empty()) payload["anchor_sha256"] = repaired.kept_anchor;
  return payload;
}

/// The chain has these bytes, and the anchor says so. The anchor last: until then the chain counts as damaged.
Result<void> Replace(FileOps& files, const std::string& path, std::string_view bytes, const Anchor& end) {
  BOLTBEAM_TRY(ReplaceFile(files, path, path + ".tmp", bytes));
  return ReplaceFile(files, AnchorPath(path), AnchorPath(path) + ".tmp", WriteAnchor(end));
}

Anchor EndOf(const Chain& chain) {
  if (chain.entries.empty()) return {};
  const Entry& last = chain.entries.back();
  return {last.record.seq, last.record.hash, chain.good_bytes, last.size_bytes};
}

Result<Repaired> RepairOwn(Ledger& ledger, const Found& found) {
  BOLTBEAM_ASSIGN(Repaired repaired, KeepAside(ledger, found));
  Anchor end = EndOf(found.chain);
  Record record;
  record.seq = end.seq + 1;
  record.time = ledger.options().now();
  record.writer = found.chain.writer;
  record.prev = end.hash;
  record.kind = Kind::kRecovery;
  record.payload = PayloadOf(repaired);
  BOLTBEAM_ASSIGN(const std::string line, WriteLine(record));
  const std::string bytes = found.bytes.substr(0, found.chain.good_bytes) + line;
  end = {record.seq, record.hash, bytes.size(), line.size()};
  BOLTBEAM_TRY(Replace(*ledger.options().files, found.chain.path, bytes, end));
  repaired.recovery = {record.seq, record.hash, true};
  return repaired;
}

/// The record first: a chain that was cut must not be without the record that says so.
Result<Repaired> RepairOther(Ledger& ledger, const Found& found, const Lock& lock) {
  BOLTBEAM_ASSIGN(Repaired repaired, KeepAside(ledger, found));
  const Options& options = ledger.options();
  ChainWriter writer(*options.files, {options.folder, options.writer, options.lock_timeout, options.now});
  BOLTBEAM_ASSIGN(repaired.recovery, writer.Append(lock, Kind::kRecovery, PayloadOf(repaired)));
  const std::string_view good = std::string_view(found.bytes).substr(0, found.chain.good_bytes);
  BOLTBEAM_TRY(Replace(*options.files, found.chain.path, good, EndOf(found.chain)));
  return repaired;
}

/// Under one lock from the first look to the last write: what looks torn may be a record that its writer is adding.
Result<void> RepairChain(Ledger& ledger, const std::string& path, std::vector<Repaired>& all) {
  const Options& options = ledger.options();
  BOLTBEAM_ASSIGN(const Lock lock, Lock::Take(*options.files, options.folder, options.lock_timeout));
  BOLTBEAM_ASSIGN(const Found found, Read(*options.files, path));
  if (found.chain.state == ChainState::kWhole) return {};
  const bool is_own = WriterOf(path) == options.writer;
  BOLTBEAM_ASSIGN(Repaired repaired, is_own ? RepairOwn(ledger, found) : RepairOther(ledger, found, lock));
  all.push_back(std::move(repaired));
  return {};
}

}  // namespace

Result<std::vector<Repaired>> Repair(Ledger& ledger, const std::string& writer) {
  const Options& options = ledger.options();
  BOLTBEAM_ASSIGN(std::vector<std::string> paths, ChainFiles(*options.files, options.folder));
  if (!writer.empty()) {
    std::erase_if(paths, [&](const std::string& path) { return WriterOf(path) != writer; });
    if (paths.empty()) return Fail(Code::kLedgerNoRecord, writer, "no chain of that writer", "a writer of this ledger");
  }
  std::vector<Repaired> repaired;
  if (paths.empty()) return repaired;
  BOLTBEAM_TRY(EnsureFolder(*options.files, options.folder, kOwnLevels));
  // What an earlier repair put in place, and could not confirm, looks whole now and might not be after a power loss.
  BOLTBEAM_TRY(SyncFolder(*options.files, options.folder));
  // This writer's own first: what is done to the others is recorded in it.
  std::ranges::stable_partition(paths, [&](const std::string& path) { return WriterOf(path) == options.writer; });
  for (const std::string& path : paths) BOLTBEAM_TRY(RepairChain(ledger, path, repaired));
  return repaired;
}

}  // namespace boltbeam::ledger
