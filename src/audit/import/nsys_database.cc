// The SQLite export of nsys. Tables are made only when there is something to put into them, and columns come with every
// release: all is read by name.
#include <fmt/format.h>

#include <map>

#include "audit/import/database.h"
#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

constexpr double kGb = 1e9;

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kFills = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";

using Names = std::map<std::string, std::string, std::less<>>;

Result<Names> ReadNames(const Database& database) {
  Names names;
  if (!database.HasTable("StringIds")) return names;
  BOLTBEAM_ASSIGN(const TextTable table, database.Read("StringIds"));
  for (const TableRow& row : table.rows) names.emplace(table.Text(row, {"id"}), table.Text(row, {"value"}));
  return names;
}

std::string NameOf(const Names& names, std::string_view id, std::string fallback) {
  const auto found = names.find(id);
  if (found != names.end()) return found->second;
  return id.empty() ? std::move(fallback) : fmt::format("{} (id {} has no name)", fallback, id);
}

std::string CopyName(std::string_view kind) {
  if (kind == "1") return "copy host to device";
  if (kind == "2") return "copy device to host";
  if (kind == "8") return "copy device to device";
  if (kind == "10") return "copy between devices";
  return fmt::format("copy of kind {}", kind);
}

// A global identifier holds the process in bits 24 to 47, its thread below and the machine above.
std::string ProcessOf(const std::optional<double>& global) {
  if (!global || *global <= 0) return {};
  return fmt::format("{}", (static_cast<std::uint64_t>(*global) >> 24) & 0xFFFFFF);
}

Result<void> AddRows(Imported& imported, const Database& database, const Names& names, const char* name, RowKind kind) {
  if (!database.HasTable(name)) return {};
  BOLTBEAM_ASSIGN(const TextTable table, database.Read(name));
  for (const TableRow& from : table.rows) {
    const auto start = table.Number(from, {"start"}), end = table.Number(from, {"end"});
    if (!start || !end || *end < *start) {
      imported.refused.push_back(
          {from.line, fmt::format("row {} of {}: no end, or one before its start", from.line, name)});
      continue;
    }
    Row row;
    row.kind = kind;
    row.start_ns = start;
    row.total_ns = *end - *start;
    row.line = from.line;
    row.bytes = table.Number(from, {"bytes"});
    const std::string process = ProcessOf(table.Number(from, {"globalPid", "globalTid"}));
    row.group = GroupOf(table.Text(from, {"deviceId"}), process);
    row.launch = table.Text(from, {"gridX"});
    if (kind == RowKind::kKernel) {
      row.name = NameOf(names, table.Text(from, {"demangledName", "shortName", "mangledName"}), "kernel");
    } else if (kind == RowKind::kHostCall) {
      row.name = NameOf(names, table.Text(from, {"nameId"}), "call");
      row.group = GroupOf({}, process);
    } else {
      row.name = std::string_view(name) == kFills ? "fill" : CopyName(table.Text(from, {"copyKind"}));
    }
    imported.rows.push_back(std::move(row));
  }
  return {};
}

Result<void> AddDevice(Imported& imported, const Database& database) {
  if (!database.HasTable("TARGET_INFO_GPU")) return {};
  BOLTBEAM_ASSIGN(const TextTable table, database.Read("TARGET_INFO_GPU"));
  for (const TableRow& row : table.rows) {
    imported.facts.push_back({"device", std::string(table.Text(row, {"name"})), {}});
    imported.facts.push_back({"sm_count", "", table.Number(row, {"smCount"})});
    imported.facts.push_back({"memory_bytes", "", table.Number(row, {"totalMemory"})});
    if (const auto rate = table.Number(row, {"memoryBandwidth"})) {
      imported.facts.push_back({"published_bandwidth_gb_s", "", *rate / kGb});
    }
  }
  return {};
}

Result<void> AddVersion(Imported& imported, const Database& database) {
  if (!database.HasTable("META_DATA_EXPORT")) return {};
  BOLTBEAM_ASSIGN(const TextTable table, database.Read("META_DATA_EXPORT"));
  std::string product, schema;
  for (const TableRow& row : table.rows) {
    const std::string_view name = table.Text(row, {"name"});
    if (name == "EXPORT_PRODUCT_VERSION") product = table.Text(row, {"value"});
    if (name == "EXPORT_SCHEMA_VERSION") schema = table.Text(row, {"value"});
  }
  imported.version = fmt::format("{}, schema {}", product, schema);
  return {};
}

bool Knows(const Content& content) { return Database::IsDatabase(content.source.bytes()); }

Result<Imported> Read(const Content& content) {
  BOLTBEAM_ASSIGN(const Database database, Database::FromBytes(content.source));
  if (!database.HasTable("StringIds") && !database.HasTable(kKernels)) {
    return Fail(Code::kImportUnknown, content.source.name(), "an SQLite file without the tables of nsys",
                "nsys export --type sqlite");
  }
  Imported imported;
  imported.kind = "nsys (SQLite)";
  BOLTBEAM_TRY(AddVersion(imported, database));
  BOLTBEAM_TRY(AddDevice(imported, database));
  BOLTBEAM_ASSIGN(const Names names, ReadNames(database));
  BOLTBEAM_TRY(AddRows(imported, database, names, kKernels, RowKind::kKernel));
  BOLTBEAM_TRY(AddRows(imported, database, names, kCopies, RowKind::kCopy));
  BOLTBEAM_TRY(AddRows(imported, database, names, kFills, RowKind::kCopy));
  BOLTBEAM_TRY(AddRows(imported, database, names, kCalls, RowKind::kHostCall));
  if (!database.HasTable(kKernels)) {
    imported.notes.push_back(fmt::format("no kernel activity in this export (table {} missing)", kKernels));
  }
  return imported;
}

}  // namespace

const Reader kNsysDatabase{"nsys export (SQLite)", Knows, Read};

}  // namespace boltbeam::imports
