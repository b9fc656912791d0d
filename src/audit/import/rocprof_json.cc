// rocprofv3 --output-format json: dispatches name a kernel's number, and the names stand in a table of symbols.
#include <fmt/format.h>

#include <map>

#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

using Json = nlohmann::json;

// One for each process.
std::vector<const Json*> ToolsOf(const Source& source) {
  std::vector<const Json*> tools;
  if (source.json().empty()) return tools;
  const Json* tool = ObjectAt(source.json().front(), "rocprofiler-sdk-tool");
  if (tool != nullptr && tool->is_array()) {
    for (const Json& one : *tool) tools.push_back(&one);
  } else if (tool != nullptr) {
    tools.push_back(tool);
  }
  return tools;
}

std::string Numbered(const std::optional<double>& number) { return number ? fmt::format("{:.0f}", *number) : ""; }

std::string ProcessOf(const Json& tool) {
  const Json* metadata = ObjectAt(tool, "metadata");
  return metadata == nullptr ? std::string() : Numbered(NumberAt(*metadata, "pid"));
}

std::string AgentOf(const Json& dispatch) {
  const Json* agent = ObjectAt(dispatch, "agent_id");
  if (agent == nullptr) return {};
  return agent->is_object() ? Numbered(NumberAt(*agent, "handle")) : Numbered(NumberAt(dispatch, "agent_id"));
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
    row.group = GroupOf({}, ProcessOf(tool));
    if (const Json* dispatch = ObjectAt(record, "dispatch_info"); dispatch != nullptr) {
      const auto id = NumberAt(*dispatch, "kernel_id");
      row.group = GroupOf(AgentOf(*dispatch), ProcessOf(tool));
      const auto found = id ? names.find(*id) : names.end();
      row.name = found != names.end() ? found->second : fmt::format("kernel {}", id.value_or(0));
    }
    imported.rows.push_back(std::move(row));
  }
}

bool Knows(const Content& content) { return !ToolsOf(content.source).empty(); }

Result<Imported> Read(const Content& content) {
  Imported imported;
  imported.kind = "rocprofv3 (JSON)";
  for (const Json* tool : ToolsOf(content.source)) {
    AddRecords(imported, *tool, "kernel_dispatch", RowKind::kKernel);
    AddRecords(imported, *tool, "memory_copy", RowKind::kCopy);
  }
  if (imported.rows.empty()) {
    return Fail(Code::kImportEmpty, content.source.name(), "no kernel dispatch in this file",
                "rocprofv3 --kernel-trace --output-format json");
  }
  return imported;
}

}  // namespace

const Reader kRocprofJson{"rocprofv3 (json)", Knows, Read};

}  // namespace boltbeam::imports
