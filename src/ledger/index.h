// All chains of a ledger as one table that can be asked. It is only a cache: whatever is wrong with it, it is made
// again from the chains, and what it says about a record is never shown without the record itself where that matters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ledger/ledger.h"
#include "ledger/sqlite.h"

namespace boltbeam::ledger {

struct Row {
  std::string writer;
  std::uint64_t seq = 0;
  std::string hash;
  std::string time;
  Kind kind = Kind::kVerdict;
  nlohmann::json payload;
  std::uint64_t offset = 0, size_bytes = 0;  // of the line in its chain
};

/// In one chain the order is certain; between two, only the clocks can tell.
bool IsBefore(const Row& a, const Row& b);

/// Empty fields ask for nothing.
struct Filter {
  std::optional<Kind> kind;
  // candidate: its identity, or the words that it was named by; model: a name, or the beginning of its hash
  std::string candidate, chip, model, verdict, writer;
  std::string about;        // the record that it answers: a prediction, a refutation
  std::uint64_t limit = 0;  // the newest ones; 0: all
};

class Index {
 public:
  /// Up to date with the chains. A file that is no index, or an index of other chains, is made anew; where none can be
  /// written it is kept in memory.
  static Result<Index> Open(const Ledger& ledger);

  /// In the order of their times.
  Result<std::vector<Row>> List(const Filter& filter);
  /// "12": of this writer's chain, or of the only one; "WRITER:12"; or the beginning of a hash, 8 digits or more.
  Result<Row> Find(const std::string& id);
  /// The standing refutations of a candidate on a chip: those without a reopening. shape: one that is empty in a
  /// refutation matches any.
  Result<std::vector<Row>> Refutations(const std::string& candidate, const std::string& chip, const std::string& shape);
  /// All of them.
  Result<std::vector<Row>> StandingRefutations();

  /// What of the chains could not be read: the rest is in the index.
  [[nodiscard]] const std::vector<Error>& faults() const { return faults_; }
  /// How many lines were read to bring it up to date.
  [[nodiscard]] std::uint64_t lines_read() const { return lines_read_; }

 private:
  Index(const Ledger& ledger, Database database) : ledger_(&ledger), database_(std::move(database)) {}
  static Result<Index> OpenFile(const Ledger& ledger, const std::string& path);
  Result<void> Update();
  Result<void> UpdateChain(const std::string& path);
  Result<std::optional<std::string>> Added(const std::string& path, const Anchor& known);
  Result<std::optional<Anchor>> Known(const std::string& writer);
  Result<void> Insert(const Chain& chain, const Anchor& from);
  Result<void> ForgetOthers(const std::vector<std::string>& paths);
  Result<std::vector<Row>> Select(const std::string& condition, const std::vector<std::string>& values,
                                  std::uint64_t limit);

  const Ledger* ledger_;
  Database database_;
  std::vector<Error> faults_;
  std::uint64_t lines_read_ = 0;
};

/// The record as it stands in its chain, checked. kLedgerDamaged when the line is not what the index knew.
Result<Record> LoadRecord(const Ledger& ledger, const Row& row);

}  // namespace boltbeam::ledger
