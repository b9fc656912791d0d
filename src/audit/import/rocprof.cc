// rocprof v1, rocprofv2 and rocprofv3: CSV of traces and summaries, and v2's text of key(value) pairs.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

constexpr double kLongestKernelNs = 1e9;  // a kernel of a token that runs longer is a broken time stamp

bool HasTimes(const TextTable& table) {
  return table.Find({"BeginNs", "Start_Timestamp"}) && table.Find({"EndNs", "End_Timestamp"});
}
bool IsTrace(const TextTable& table) { return HasTimes(table) && table.Find({"KernelName", "Kernel_Name"}); }
bool IsCopies(const TextTable& table) { return HasTimes(table) && table.Has({"Kind", "Direction"}); }
bool IsCalls(const TextTable& table) { return HasTimes(table) && table.Has({"Domain", "Function"}); }
bool IsStats(const TextTable& table) { return table.Has({"Name", "Calls", "TotalDurationNs"}); }
bool IsOurs(const TextTable& table) { return IsTrace(table) || IsCopies(table) || IsCalls(table) || IsStats(table); }

// A summary of host calls has the same columns as one of kernels: functions of the runtime are told by their names.
bool IsRuntimeFunction(std::string_view name) {
  const std::size_t first = std::min(name.find_first_not_of('_'), name.size());
  const std::string_view bare = name.substr(first);
  const bool known = bare.starts_with("hip") || bare.starts_with("hsa_") || bare.starts_with("roctx");
  return known && std::ranges::all_of(bare, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// Adds a row with a start and an end, or says why it can't.
void AddSpan(Imported& imported, Row row, std::optional<double> start, std::optional<double> end) {
  if (!end || *end == 0) {
    imported.refused.push_back({row.line, "no end: the run was aborted"});
  } else if (!start || *start == 0) {
    imported.refused.push_back({row.line, "no valid start (0): the time can't be told"});
  } else if (*end < *start) {
    imported.refused.push_back({row.line, "an end before the start"});
  } else {
    row.start_ns = start;
    row.total_ns = *end - *start;
    if (row.kind == RowKind::kKernel && *row.total_ns > kLongestKernelNs) {
      row.doubt = fmt::format("{:.3f} s for one dispatch is not believable: a broken time stamp", *row.total_ns / 1e9);
    }
    imported.rows.push_back(std::move(row));
  }
}

void AddTraceRow(Imported& imported, const TextTable& table, const TableRow& from) {
  Row row;
  row.line = from.line;
  row.name = table.Text(from, {"KernelName", "Kernel_Name"});
  const std::string_view process = table.Text(from, {"pid", "Process_Id", "PID"});
  row.group = GroupOf(table.Text(from, {"Agent_Id", "gpu-id", "GPU_ID"}), process);
  row.launch = fmt::format("{} {}", table.Text(from, {"Grid_Size_X", "grd", "GRD"}),
                           table.Text(from, {"Workgroup_Size_X", "wgr", "WGR"}));
  if (row.launch == " ") row.launch.clear();
  if (IsCopies(table)) {
    row.kind = RowKind::kCopy;
    row.name = table.Text(from, {"Direction"});
    row.group = GroupOf({}, process);
  } else if (IsCalls(table)) {
    row.kind = RowKind::kHostCall;
    row.name = table.Text(from, {"Function"});
    row.group = GroupOf({}, process);
  }
  const auto fetched = table.Number(from, {"FetchSize"});  // KB
  if (fetched) row.bytes = *fetched * 1024;
  AddSpan(imported, std::move(row), table.Number(from, {"BeginNs", "Start_Timestamp"}),
          table.Number(from, {"EndNs", "End_Timestamp"}));
}

void ReadStats(Imported& imported, const TextTable& table) {
  const bool calls = std::ranges::all_of(
      table.rows, [&](const TableRow& row) { return IsRuntimeFunction(table.Text(row, {"Name"})); });
  double share = 0;
  for (const TableRow& from : table.rows) {
    Row row;
    row.kind = calls ? RowKind::kHostCall : RowKind::kKernel;
    row.name = table.Text(from, {"Name"});
    row.line = from.line;
    const auto number = table.Number(from, {"Calls"});
    row.total_ns = table.Number(from, {"TotalDurationNs"});
    if (!number || !row.total_ns) {
      imported.refused.push_back({from.line, "no number of calls or no time"});
      continue;
    }
    row.calls = *number;
    share += table.Number(from, {"Percentage"}).value_or(0);
    imported.rows.push_back(std::move(row));
  }
  imported.notes.emplace_back(calls ? "Host calls: the host's time, not kernels."
                                    : "A summary has no start times: gaps and overlap can't be told.");
  constexpr double kWhole = 99;
  if (share > 0 && share < kWhole) {
    imported.notes.push_back(fmt::format("The rows are {:.2f} % of the time: the head of a longer table.", share));
  }
}

// "Dispatch_ID(1), GPU_ID(4), ..., Kernel_Name("x"), Begin_Timestamp(..), End_Timestamp(..)"
std::string_view Field(std::string_view line, std::string_view key) {
  const std::string open = std::string(key) + "(";
  const std::size_t at = line.find(open);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + open.size());
  if (line.starts_with('"'))
    return line.substr(1, line.find('"', 1) == std::string_view::npos ? 0 : line.find('"', 1) - 1);
  return line.substr(0, line.find(')'));
}

bool IsPairs(std::string_view line) {
  return line.find("End_Timestamp(") != std::string_view::npos &&
         (line.starts_with("Dispatch_ID(") || line.starts_with("Domain("));
}

void ReadPairs(Imported& imported, std::string_view line, std::size_t number) {
  Row row;
  row.line = number;
  row.kind = line.starts_with("Domain(") ? RowKind::kHostCall : RowKind::kKernel;
  row.name = Field(line, row.kind == RowKind::kHostCall ? "Function" : "Kernel_Name");
  row.group = GroupOf(Field(line, "GPU_ID"), {});
  const std::string_view start = line.find("Begin_Timestamp(") == std::string_view::npos
                                     ? Field(line, "Start_Timestamp")
                                     : Field(line, "Begin_Timestamp");
  AddSpan(imported, std::move(row), ParseNumber(start), ParseNumber(Field(line, "End_Timestamp")));
}

bool HasPairs(const Source& source) { return std::ranges::any_of(source.lines(), IsPairs); }

bool Knows(const Content& content) { return std::ranges::any_of(content.tables, IsOurs) || HasPairs(content.source); }

std::string KindOf(const TextTable& table) {
  if (IsStats(table)) return "rocprof (summary)";
  if (table.Find({"BeginNs"})) return "rocprof v1 (trace)";
  return table.Find({"Kind"}) ? "rocprofv3 (trace)" : "rocprofv2 (trace)";
}

Result<Imported> Read(const Content& content) {
  Imported imported;
  for (const TextTable& table : content.tables) {
    if (!IsOurs(table)) continue;
    imported.kind = KindOf(table);
    if (IsStats(table)) {
      ReadStats(imported, table);
    } else {
      for (const TableRow& row : table.rows) AddTraceRow(imported, table, row);
    }
    imported.refused.insert(imported.refused.end(), table.refused.begin(), table.refused.end());
  }
  if (imported.kind.empty()) {
    imported.kind = "rocprofv2 (text)";
    for (std::size_t i = 0; i < content.source.lines().size(); ++i) {
      if (IsPairs(content.source.lines()[i])) ReadPairs(imported, content.source.lines()[i], i + 1);
    }
  }
  std::ranges::sort(imported.refused, {}, &Refused::line);
  if (imported.rows.empty()) {
    const bool one = !imported.refused.empty();
    return Fail(Code::kImportEmpty, one ? content.source.At(imported.refused.front().line) : content.source.name(),
                one ? imported.refused.front().reason : "a table without rows", "rows with a start and an end");
  }
  return imported;
}

}  // namespace

const Reader kRocprofTables{"rocprof v1, v2, v3 (csv, text)", Knows, Read};

}  // namespace boltbeam::imports
