// Tables: text of at most 80 columns for terminals, pipe tables for Markdown, CSV with raw numbers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace boltbeam::report {

enum class Align { kLeft, kRight };  // names to the left, numbers to the right

struct Column {
  std::string title;  // in text and Markdown
  std::string key;    // in CSV, with the unit: "floor_ns"; empty: the column is left out of CSV
  Align align = Align::kRight;
};

/// What people see, and what CSV gets: the same unless the number is shown rounded or with a unit.
struct Cell {
  Cell(std::string shown) : text(std::move(shown)), raw(text) {}  // NOLINT(google-explicit-constructor)
  Cell(const char* shown) : Cell(std::string(shown)) {}           // NOLINT(google-explicit-constructor)
  Cell(std::string shown, std::string value) : text(std::move(shown)), raw(std::move(value)) {}

  std::string text;
  std::string raw;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One row; missing cells at its end are empty.
  void Add(std::vector<Cell> cells);
  /// A line between the rows before and after it; CSV and Markdown have none.
  void AddRule();

  /// Left-aligned columns give way, with an ellipsis, when the table is wider than that.
  [[nodiscard]] std::string Text(std::size_t width = 80) const;
  /// The same with nothing cut: what does not fit its column goes on in the next line.
  [[nodiscard]] std::string WrappedText(std::size_t width = 80) const;
  [[nodiscard]] std::string Markdown() const;
  /// A <table> element, everything in it escaped.
  [[nodiscard]] std::string Html() const;
  /// RFC 4180, a header first; a column without a key is left out.
  [[nodiscard]] std::string Csv() const;

 private:
  std::vector<std::size_t> Widths(std::size_t width) const;
  std::string Lay(const std::vector<std::size_t>& widths, bool is_wrapped) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::size_t> rules_;  // numbers of rows that a line stands before
};

/// Columns that text takes on a terminal: UTF-8 characters, not bytes.
std::size_t DisplayWidth(std::string_view text);

/// text in lines of at most width columns, each but the first after indent spaces; `column` columns of the first are
/// taken.
std::string Wrap(std::string_view text, std::size_t indent = 0, std::size_t width = 80, std::size_t column = 0);
/// The same, with words that are longer than a line broken: for names that anybody may have given.
std::string WrapNames(std::string_view text, std::size_t indent = 0, std::size_t width = 80, std::size_t column = 0);

}  // namespace boltbeam::report
