#include "audit/import/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>

#include "base/printable.h"

namespace boltbeam::imports {
namespace {

constexpr int kLongestValue = 16 << 20;  // bytes; also of a statement
constexpr int kStepsBetweenChecks = 10000;
constexpr int kMostChecks = 100000;  // of a statement: a file that asks for more is no measurement

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

// Nothing but reading, and making and filling tables of the database in memory.
int Authorize(void* scripts, int action, const char* /*a*/, const char* /*b*/, const char* database,
              const char* /*trigger*/) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
      return SQLITE_OK;
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_INDEX:  // of a primary key
    case SQLITE_INSERT:
    case SQLITE_UPDATE:  // of the schema's own table
    case SQLITE_TRANSACTION:
      return scripts != nullptr && (database == nullptr || std::string_view(database) == "main") ? SQLITE_OK
                                                                                                 : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

int CountDown(void* left) { return --*static_cast<int*>(left) < 0 ? 1 : 0; }

std::string Quoted(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) quoted.append(c == '"' ? "\"\"" : std::string(1, c));
  return quoted + "\"";
}

std::size_t LineAt(const Source& source, std::size_t offset) {
  const auto begin = source.text().begin();
  return static_cast<std::size_t>(std::count(begin, begin + static_cast<std::ptrdiff_t>(offset), '\n')) + 1;
}

}  // namespace

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

bool Database::IsDatabase(std::string_view bytes) {
  return bytes.starts_with(std::string_view("SQLite format 3\0", 16));  // with its zero
}

Result<Database::Handle> Database::Open(const std::string& name) {
  sqlite3* raw = nullptr;
  const int status = sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Handle handle(raw);
  if (status != SQLITE_OK) return Fail(Code::kOutOfMemory, name, "no database in memory");
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, kLongestValue);
  return handle;
}

Result<Database> Database::FromBytes(const Source& source) {
  BOLTBEAM_ASSIGN(Handle handle, Open(source.name()));
  const std::string_view bytes = source.bytes();
  // SQLite takes no const pointer, and promises not to write to a database that is read-only.
  auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // NOLINT
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  const int status = sqlite3_deserialize(handle.get(), "main", data, size, size, SQLITE_DESERIALIZE_READONLY);
  if (status != SQLITE_OK) return Fail(Code::kImportDamaged, source.name(), "an SQLite file that can't be opened");
  sqlite3_set_authorizer(handle.get(), Authorize, nullptr);
  return Database(std::move(handle), source.name());
}

Result<Database> Database::FromScript(const Source& source) {
  BOLTBEAM_ASSIGN(Handle handle, Open(source.name()));
  int scripts = 1;
  sqlite3_set_authorizer(handle.get(), Authorize, &scripts);
  const std::string& text = source.text();
  const char* at = text.c_str();
  const char* const end = at + text.size();
  while (at < end) {
    sqlite3_stmt* raw = nullptr;
    const char* next = at;
    const int prepared = sqlite3_prepare_v2(
        handle.get(), at, static_cast<int>(std::min<std::ptrdiff_t>(end - at, kLongestValue)), &raw, &next);
    const Statement statement(raw);
    int left = kMostChecks;
    sqlite3_progress_handler(handle.get(), kStepsBetweenChecks, CountDown, &left);
    const int stepped = prepared != SQLITE_OK || raw == nullptr ? prepared : sqlite3_step(raw);
    sqlite3_progress_handler(handle.get(), 0, nullptr, nullptr);
    if (stepped != SQLITE_OK && stepped != SQLITE_DONE && stepped != SQLITE_ROW) {
      const auto offset = static_cast<std::size_t>(at - text.c_str());
      const std::size_t first = std::min(text.find_first_not_of(" \n\t", offset), text.size());
      return Fail(Code::kImportDamaged, source.At(LineAt(source, first)), base::Printable(sqlite3_errmsg(handle.get())),
                  "CREATE TABLE and INSERT statements of SQLite");
    }
    if (next <= at) break;
    at = next;
  }
  sqlite3_set_authorizer(handle.get(), Authorize, nullptr);
  return Database(std::move(handle), source.name());
}

bool Database::HasTable(std::string_view table) const {
  return sqlite3_table_column_metadata(handle_.get(), "main", std::string(table).c_str(), nullptr, nullptr, nullptr,
                                       nullptr, nullptr, nullptr) == SQLITE_OK;
}

Result<TextTable> Database::Read(std::string_view name) const {
  const auto damaged = [&] {
    return Fail(Code::kImportDamaged, name_,
                fmt::format("table {} can't be read: {}", name, base::Printable(sqlite3_errmsg(handle_.get()))),
                "a whole SQLite file");
  };
  sqlite3_stmt* raw = nullptr;
  const std::string query = "SELECT * FROM " + Quoted(name);
  if (sqlite3_prepare_v2(handle_.get(), query.c_str(), -1, &raw, nullptr) != SQLITE_OK) return damaged();
  const Statement statement(raw);
  TextTable table;
  const int columns = sqlite3_column_count(raw);
  for (int i = 0; i < columns; ++i) table.columns.push_back({sqlite3_column_name(raw, i), {}});
  int left = kMostChecks;
  sqlite3_progress_handler(handle_.get(), kStepsBetweenChecks, CountDown, &left);
  int status = sqlite3_step(raw);
  for (; status == SQLITE_ROW; status = sqlite3_step(raw)) {
    TableRow row{table.rows.size() + 1, {}};
    for (int i = 0; i < columns; ++i) {
      const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(raw, i));
      row.cells.emplace_back(value == nullptr ? "" : value);
    }
    table.rows.push_back(std::move(row));
  }
  sqlite3_progress_handler(handle_.get(), 0, nullptr, nullptr);
  if (status != SQLITE_DONE) return damaged();
  return table;
}

}  // namespace boltbeam::imports
