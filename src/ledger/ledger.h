// The memory: records that are only added, one chain for each writer, raw samples beside them.
//
//   BOLTBEAM_ASSIGN(ledger::Ledger memory, ledger::Ledger::Open(ledger::OptionsFor(paths)));
//   BOLTBEAM_ASSIGN(verdict.samples.sha256, memory.StoreSamples(bytes));  // first the samples
//   BOLTBEAM_ASSIGN(const ledger::Receipt receipt, memory.AppendVerdict(verdict));
//
// When an Append returns a receipt, the record is on the disk.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/paths.h"
#include "ledger/blobs.h"
#include "ledger/chain.h"
#include "ledger/chain_writer.h"
#include "ledger/records.h"

namespace boltbeam::ledger {

struct Options {
  std::string folder;      // of the chains
  std::string index_file;  // empty: the index is kept in memory
  std::string writer;      // empty: this machine and user
  std::chrono::milliseconds lock_timeout{10'000};
  FileOps* files = nullptr;          // nullptr: those of this machine
  std::function<std::string()> now;  // empty: the clock
};

/// The ledger in the data folder, its index in the cache folder.
Options OptionsFor(const base::Paths& paths);

/// "<host>-<8 digits of a hash of the machine's id>-<user>"
std::string ThisWriter();

class Ledger {
 public:
  /// Writes nothing; the folder is made by the first record.
  static Result<Ledger> Open(Options options);

  Result<Receipt> AppendChipFacts(const ChipFacts& record);
  Result<Receipt> AppendPrediction(const Prediction& record);
  Result<Receipt> AppendMeasurement(const Measurement& record);
  Result<Receipt> AppendVerdict(const Verdict& record);
  /// By somebody who holds the folder's lock for more than this record.
  Result<Receipt> AppendVerdict(const Lock& held, const Verdict& record);
  Result<Receipt> AppendReopening(const Reopening& record);

  /// Keeps raw samples and gives the SHA-256 that a record names them by.
  Result<std::string> StoreSamples(std::string_view bytes);
  [[nodiscard]] Result<std::string> LoadSamples(const std::string& sha256) const;

  /// Whether a record can be added: to be asked before something is measured for minutes. Settles the chain as the
  /// record would. kLedgerDamaged: it would be refused.
  Result<void> CheckWritable();

  /// Confirms what an earlier record that failed may have left unconfirmed at the end of this writer's chain.
  Result<void> Settle(const Lock& held);

  /// Every chain of the folder. Damage is in their states.
  [[nodiscard]] Result<std::vector<Chain>> ReadChains() const;

  [[nodiscard]] const Options& options() const { return options_; }

 private:
  explicit Ledger(Options options) : options_(std::move(options)) {}
  template <typename T>
  Result<Receipt> AppendRecord(Kind kind, const T& record, const Samples* samples, const Lock* held = nullptr);
  ChainWriter Writer();
  [[nodiscard]] FileOps& files() const { return *options_.files; }

  Options options_;
};

}  // namespace boltbeam::ledger
