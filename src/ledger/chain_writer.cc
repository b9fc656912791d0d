#include "ledger/chain_writer.h"

#include <fmt/format.h>

#include <utility>

#include "base/hash.h"
#include "ledger/blobs.h"

namespace boltbeam::ledger {
namespace {

// The ledger's folder, the data folder above it, and the one that this lies in.
constexpr int kOwnLevels = 3;

/// What went wrong with a file before the record was written.
Error NotRecorded(Error error) {
  const bool file = error.code == Code::kFileRead || error.code == Code::kFileWrite ||
                    error.code == Code::kFileNotFound || error.code == Code::kLedgerBlob;
  if (!file) return error;
  return {Code::kLedgerNotRecorded, std::move(error.where), error.found + "; nothing was recorded",
          std::move(error.expected)};
}

}  // namespace

Result<Receipt> ChainWriter::Append(Kind kind, const nlohmann::json& payload) {
  Result<Lock> lock = TakeLock();
  if (!lock) return std::unexpected(NotRecorded(std::move(lock).error()));
  return Append(*lock, kind, payload);
}

Result<Receipt> ChainWriter::Append(const Lock& /*held*/, Kind kind, const nlohmann::json& payload) {
  if (!IsWriterName(options_.writer)) {
    return Fail(Code::kLedgerRecord, "writer", options_.writer, "1 to 100 letters, digits, '.', '_' and '-'");
  }
  Result<Receipt> receipt = AddSettled(kind, payload);
  if (!receipt) return std::unexpected(NotRecorded(std::move(receipt).error()));
  return receipt;
}

Result<void> ChainWriter::Settle(const Lock& /*held*/) {
  BOLTBEAM_TRY(SettledTail());
  return {};
}

Result<Lock> ChainWriter::TakeLock() {
  Result<Lock> lock = Lock::Take(*files_, options_.folder, options_.lock_timeout);
  if (!lock && IsMissing(lock.error())) {
    BOLTBEAM_TRY(EnsureFolder(*files_, options_.folder, kOwnLevels));
    lock = Lock::Take(*files_, options_.folder, options_.lock_timeout);
  }
  return lock;
}

Result<ChainWriter::Tail> ChainWriter::SettledTail() {
  BOLTBEAM_ASSIGN(Tail tail, OpenTail());
  BOLTBEAM_TRY(Adopt(tail));
  if (tail.behind.state == ChainState::kTorn) BOLTBEAM_TRY(Recover(tail));
  return tail;
}

Result<Receipt> ChainWriter::AddSettled(Kind kind, const nlohmann::json& payload) {
  BOLTBEAM_ASSIGN(Tail tail, SettledTail());
  return Add(tail, kind, payload);
}

Result<std::optional<Anchor>> ChainWriter::LoadAnchor() {
  const std::string path = AnchorPath(Path());
  const Result<std::string> text = ReadFile(*files_, path);
  if (!text && !IsMissing(text.error())) return std::unexpected(text.error());
  if (!text) return std::nullopt;
  BOLTBEAM_ASSIGN(const Anchor anchor, ReadAnchor(*text, path));
  return anchor;
}

Result<ChainWriter::Tail> ChainWriter::OpenTail() {
  BOLTBEAM_ASSIGN(const std::optional<Anchor> found, LoadAnchor());
  const Anchor anchor = found.value_or(Anchor{});
  if (anchor.seq == 0) BOLTBEAM_TRY(EnsureFolder(*files_, options_.folder, kOwnLevels));
  BOLTBEAM_ASSIGN(OpenFile file, OpenFile::Open(*files_, Path(), Access::kWrite));
  BOLTBEAM_ASSIGN(const std::uint64_t size, file.Size());
  BOLTBEAM_TRY(CheckAnchoredLine(file, size, anchor));
  BOLTBEAM_ASSIGN(std::string bytes, file.Read(anchor.size_bytes, size - anchor.size_bytes));
  Chain behind = ParseChain(Path(), options_.writer, bytes, anchor, found);
  if (behind.state == ChainState::kDamaged) {
    Error fault = *behind.fault;
    fault.expected += "; nothing was recorded: boltbeam ledger verify says more, repair mends it";
    return std::unexpected(std::move(fault));
  }
  // An anchor before the first byte: from now on a torn beginning can be told from a damaged one.
  if (!found) BOLTBEAM_TRY(MoveAnchor(anchor));
  return Tail{std::move(file), anchor, std::move(behind), std::move(bytes), anchor.seq > 0};
}

Result<void> ChainWriter::CheckAnchoredLine(OpenFile& file, std::uint64_t size, const Anchor& anchor) {
  const auto damaged = [&](std::string found, std::string expected) {
    return Fail(Code::kLedgerDamaged, fmt::format("{}: line {}", Path(), anchor.seq), std::move(found),
                expected + "; nothing was recorded: boltbeam ledger verify says more, repair mends it");
  };
  if (size < anchor.size_bytes) {
    return damaged(fmt::format("the end of the file at byte {}", size),
                   fmt::format("at least {} bytes: the end was cut off", anchor.size_bytes));
  }
  if (anchor.seq == 0) return {};
  BOLTBEAM_ASSIGN(const std::string line,
                  file.Read(anchor.size_bytes - anchor.last_line_bytes, anchor.last_line_bytes));
  const Result<Record> record = ReadLine(std::string_view(line).substr(0, line.size() - 1));
  if (!record || !line.ends_with('\n')) {
    return damaged(record ? "a line without its end" : record.error().found, "the record that was confirmed");
  }
  if (record->hash != anchor.hash || record->seq != anchor.seq) {
    return damaged("another record than the one that was confirmed", "the hash " + anchor.hash.substr(0, 12) + "…");
  }
  return {};
}

/// Records behind the anchor are whole, but the disk may have refused to confirm them: it may even have forgotten
/// that it never wrote them. Written again in the same place, they can be confirmed; a failure half-way changes
/// nothing.
Result<void> ChainWriter::Adopt(Tail& tail) {
  if (tail.behind.entries.empty()) return {};
  const Entry& last = tail.behind.entries.back();
  const std::uint64_t size = tail.behind.good_bytes - tail.end.size_bytes;
  const std::uint64_t whole = tail.end.size_bytes + tail.bytes.size();
  BOLTBEAM_TRY(tail.file.Write(tail.end.size_bytes, std::string_view(tail.bytes).substr(0, size)));
  BOLTBEAM_TRY(tail.file.Truncate(whole));  // the same holds for a cut that was not confirmed
  tail.bytes.erase(0, size);
  tail.end = {last.record.seq, last.record.hash, tail.behind.good_bytes, last.size_bytes};
  BOLTBEAM_TRY(Confirm(tail));
  return MoveAnchor(tail.end);
}

/// The recovery record is written over what it cuts off, so that there is no moment without either of them.
Result<void> ChainWriter::Recover(Tail& tail) {
  Blobs blobs(*files_, options_.folder);
  BOLTBEAM_ASSIGN(const std::string kept, blobs.Store(tail.bytes));
  const nlohmann::json payload = {{"cut_bytes", tail.bytes.size()},
                                  {"cut_at_byte", tail.end.size_bytes},
                                  {"cut_sha256", kept},
                                  {"reason", tail.behind.fault->found}};
  Record record;
  BOLTBEAM_ASSIGN(const std::string line, NextLine(tail, Kind::kRecovery, payload, record));
  BOLTBEAM_TRY(tail.file.Write(tail.end.size_bytes, line));
  const std::uint64_t size = tail.end.size_bytes + line.size();
  if (tail.bytes.size() > line.size()) BOLTBEAM_TRY(tail.file.Truncate(size));
  tail.end = {record.seq, record.hash, size, line.size()};
  BOLTBEAM_TRY(Confirm(tail));
  return MoveAnchor(tail.end);
}

Result<Receipt> ChainWriter::Add(Tail& tail, Kind kind, const nlohmann::json& payload) {
  Record record;
  BOLTBEAM_ASSIGN(const std::string line, NextLine(tail, kind, payload, record));
  if (Result<void> written = tail.file.Write(tail.end.size_bytes, line); !written) {
    // When this fails too, an unfinished line is left, which the next writer finds and records.
    (void)tail.file.Truncate(tail.end.size_bytes);
    return std::unexpected(written.error());
  }
  const Anchor end = {record.seq, record.hash, tail.end.size_bytes + line.size(), line.size()};
  if (Result<void> confirmed = Confirm(tail); !confirmed) {
    return Fail(Code::kLedgerDurability, confirmed.error().where,
                fmt::format("{}: record {} was written and may be lost at a power failure", confirmed.error().found,
                            record.seq),
                "a disk that confirms what it was given; the next record settles it");
  }
  return Receipt{record.seq, record.hash, MoveAnchor(end).has_value()};
}

Result<void> ChainWriter::Confirm(Tail& tail) {
  BOLTBEAM_TRY(tail.file.Sync());
  if (!tail.entry_is_safe) BOLTBEAM_TRY(SyncFolder(*files_, options_.folder));
  tail.entry_is_safe = true;
  return {};
}

Result<void> ChainWriter::MoveAnchor(const Anchor& to) {
  const std::string path = AnchorPath(Path());
  return ReplaceFile(*files_, path, path + ".tmp", WriteAnchor(to));
}

Result<std::string> ChainWriter::NextLine(const Tail& tail, Kind kind, const nlohmann::json& payload,
                                          Record& record) const {
  record.seq = tail.end.seq + 1;
  record.time = options_.now();
  record.writer = options_.writer;
  record.prev = tail.end.hash;
  record.kind = kind;
  record.payload = payload;
  return WriteLine(record);
}

}  // namespace boltbeam::ledger
