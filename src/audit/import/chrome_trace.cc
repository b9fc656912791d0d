// Chrome's trace form, which Perfetto and PyTorch's profiler write too: complete events (X), or pairs of begin and end.
// ts and dur are microseconds whatever displayTimeUnit says, and the closing bracket of the array may be missing.
#include <fmt/format.h>

#include <map>

#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

using Json = nlohmann::json;

constexpr double kNsPerUs = 1e3;

struct Trace {
  Json owned;  // of an array that was closed here
  const Json* events = nullptr;
  const Json* document = nullptr;
};

bool IsEvent(const Json& value) { return HasAll(value, {"ph"}); }

// Chrome allows an array without its end: the last comma goes, and the bracket comes.
std::optional<Json> CloseArray(const Source& source) {
  std::string_view text = Trim(source.text());
  if (!text.starts_with('[') || !source.json_cut()) return std::nullopt;
  if (text.ends_with(',')) text.remove_suffix(1);
  Json closed = Json::parse(std::string(text) + "]", nullptr, false);
  if (!closed.is_array() || closed.empty() || !IsEvent(closed.front())) return std::nullopt;
  return closed;
}

Trace Find(const Source& source) {
  Trace trace;
  if (source.json().empty()) {
    if (auto closed = CloseArray(source)) trace.owned = std::move(*closed);
    return trace;
  }
  const Json& document = source.json().front();
  trace.document = &document;
  if (document.is_array() && !document.empty() && IsEvent(document.front())) trace.events = &document;
  if (const Json* events = ObjectAt(document, "traceEvents"); events != nullptr && events->is_array()) {
    trace.events = events;
  }
  return trace;
}

std::optional<RowKind> KindOf(const std::string& category) {
  if (category == "kernel") return RowKind::kKernel;
  if (category == "gpu_memcpy" || category == "gpu_memset") return RowKind::kCopy;
  if (category == "cuda_runtime" || category == "cuda_driver") return RowKind::kHostCall;
  return std::nullopt;  // annotations, operators of the framework, flows
}

Row RowOf(const Json& event, RowKind kind) {
  Row row;
  row.kind = kind;
  row.name = TextAt(event, "name").value_or("");
  row.line = 1;
  const auto number = [](const std::optional<double>& value) { return value ? fmt::format("{:.0f}", *value) : ""; };
  std::string device;
  if (const Json* arguments = ObjectAt(event, "args"); arguments != nullptr) {
    row.bytes = NumberAt(*arguments, "bytes");
    device = number(NumberAt(*arguments, "device"));
    if (const Json* grid = ObjectAt(*arguments, "grid"); grid != nullptr) row.launch = grid->dump();
  }
  // Some tools put the device where others have the process.
  const std::string process = number(NumberAt(event, "pid"));
  row.group = GroupOf(device, device == process ? "" : process);
  return row;
}

using Lane = std::pair<double, double>;  // process and thread

Lane LaneOf(const Json& event) { return {NumberAt(event, "pid").value_or(0), NumberAt(event, "tid").value_or(0)}; }

// Events that began and wait for their end, by lane.
using Open = std::map<Lane, std::vector<std::pair<const Json*, std::optional<RowKind>>>>;

void TakeEvent(Imported& imported, const Json& event, Open& open) {
  const std::string phase = TextAt(event, "ph").value_or("");
  const auto kind = KindOf(TextAt(event, "cat").value_or(""));
  const auto at = NumberAt(event, "ts");
  if (phase == "B") {
    open[LaneOf(event)].emplace_back(&event, kind);
  } else if (phase == "E") {
    auto& lane = open[LaneOf(event)];
    if (lane.empty()) return;
    const auto [begun, begun_kind] = lane.back();
    lane.pop_back();
    const auto start = NumberAt(*begun, "ts");
    if (!begun_kind || !start || !at || *at < *start) return;
    Row row = RowOf(*begun, *begun_kind);
    row.start_ns = *start * kNsPerUs;
    row.total_ns = (*at - *start) * kNsPerUs;
    imported.rows.push_back(std::move(row));
  } else if (phase == "X" && kind) {
    const auto duration = NumberAt(event, "dur");
    if (!at || !duration || *duration < 0) {
      imported.refused.push_back({1, fmt::format("{}: no start or no duration", TextAt(event, "name").value_or("?"))});
      return;
    }
    Row row = RowOf(event, *kind);
    row.start_ns = *at * kNsPerUs;
    row.total_ns = *duration * kNsPerUs;
    imported.rows.push_back(std::move(row));
  }
}

void AddDevices(Imported& imported, const Json* document) {
  const Json* devices = document == nullptr ? nullptr : ObjectAt(*document, "deviceProperties");
  if (devices == nullptr || !devices->is_array()) return;
  for (const Json& device : *devices) {
    imported.facts.push_back({"device", TextAt(device, "name").value_or(""), {}});
    imported.facts.push_back({"memory_bytes", "", NumberAt(device, "totalGlobalMem")});
  }
}

bool Knows(const Content& content) {
  const Source& source = content.source;
  if (Find(source).events != nullptr || CloseArray(source)) return true;
  return source.json().empty() && source.json_cut() && source.Contains("\"traceEvents\"");
}

Result<Imported> Read(const Content& content) {
  const Source& source = content.source;
  Trace trace = Find(source);
  if (trace.events == nullptr && trace.owned.is_array()) trace.events = &trace.owned;
  if (trace.events == nullptr) {
    return Fail(Code::kImportDamaged, source.name(), source.json_fault(),
                "a whole trace: it was cut while it was written");
  }
  Imported imported;
  imported.kind = "Chrome trace (JSON)";
  AddDevices(imported, trace.document);
  Open open;
  for (const Json& event : *trace.events) TakeEvent(imported, event, open);
  for (const auto& [lane, events] : open) {
    for (const auto& [event, kind] : events) {
      if (kind)
        imported.refused.push_back(
            {1, fmt::format("{}: begins and has no end", TextAt(*event, "name").value_or("?").substr(0, 60))});
    }
  }
  if (imported.rows.empty()) {
    return Fail(Code::kImportEmpty, source.name(), "a trace without kernels", "events of the category \"kernel\"");
  }
  return imported;
}

}  // namespace

const Reader kChromeTrace{"Chrome and Perfetto traces (JSON)", Knows, Read};

}  // namespace boltbeam::imports
