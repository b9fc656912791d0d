// SQLite for imports: a database in memory, read or made by a script that may do nothing but make tables and fill them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "audit/import/source.h"
#include "audit/import/table.h"

struct sqlite3;

namespace boltbeam::imports {

class Database {
 public:
  static bool IsDatabase(std::string_view bytes);
  /// A database file's bytes, never written to; they must outlive this.
  static Result<Database> FromBytes(const Source& source);
  /// CREATE TABLE and INSERT statements; kImportDamaged names the statement that is none or is not valid.
  static Result<Database> FromScript(const Source& source);

  [[nodiscard]] bool HasTable(std::string_view table) const;
  /// All rows of a table, columns by name, `line` the number of the row. kImportDamaged when it can't be read.
  [[nodiscard]] Result<TextTable> Read(std::string_view table) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  using Handle = std::unique_ptr<sqlite3, Close>;

  Database(Handle handle, std::string name) : handle_(std::move(handle)), name_(std::move(name)) {}
  static Result<Handle> Open(const std::string& name);

  Handle handle_;
  std::string name_;
};

}  // namespace boltbeam::imports
