// What `nsys stats` prints: traces and summaries, as CSV or in columns, of one report or several behind one another.
#include <fmt/format.h>

#include "audit/import/readers.h"
#include "base/printable.h"

namespace boltbeam::imports {
namespace {

bool IsTrace(const TextTable& table) {
  return table.Has({"Start", "Duration", "Name"}) && table.Find({"CorrId", "GrdX"});
}
bool IsKernelSum(const TextTable& table) { return table.Has({"Total Time", "Instances", "Name"}); }
bool IsApiSum(const TextTable& table) { return table.Has({"Total Time", "Num Calls", "Name"}); }
bool IsCopySum(const TextTable& table) { return table.Has({"Total Time", "Count", "Operation"}); }
bool IsLaunchSum(const TextTable& table) { return table.Has({"Count", "KAvg", "Kernel Name"}); }

bool IsReport(const TextTable& table) {
  return IsTrace(table) || IsKernelSum(table) || IsApiSum(table) || IsCopySum(table) || IsLaunchSum(table);
}

// The tool shortens long names to the column's width.
bool IsCut(std::string_view name) { return name.ends_with("…") || name.ends_with("..."); }

bool IsCopy(std::string_view name) { return name.starts_with("[CUDA mem"); }

void AddSpan(Imported& imported, const TextTable& table, const TableRow& from) {
  Row row;
  row.name = table.Text(from, {"Name"});
  row.kind = IsCopy(row.name) ? RowKind::kCopy : RowKind::kKernel;
  row.group = GroupOf(table.Text(from, {"Device"}), table.Text(from, {"PID"}));
  row.start_ns = table.Time(from, {"Start"});
  row.total_ns = table.Time(from, {"Duration"});
  row.line = from.line;
  row.name_cut = IsCut(row.name);
  if (const auto column = table.Find({"Bytes"})) {
    const auto value = table.Number(from, {"Bytes"});
    const auto unit = ByteUnit(table.columns[*column].unit);
    if (value && unit) row.bytes = *value * *unit;
  }
  if (!row.start_ns || !row.total_ns) {
    imported.refused.push_back({from.line, "no start or no duration"});
    return;
  }
  imported.rows.push_back(std::move(row));
}

struct Columns {
  RowKind kind;
  std::string_view name, calls, total, mean;
};

Columns ColumnsOf(const TextTable& table) {
  if (IsApiSum(table)) return {RowKind::kHostCall, "Name", "Num Calls", "Total Time", ""};
  if (IsCopySum(table)) return {RowKind::kCopy, "Operation", "Count", "Total Time", ""};
  // TAvg also holds what a kernel waited in the queue: only KAvg is the kernel.
  if (IsLaunchSum(table)) return {RowKind::kKernel, "Kernel Name", "Count", "", "KAvg"};
  return {RowKind::kKernel, "Name", "Instances", "Total Time", ""};
}

void AddSum(Imported& imported, const TextTable& table, const TableRow& from) {
  const Columns columns = ColumnsOf(table);
  Row row;
  row.kind = columns.kind;
  row.name = table.Text(from, {columns.name});
  if (columns.kind == RowKind::kKernel && IsCopy(row.name)) row.kind = RowKind::kCopy;
  row.launch = table.Text(from, {"GridXYZ"});
  row.line = from.line;
  row.name_cut = IsCut(row.name);
  const auto calls = table.Number(from, {columns.calls});
  row.total_ns = table.Time(from, {columns.total});
  if (!columns.mean.empty()) {
    const auto mean = table.Time(from, {columns.mean});
    if (mean && calls) row.total_ns = *mean * *calls;
  }
  if (!calls || !row.total_ns) {
    imported.refused.push_back({from.line, "no number of calls or no time"});
    return;
  }
  row.calls = *calls;
  imported.rows.push_back(std::move(row));
}

void AddShare(Imported& imported, const TextTable& table) {
  double share = 0;
  for (const TableRow& row : table.rows) share += table.Number(row, {"Time"}).value_or(0);
  constexpr double kWhole = 99, kAll = 100;
  if (table.Find({"Time"}) && share > 0 && share < kWhole) {
    imported.notes.push_back(
        fmt::format("The rows of the table on line {} are {:.1f} % of the time that it was made "
                    "from: a part of a longer table. Nothing is scaled up.",
                    table.line, std::min(share, kAll)));
  }
}

void AddNotes(Imported& imported, const Content& content) {
  bool summary = false, kernels = false, graphs = false, cut = false;
  for (const TextTable& table : content.tables) summary = summary || (IsReport(table) && !IsTrace(table));
  for (const Row& row : imported.rows) {
    kernels = kernels || row.kind == RowKind::kKernel;
    graphs = graphs || row.name.starts_with("cudaGraphLaunch");
    cut = cut || row.name_cut;
  }
  for (const std::string_view line : content.source.lines()) {
    if (!Trim(line).starts_with("SKIPPED")) continue;
    imported.notes.push_back(fmt::format("the report has no kernel data: \"{}\"", base::Printable(Trim(line), 160)));
    if (graphs) imported.notes.emplace_back("CUDA graphs were launched: profile with --cuda-graph-trace=node.");
  }
  if (kernels && summary) imported.notes.emplace_back("A summary has no start times: gaps and overlap can't be told.");
  if (!kernels && !imported.rows.empty()) {
    imported.notes.emplace_back("No kernel is in this file: host calls are the host's time, not the chip's.");
  }
  if (cut) imported.notes.emplace_back("Names were cut by the tool: different kernels may look alike.");
}

bool Knows(const Content& content) {
  for (const TextTable& table : content.tables) {
    if (IsReport(table)) return true;
  }
  return content.source.Contains("SKIPPED:") && content.source.Contains("Processing [");
}

Result<Imported> Read(const Content& content) {
  Imported imported;
  bool traces = false;
  for (const TextTable& table : content.tables) {
    if (!IsReport(table)) continue;
    traces = traces || IsTrace(table);
    for (const TableRow& row : table.rows)
      IsTrace(table) ? AddSpan(imported, table, row) : AddSum(imported, table, row);
    imported.refused.insert(imported.refused.end(), table.refused.begin(), table.refused.end());
    AddShare(imported, table);
  }
  imported.kind = traces ? "nsys stats (trace)" : "nsys stats (summary)";
  AddNotes(imported, content);
  if (imported.rows.empty()) {
    return Fail(Code::kImportEmpty, content.source.name(),
                imported.notes.empty() ? "no table" : fmt::format("no table; {}", imported.notes.front()),
                "a report with rows: kernels were not recorded");
  }
  return imported;
}

}  // namespace

const Reader kNsysReports{"nsys stats (csv, columns)", Knows, Read};

}  // namespace boltbeam::imports
