// Tables in text: CSV, columns under dashes, Markdown pipes. Columns are found by name, never by position.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/import/imported.h"
#include "audit/import/numbers.h"
#include "audit/import/source.h"

namespace boltbeam::imports {

struct TableColumn {
  std::string name;  // without its unit: "Total Time"
  std::string unit;  // "ns"; empty: none is printed
};

struct TableRow {
  std::size_t line = 0;
  std::vector<std::string> cells;
};

struct TextTable {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::vector<Refused> refused;  // rows that have not as many cells as there are columns
  std::size_t line = 0;          // of the header
  std::size_t end = 0;           // index of the first line behind it
  Decimal decimal = Decimal::kPoint;

  /// The first of these names that a column has.
  [[nodiscard]] std::optional<std::size_t> Find(std::initializer_list<std::string_view> names) const;
  [[nodiscard]] bool Has(std::initializer_list<std::string_view> names) const;  // all of them
  /// Empty where the row or the table has no such cell.
  [[nodiscard]] std::string_view Text(const TableRow& row, std::initializer_list<std::string_view> names) const;
  [[nodiscard]] std::optional<double> Number(const TableRow& row, std::initializer_list<std::string_view> names) const;
  /// In nanoseconds, by the column's own unit; `without` for a column that names none.
  [[nodiscard]] std::optional<double> Time(const TableRow& row, std::initializer_list<std::string_view> names,
                                           double without = 1) const;
};

/// Every table of the text, in order; a CSV header is a line of at least two names, two of them in `known`.
/// kImportDamaged: numbers with a decimal point and others with a decimal comma in one table.
Result<std::vector<TextTable>> ReadTables(const Source& source);

/// CSV (RFC 4180, comma, semicolon or tab) from the line with this index.
TextTable ReadCsv(const Source& source, std::size_t index, char separator);

}  // namespace boltbeam::imports
