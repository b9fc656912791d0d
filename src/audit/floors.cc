#include "audit/floors.h"

#include <algorithm>
#include <string>

namespace boltbeam::audit {
namespace {

std::string FormatOf(const model::Operation& operation, const model::CacheFormats& cache) {
  if (operation.weights != nullptr) return operation.weights->format->name;
  return operation.kind == model::OpKind::kAttention ? cache.Name() : "F32";
}

}  // namespace

std::vector<PartFloor> PartFloors(const model::Model& model, std::uint64_t depth, const model::CacheFormats& cache) {
  model::GraphOptions options;
  options.depth = depth;
  options.cache = cache;
  std::vector<PartFloor> floors;
  for (const model::Operation& operation : model::BuildTokenGraph(model, options)) {
    const std::string format = FormatOf(operation, cache);
    auto floor = std::ranges::find_if(
        floors, [&](const PartFloor& f) { return f.role == operation.role && f.format == format; });
    if (floor == floors.end()) floor = floors.insert(floors.end(), {operation.role, format, 0, 0, 0, 0});
    ++floor->calls;
    // A gathered row is unpacked: a multiply-add a weight.
    floor->flops += operation.kind == model::OpKind::kEmbed ? 2 * operation.cols * operation.columns : operation.flops;
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
