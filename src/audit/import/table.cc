#include "audit/import/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace boltbeam::imports {
namespace {

// Names that the tables of profilers and benchmarks have: three of them in a line make it a header.
constexpr std::array kKnownNames{"Start",       "Duration",        "Total Time",      "Instances",
                                 "Name",        "Num Calls",       "Kernel Name",     "KernelName",
                                 "Kernel_Name", "BeginNs",         "EndNs",           "DurationNs",
                                 "Calls",       "TotalDurationNs", "Start_Timestamp", "End_Timestamp",
                                 "Metric Name", "Process ID",      "Context",         "op_name",
                                 "op_params",   "backend_name",    "avg_ts",          "avg_ns",
                                 "n_prompt",    "n_gen",           "Function",        "Domain",
                                 "Kind",        "Direction",       "Count",           "KAvg",
                                 "CorrId",      "model_filename",  "test_mode",       "Metric Value",
                                 "Operation",   "Grid Size",       "Block Size",      "Queue_ID",
                                 "GPU_ID"};
constexpr std::size_t kNamesOfHeader = 3;
constexpr std::size_t kLongestUnit = 4;  // "MB/s"
constexpr std::size_t kMostColumns = 4096;
constexpr std::size_t kLinesOfCell = 16;  // that a quoted cell may go over

TableColumn ColumnOf(std::string_view title) {
  title = Trim(title);
  const std::size_t open = title.rfind('(');
  if (title.ends_with(')') && open != std::string_view::npos && open > 0) {
    return {std::string(Trim(title.substr(0, open))), std::string(title.substr(open + 1, title.size() - open - 2))};
  }
  return {std::string(title), {}};
}

// One record; false when the text ends inside quotes.
bool SplitCsv(std::string_view text, char separator, std::vector<std::string>& cells) {
  cells.clear();
  std::string cell;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += text[i++];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == separator) {
      cells.push_back(std::move(cell));
      cell.clear();
      if (cells.size() > kMostColumns) return false;
    } else {
      cell += c;
    }
  }
  cells.push_back(std::move(cell));
  return !quoted;
}

bool IsChatter(std::string_view line) {
  line = Trim(line);
  return line.starts_with("==PROF==") || line.starts_with("==WARNING==") || line.starts_with("==ERROR==");
}

bool EndsTable(std::string_view line) {
  line = Trim(line);
  return line.starts_with("Processing [") || line.starts_with("SKIPPED") || line.starts_with("NOTICE:");
}

bool IsHeader(const std::vector<std::string>& cells) {
  std::size_t known = 0;
  for (const std::string& cell : cells) {
    const TableColumn column = ColumnOf(cell);  // "Function(hipMalloc)" is a value with its name, no unit
    const bool is_name = column.unit.size() <= kLongestUnit;
    known += is_name && std::ranges::find(kKnownNames, column.name) != kKnownNames.end() ? 1 : 0;
  }
  return known >= kNamesOfHeader;
}

bool IsDashes(std::string_view line, char among) {
  line = Trim(line);
  return line.starts_with(among == ' ' ? '-' : among) && line.find('-') != std::string_view::npos &&
         std::ranges::all_of(
             line, [&](char c) { return c == '-' || c == among || (among == '|' && (c == ':' || c == ' ')); });
}

std::vector<std::string> SplitPipes(std::string_view line) {
  line = Trim(line);
  if (line.starts_with('|')) line.remove_prefix(1);
  while (line.ends_with('|')) line.remove_suffix(1);
  std::vector<std::string> cells;
  for (;;) {
    const std::size_t end = line.find('|');
    cells.emplace_back(Trim(line.substr(0, end)));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

// Nsight Compute ends the line of a metric before the columns of rules.
bool MayBeMissing(const TableColumn& column) {
  return column.name.starts_with("Rule") || column.name.starts_with("Estimated Speedup");
}

void AddRow(TextTable& table, std::size_t line, std::vector<std::string> cells) {
  while (cells.size() < table.columns.size() && MayBeMissing(table.columns[cells.size()])) cells.emplace_back();
  if (cells.size() == table.columns.size()) {
    table.rows.push_back({line, std::move(cells)});
  } else {
    table.refused.push_back({line, fmt::format("{} values under {} names", cells.size(), table.columns.size())});
  }
}

TextTable ReadMarkdown(const Source& source, std::size_t index) {
  const auto& lines = source.lines();
  TextTable table;
  table.line = index + 1;
  for (const std::string& title : SplitPipes(lines[index])) table.columns.push_back(ColumnOf(title));
  std::size_t i = index + 2;
  for (; i < lines.size() && Trim(lines[i]).starts_with('|'); ++i) AddRow(table, i + 1, SplitPipes(lines[i]));
  table.end = i;
  return table;
}

using Spans = std::vector<std::pair<std::size_t, std::size_t>>;  // first byte, and the one behind the last

Spans SpansOf(std::string_view dashes) {
  Spans spans;
  for (std::size_t at = dashes.find('-'); at != std::string_view::npos;) {
    const std::size_t end = std::min(dashes.find_first_not_of('-', at), dashes.size());
    spans.emplace_back(at, end);
    at = dashes.find('-', end);
  }
  return spans;
}

// Cells are where the dashes are, the last one to the end of the line; none when a value crosses a border.
std::optional<std::vector<std::string>> SplitColumns(std::string_view line, const Spans& spans) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto [begin, end] = spans[i];
    if (begin > 0 && begin <= line.size() && line[begin - 1] != ' ') return std::nullopt;
    const bool last = i + 1 == spans.size();
    cells.emplace_back(begin < line.size() ? Trim(line.substr(begin, last ? std::string_view::npos : end - begin))
                                           : "");
  }
  return cells;
}

TextTable ReadColumns(const Source& source, std::size_t index) {
  const auto& lines = source.lines();
  const Spans spans = SpansOf(lines[index + 1]);
  TextTable table;
  table.line = index + 1;
  for (const auto& [begin, end] : spans) {
    const std::string_view header = lines[index];
    table.columns.push_back(ColumnOf(begin < header.size() ? header.substr(begin, end - begin) : ""));
  }
  std::size_t i = index + 2;
  for (; i < lines.size() && !Trim(lines[i]).empty(); ++i) {
    auto cells = SplitColumns(lines[i], spans);
    if (cells) {
      AddRow(table, i + 1, std::move(*cells));
    } else {
      table.refused.push_back({i + 1, "a value that crosses the border of its column"});
    }
  }
  table.end = i;
  return table;
}

// A spreadsheet that saved a point as a comma changed all of a table, so all of it decides.
Result<void> DecideDecimal(const Source& source, TextTable& table) {
  DecimalEvidence evidence;
  const auto values = table.Find({"Metric Value"});
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].name == "CC" || (values && c != *values)) continue;  // "12.1" is a version
    for (const TableRow& row : table.rows) evidence.Add(row.cells[c]);
  }
  if (evidence.point && evidence.comma) {
    return Fail(Code::kImportDamaged, source.At(table.line),
                "some numbers of this table have a decimal point, others a decimal comma", "one of the two throughout");
  }
  table.decimal = evidence.comma ? Decimal::kComma : Decimal::kPoint;
  return {};
}

std::optional<TextTable> TableAt(const Source& source, std::size_t index) {
  const auto& lines = source.lines();
  const std::string_view line = lines[index];
  const std::string_view next = index + 1 < lines.size() ? lines[index + 1] : std::string_view{};
  if (line.find('|') != std::string_view::npos && IsDashes(next, '|')) return ReadMarkdown(source, index);
  if (IsDashes(next, ' ') && SpansOf(next).size() > 2) return ReadColumns(source, index);
  if (line.starts_with("INSERT INTO")) return std::nullopt;  // a statement that lists names
  std::vector<std::string> cells;
  for (const char separator : {',', ';', '\t'}) {
    if (line.find(separator) == std::string_view::npos) continue;
    if (SplitCsv(line, separator, cells) && IsHeader(cells)) return ReadCsv(source, index, separator);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> TextTable::Find(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(columns, name, &TableColumn::name);
    if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  }
  return std::nullopt;
}

bool TextTable::Has(std::initializer_list<std::string_view> names) const {
  return std::ranges::all_of(names, [&](std::string_view name) { return Find({name}).has_value(); });
}

std::string_view TextTable::Text(const TableRow& row, std::initializer_list<std::string_view> names) const {
  const auto column = Find(names);
  return column ? Trim(row.cells[*column]) : std::string_view{};
}

std::optional<double> TextTable::Number(const TableRow& row, std::initializer_list<std::string_view> names) const {
  return ParseNumber(Text(row, names), decimal);
}

std::optional<double> TextTable::Time(const TableRow& row, std::initializer_list<std::string_view> names,
                                      double without) const {
  const auto column = Find(names);
  if (!column) return std::nullopt;
  const std::string& unit = columns[*column].unit;
  const std::optional<double> scale = unit.empty() ? std::optional(without) : TimeUnitNs(unit);
  const auto value = ParseNumber(row.cells[*column], decimal);
  if (!scale || !value) return std::nullopt;
  return *value * *scale;
}

TextTable ReadCsv(const Source& source, std::size_t index, char separator) {
  const auto& lines = source.lines();
  TextTable table;
  table.line = index + 1;
  std::vector<std::string> cells;
  SplitCsv(lines[index], separator, cells);
  for (const std::string& cell : cells) table.columns.push_back(ColumnOf(cell));
  std::size_t i = index + 1;
  while (i < lines.size() && Trim(lines[i]).empty()) ++i;  // rocprofv2 leaves a line empty below the header
  for (; i < lines.size() && !Trim(lines[i]).empty() && !EndsTable(lines[i]); ++i) {
    if (IsChatter(lines[i])) continue;
    const std::size_t first = i;
    bool whole = SplitCsv(lines[i], separator, cells);
    for (std::size_t more = 1; !whole && more < kLinesOfCell && first + more < lines.size(); ++more) {
      const std::string_view last = lines[first + more];
      const std::string_view joined(lines[first].data(),
                                    static_cast<std::size_t>(last.data() + last.size() - lines[first].data()));
      whole = SplitCsv(joined, separator, cells);
      if (whole && cells.size() == table.columns.size()) i = first + more;
    }
    if (!whole || (i == first && !SplitCsv(lines[first], separator, cells))) {
      table.refused.push_back({first + 1, "the line ends inside quotes"});
      continue;
    }
    AddRow(table, first + 1, cells);
  }
  table.end = i;
  return table;
}

Result<std::vector<TextTable>> ReadTables(const Source& source) {
  std::vector<TextTable> tables;
  for (std::size_t i = 0; i < source.lines().size();) {
    std::optional<TextTable> table = TableAt(source, i);
    if (!table) {
      ++i;
      continue;
    }
    BOLTBEAM_TRY(DecideDecimal(source, *table));
    i = std::max(table->end, i + 1);
    tables.push_back(std::move(*table));
  }
  return tables;
}

}  // namespace boltbeam::imports
