// Adding a record to the chain of one writer, so that it is there entirely or not at all, and the answer is true.
//
// Under the lock: read the anchor, look at what lies behind it, mend that if a power loss tore it, write the line,
// have the disk confirm it, move the anchor. Nothing is remembered between two records: another process may have
// written meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "ledger/chain.h"
#include "ledger/file_ops.h"
#include "ledger/lock.h"

namespace boltbeam::ledger {

struct Receipt {
  std::uint64_t seq = 0;
  std::string hash;
  bool anchored = true;  // false: the record is safe, but the anchor still stands at the one before it
};

struct WriterOptions {
  std::string folder;  // of the chains
  std::string writer;
  std::chrono::milliseconds lock_timeout{10'000};
  std::function<std::string()> now;  // UTC, ISO 8601
};

class ChainWriter {
 public:
  ChainWriter(FileOps& files, WriterOptions options) : files_(&files), options_(std::move(options)) {}

  /// kLedgerNotRecorded: it is not there. kLedgerDurability: nobody knows; the next record brings certainty.
  /// kLedgerDamaged: the chain is, and nothing is added to it.
  Result<Receipt> Append(Kind kind, const nlohmann::json& payload);
  /// The same by somebody who holds the folder's lock for more than this record.
  Result<Receipt> Append(const Lock& held, Kind kind, const nlohmann::json& payload);
  /// What a record does before it is added: confirms what lies whole behind the anchor, recovers from what does not.
  Result<void> Settle(const Lock& held);

 private:
  struct Tail {
    OpenFile file;
    Anchor end;          // the last good record
    Chain behind;        // what lies behind the anchor
    std::string bytes;   // the same, as it is in the file
    bool entry_is_safe;  // the folder is known to hold the file on the disk
  };

  Result<Lock> TakeLock();
  Result<Receipt> AddSettled(Kind kind, const nlohmann::json& payload);
  Result<std::optional<Anchor>> LoadAnchor();
  Result<Tail> OpenTail();
  Result<Tail> SettledTail();
  Result<void> CheckAnchoredLine(OpenFile& file, std::uint64_t size, const Anchor& anchor);
  Result<void> Adopt(Tail& tail);
  Result<void> Recover(Tail& tail);
  Result<Receipt> Add(Tail& tail, Kind kind, const nlohmann::json& payload);
  Result<void> Confirm(Tail& tail);
  Result<void> MoveAnchor(const Anchor& to);
  Result<std::string> NextLine(const Tail& tail, Kind kind, const nlohmann::json& payload, Record& record) const;
  [[nodiscard]] std::string Path() const { return ChainPath(options_.folder, options_.writer); }

  FileOps* files_;
  WriterOptions options_;
};

}  // namespace boltbeam::ledger
