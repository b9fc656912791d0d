#include "audit/floors.h"

#include <algorithm>
#include <string>

namespace boltbeam::audit {
namespace {

std::string FormatOf(const model::Operation& operation, std::uint32_t kv_element_bytes) {
  if (operation.weights != nullptr) return operation.weights->format->name;
  return operation.kind == model::OpKind::kAttention && kv_element_bytes == 2 ? "F16" : "F32";
}

}  // namespace

std::vector<PartFloor> PartFloors(const model::Model& model, std::uint64_t depth, std::uint32_t kv_element_bytes) {
  model::GraphOptions options;
  options.depth = depth;
  options.kv_element_bytes = kv_element_bytes;
  std::vector<PartFloor> floors;
  for (const model::Operation& operation : model::BuildTokenGraph(model, options)) {
    const std::string format = FormatOf(operation, kv_element_bytes);
    auto floor = std::ranges::find_if(
        floors, [&](const PartFloor& f) { return f.role == operation.role && f.format == format; });
    if (floor == floors.end()) floor = floors.insert(floors.end(), {operation.role, format, 0, 0, 0});
    ++floor->calls;
    const std::uint64_t tables = operation.weight_bytes + operation.kv_bytes;
    floor->memory_bytes += operation.Streams() ? tables : 0;
    floor->activation_bytes += operation.activation_bytes + (operation.Streams() ? 0 : tables);
  }
  return floors;
}

std::uint64_t MemoryBytes(std::span<const PartFloor> floors) {
  std::uint64_t bytes = 0;
  for (const PartFloor& floor : floors) bytes += floor.memory_bytes;
  return bytes;
}

}  // namespace boltbeam::audit
