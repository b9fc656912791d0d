#include "ledger/sqlite.h"

#include <sqlite3.h>

namespace boltbeam::ledger {
namespace {

constexpr int kBusyMilliseconds = 10'000;

std::unexpected<Error> Failed(sqlite3* database) {
  return Fail(Code::kLedgerIndex, "the ledger's index", sqlite3_errmsg(database), "a database; it can be deleted");
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Statement& Statement::Bind(int position, std::string_view text) {
  // SQLite makes its own copy: SQLITE_TRANSIENT, without the old-style cast in its macro.
  sqlite3_bind_text64(statement_.get(), position, text.data(), text.size(), sqlite3_destructor_type{SQLITE_STATIC},
                      SQLITE_UTF8);
  return *this;
}

Statement& Statement::Bind(int position, std::uint64_t number) {
  sqlite3_bind_int64(statement_.get(), position, static_cast<sqlite3_int64>(number));
  return *this;
}

Result<bool> Statement::Step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return Failed(database_);
}

void Statement::Reset() { sqlite3_reset(statement_.get()); }

std::string Statement::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)};
}

std::uint64_t Statement::Number(int column) const {
  return static_cast<std::uint64_t>(sqlite3_column_int64(statement_.get(), column));
}

Result<Database> Database::Open(const std::string& path) {
  sqlite3* opened = nullptr;
  const int result = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Database database(opened);
  if (result != SQLITE_OK) {
    return Fail(Code::kLedgerIndex, path, sqlite3_errstr(result), "a folder that can be written to");
  }
  sqlite3_busy_timeout(opened, kBusyMilliseconds);
  return database;
}

Result<void> Database::Run(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return Failed(database_.get());
}

Result<Statement> Database::Prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (result != SQLITE_OK) return Failed(database_.get());
  return Statement(database_.get(), statement);
}

}  // namespace boltbeam::ledger
