// test-backend-ops: single operations, timed alone, the same tensors again and again.
#include <fmt/format.h>

#include "audit/import/database.h"
#include "audit/import/operation.h"
#include "audit/import/readers.h"
#include "base/printable.h"

namespace boltbeam::imports {
namespace {

constexpr double kNsPerUs = 1e3;
constexpr double kKib = 1024, kGib = 1024.0 * 1024.0 * 1024.0, kGb = 1e9;
constexpr double kCountedTooMuch = 2;  // times the bytes that one run moves

struct Timed {
  std::string kind, parameters;
  std::optional<double> us, gib_s, kib;
  std::size_t line = 0;
};

void AddOperation(Imported& imported, const Timed& timed) {
  const auto operation = ParseOperation(timed.kind, timed.parameters);
  if (!operation) {
    imported.refused.push_back(
        {timed.line, fmt::format("an operation that was cut: {}({})", base::Printable(timed.kind),
                                 base::Printable(timed.parameters, 40))});
    return;
  }
  Row row;
  row.kind = RowKind::kOperation;
  row.name = fmt::format("{}({})", timed.kind, timed.parameters);
  row.line = timed.line;
  if (timed.us && *timed.us > 0) row.total_ns = *timed.us * kNsPerUs;
  const auto real = operation->RealBytes(), counted = operation->CountedBytes();
  row.bytes = real;
  if (!row.bytes && timed.kib) row.bytes = *timed.kib * kKib;
  if (timed.gib_s && *timed.gib_s > 0) row.printed_gb_s = *timed.gib_s * kGib / kGb;
  if (real && counted && *counted > kCountedTooMuch * *real && timed.gib_s && *timed.gib_s > 0) {
    row.doubt = fmt::format("{:.0f} GiB/s is impossible: {}", *timed.gib_s, operation->WhyCountedIsWrong());
    row.printed_gb_s.reset();
  }
  imported.rows.push_back(std::move(row));
}

// "  OP(...):   6168576 runs -     0.16 us/run -        8 kB/run -   47.02 GB/s"
std::optional<Timed> ParseConsole(std::string_view line) {
  const std::size_t open = line.find('('), close = line.rfind("):");
  const std::size_t runs = line.find(" runs - ");
  if (open == std::string_view::npos || close == std::string_view::npos || runs == std::string_view::npos ||
      close < open || runs < close) {
    return std::nullopt;
  }
  Timed timed;
  timed.kind = Trim(line.substr(0, open));
  timed.parameters = line.substr(open + 1, close - open - 1);
  const auto before = [&](std::string_view unit) -> std::optional<double> {
    const std::size_t at = line.find(unit, runs);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view head = Trim(line.substr(0, at));
    return ParseNumber(head.substr(head.find_last_of(" -") + 1));
  };
  timed.us = before("us/run");
  timed.kib = before("kB/run");
  timed.gib_s = before("GB/s");
  return timed;
}

Result<Imported> Finish(const Source& source, Imported imported) {
  if (imported.rows.empty()) {
    return Fail(Code::kImportEmpty, source.name(), "test-backend-ops printed no timed operation",
                "perf mode, with -b CPU on a CPU");
  }
  imported.notes.emplace_back(
      "Each operation is timed alone, over and over on the same tensors: what fits in a cache looks faster than in a "
      "token.");
  imported.notes.emplace_back("What is printed as GB/s are GiB/s; they are converted. One mean, no spread.");
  return imported;
}

Result<Imported> ReadConsole(const Source& source) {
  Imported imported;
  imported.kind = "test-backend-ops (console)";
  for (std::size_t i = 0; i < source.lines().size(); ++i) {
    const std::string_view line = source.lines()[i];
    if (line.find(" runs - ") == std::string_view::npos) continue;
    auto timed = ParseConsole(line);
    if (timed) {
      timed->line = i + 1;
      AddOperation(imported, *timed);
    } else {
      imported.refused.push_back({i + 1, "a line of an operation that was cut"});
    }
  }
  return Finish(source, std::move(imported));
}

bool IsSql(const Source& source) { return source.Contains("CREATE TABLE") && source.Contains("test_backend_ops"); }

Result<Imported> ReadSql(const Source& source) {
  BOLTBEAM_ASSIGN(const Database database, Database::FromScript(source));
  BOLTBEAM_ASSIGN(const TextTable table, database.Read("test_backend_ops"));
  Imported imported;
  imported.kind = "test-backend-ops (SQL)";
  for (const TableRow& row : table.rows) {
    if (table.Text(row, {"test_mode"}) != "perf" || table.Text(row, {"supported"}) == "0") continue;
    Timed timed;
    timed.kind = table.Text(row, {"op_name"});
    timed.parameters = table.Text(row, {"op_params"});
    timed.us = table.Number(row, {"time_us"});
    timed.kib = table.Number(row, {"memory_kb"});
    timed.gib_s = table.Number(row, {"bandwidth_gb_s"});
    timed.line = row.line;
    AddOperation(imported, timed);
  }
  return Finish(source, std::move(imported));
}

bool IsCsv(const TextTable& table) { return table.Has({"op_name", "op_params", "test_mode"}); }

// The CSV form has no column with a time.
Result<Imported> ReadCsvForm(const TextTable& table) {
  Imported imported;
  imported.kind = "test-backend-ops (CSV)";
  for (const TableRow& row : table.rows) {
    AddOperation(imported, {std::string(table.Text(row, {"op_name"})),
                            std::string(table.Text(row, {"op_params"})),
                            table.Number(row, {"time_us"}),
                            {},
                            {},
                            row.line});
  }
  imported.refused.insert(imported.refused.end(), table.refused.begin(), table.refused.end());
  if (!table.Find({"time_us"})) {
    imported.notes.emplace_back("This CSV holds no times: imported as operations only. Take --output sql or console.");
  }
  return imported;
}

bool Knows(const Content& content) {
  for (const TextTable& table : content.tables) {
    if (IsCsv(table)) return true;
  }
  return IsSql(content.source) || content.source.Contains(" us/run - ") ||
         (content.source.Contains("Testing ") && content.source.Contains("Backend 1/"));
}

Result<Imported> Read(const Content& content) {
  for (const TextTable& table : content.tables) {
    if (IsCsv(table)) return ReadCsvForm(table);
  }
  return IsSql(content.source) ? ReadSql(content.source) : ReadConsole(content.source);
}

}  // namespace

const Reader kBackendOps{"test-backend-ops (console, sql, csv)", Knows, Read};

}  // namespace boltbeam::imports
