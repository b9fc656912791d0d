// rocprofv3 --output-format json: dispatches name a kernel's number, and the names stand in a table of symbols.
#include <fmt/format.h>

#include <map>

#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

using Json = nlohmann::json;

const Json* ToolOf(const Source& source) {
  if (source.json().empty()) return nullptr;
  const Json* tool = ObjectAt(source.json().front(), "rocprofiler-sdk-tool");
  if (tool != nullptr && tool->is_array()) return tool->empty() ? nullptr : &tool->front();
  return tool;
}

std::map<double, std::string> Symbols(const Json& tool) {
  std::map<double, std::string> names;
  const Json* symbols = ObjectAt(tool, "kernel_symbols");
  if (symbols == nullptr || !symbols->is_array()) return names;
  for (const Json& symbol : *symbols) {
    const auto id = NumberAt(symbol, "kernel_id");
    const auto name = TextAt(symbol, "formatted_kernel_name");
    if (id) names[*id] = name ? *name : TextAt(symbol, "kernel_name").value_or("");
  }
  return names;
}

void AddRecords(Imported& imported, const Json& tool, const char* list, RowKind kind) {
  const Json* records = ObjectAt(tool, "buffer_records");
  const Json* rows = records == nullptr ? nullptr : ObjectAt(*records, list);
  if (rows == nullptr || !rows->is_array()) return;
  const std::map<double, std::string> names = Symbols(tool);
  std::size_t number = 0;
  for (const Json& record : *rows) {
    ++number;
    const auto start = NumberAt(record, "start_timestamp"), end = NumberAt(record, "end_timestamp");
    if (!start || !end || *start == 0 || *end < *start) {
      imported.refused.push_back({1, fmt::format("{} {}: no valid start or end", list, number)});
      continue;
    }
    Row row;
    row.kind = kind;
    row.line = 1;
    row.start_ns = start;
    row.total_ns = *end - *start;
    row.name = list;
    if (const Json* dispatch = ObjectAt(record, "dispatch_info"); dispatch != nullptr) {
      const auto id = NumberAt(*dispatch, "kernel_id");
      const auto found = id ? names.find(*id) : names.end();
      row.name = found != names.end() ? found->second : fmt::format("kernel {}", id.value_or(0));
    }
    imported.rows.push_back(std::move(row));
  }
}

bool Knows(const Content& content) { return ToolOf(content.source) != nullptr; }

Result<Imported> Read(const Content& content) {
  Imported imported;
  imported.kind = "rocprofv3 (JSON)";
  AddRecords(imported, *ToolOf(content.source), "kernel_dispatch", RowKind::kKernel);
  AddRecords(imported, *ToolOf(content.source), "memory_copy", RowKind::kCopy);
  if (imported.rows.empty()) {
    return Fail(Code::kImportEmpty, content.source.name(), "no kernel dispatch in this file",
                "rocprofv3 --kernel-trace --output-format json");
  }
  return imported;
}

}  // namespace

const Reader kRocprofJson{"rocprofv3 (json)", Knows, Read};

}  // namespace boltbeam::imports
