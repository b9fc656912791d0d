// As much of SQLite as the index needs, with errors as values. Not for other modules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace boltbeam::ledger {

class Statement {
 public:
  Statement& Bind(int position, std::string_view text);
  Statement& Bind(int position, std::uint64_t number);
  /// true: there is a row.
  Result<bool> Step();
  /// Ready to be bound and stepped again.
  void Reset();
  [[nodiscard]] std::string Text(int column) const;
  [[nodiscard]] std::uint64_t Number(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  /// ":memory:" is one too. kLedgerIndex.
  static Result<Database> Open(const std::string& path);
  Result<void> Run(const std::string& sql);
  Result<Statement> Prepare(const std::string& sql);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace boltbeam::ledger
