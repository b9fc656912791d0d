// Nsight Compute's CSV: one line for each metric ("details" and "--metrics"), or one for each kernel with a line of
// units below the names ("raw").
#include <fmt/format.h>

#include <map>

#include "audit/import/readers.h"
#include "base/printable.h"

namespace boltbeam::imports {
namespace {

bool IsLong(const TextTable& table) { return table.Has({"ID", "Kernel Name", "Metric Name", "Metric Value"}); }
bool IsWide(const TextTable& table) {
  return !table.Find({"Metric Name"}) && table.Has({"ID", "Kernel Name", "Block Size", "Grid Size"});
}

bool IsDuration(std::string_view metric) {
  return metric == "Duration" || metric == "gpu__time_duration.sum" || metric == "gpu__time_duration.avg";
}
bool IsBytes(std::string_view metric) { return metric == "dram__bytes_read.sum" || metric == "dram__bytes_write.sum"; }

// Metrics whose value a person asks for beside the time; as facts "<kernel>: <metric>".
bool IsShown(std::string_view metric) {
  return metric == "DRAM Throughput" || metric == "Achieved Occupancy" || metric == "Registers Per Thread" ||
         metric == "launch__registers_per_thread" || metric.find("throughput.avg.pct") != std::string_view::npos;
}

void TakeMetric(Imported& imported, Row& row, std::string_view id, std::string_view metric, std::string_view unit,
                std::string_view text, Decimal decimal) {
  const auto value = ParseNumber(text, decimal);
  if (!value) {
    if (text == "n/a") {
      imported.facts.push_back({fmt::format("kernel {}: {}", id, metric), "unsupported on this chip", {}});
    }
    return;
  }
  if (IsDuration(metric)) {
    const auto scale = TimeUnitNs(unit);
    if (scale) row.total_ns = *value * *scale;
  } else if (IsBytes(metric)) {
    const auto scale = ByteUnit(unit);
    if (scale) row.bytes = row.bytes.value_or(0) + *value * *scale;
  }
  if (IsShown(metric)) imported.facts.push_back({fmt::format("kernel {}: {} {}", id, metric, unit), "", value});
}

Row RowOf(const TextTable& table, const TableRow& from) {
  Row row;
  row.kind = RowKind::kKernel;
  row.name = table.Text(from, {"Kernel Name"});
  row.group = GroupOf(table.Text(from, {"Device"}), table.Text(from, {"Process ID"}));
  row.launch = fmt::format("{} {}", table.Text(from, {"Grid Size"}), table.Text(from, {"Block Size"}));
  row.line = from.line;
  return row;
}

void ReadLong(Imported& imported, const TextTable& table) {
  std::map<std::string, std::size_t, std::less<>> index;  // by process and number of the launch
  std::size_t rules = 0;
  for (const TableRow& from : table.rows) {
    const std::string key = fmt::format("{} {}", table.Text(from, {"Process ID"}), table.Text(from, {"ID"}));
    const auto [found, added] = index.emplace(key, imported.rows.size());
    if (added) imported.rows.push_back(RowOf(table, from));
    const std::string_view metric = table.Text(from, {"Metric Name"});
    rules += metric.empty() ? 1 : 0;
    TakeMetric(imported, imported.rows[found->second], table.Text(from, {"ID"}), metric,
               table.Text(from, {"Metric Unit"}), table.Text(from, {"Metric Value"}), table.decimal);
  }
  if (rules > 0) imported.notes.push_back(fmt::format("{} rows are rules and advice, not figures.", rules));
}

Result<void> ReadWide(Imported& imported, const Source& source, const TextTable& table) {
  if (table.rows.empty() || !table.Text(table.rows.front(), {"ID"}).empty()) {
    return Fail(Code::kImportDamaged, source.At(table.line + 1), "no line of units below the names",
                "what ncu --page raw --csv prints: without units a time can't be read");
  }
  const TableRow& units = table.rows.front();
  for (std::size_t i = 1; i < table.rows.size(); ++i) {
    Row row = RowOf(table, table.rows[i]);
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      TakeMetric(imported, row, table.Text(table.rows[i], {"ID"}), table.columns[c].name, units.cells[c],
                 table.rows[i].cells[c], table.decimal);
    }
    imported.rows.push_back(std::move(row));
  }
  return {};
}

bool IsLog(const Source& source) { return source.Contains("==PROF==") || source.Contains("==ERROR=="); }

bool Knows(const Content& content) {
  for (const TextTable& table : content.tables) {
    if (IsLong(table) || IsWide(table)) return true;
  }
  return IsLog(content.source);
}

std::unexpected<Error> NoTable(const Source& source) {
  for (std::size_t i = 0; i < source.lines().size(); ++i) {
    const std::string_view line = source.lines()[i];
    if (line.find("ERR_NVGPUCTRPERM") != std::string_view::npos) {
      return Fail(Code::kImportEmpty, source.At(i + 1), "ERR_NVGPUCTRPERM: no kernels were profiled",
                  "the permission to read the chip's counters");
    }
    if (line.starts_with("==ERROR==")) {
      return Fail(Code::kImportEmpty, source.At(i + 1), base::Printable(line, 120), "a table of kernels");
    }
  }
  return Fail(Code::kImportEmpty, source.name(), "no table of kernels: none were profiled", "ncu --csv with kernels");
}

Result<Imported> Read(const Content& content) {
  Imported imported;
  imported.kind = "Nsight Compute (CSV)";
  for (const TextTable& table : content.tables) {
    if (IsLong(table)) ReadLong(imported, table);
    if (IsWide(table)) BOLTBEAM_TRY(ReadWide(imported, content.source, table));
    imported.refused.insert(imported.refused.end(), table.refused.begin(), table.refused.end());
    if (table.decimal == Decimal::kComma) imported.notes.emplace_back("Numbers have a decimal comma in this file.");
  }
  if (imported.rows.empty()) return NoTable(content.source);
  imported.notes.emplace_back(
      "Nsight Compute replays each kernel alone, with clocks and caches of its own: a kernel's time in a run differs.");
  return imported;
}

}  // namespace

const Reader kNcu{"Nsight Compute (csv: details, metrics, raw)", Knows, Read};

}  // namespace boltbeam::imports
