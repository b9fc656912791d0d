#include "roofline/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "roofline/formulas.h"

namespace boltbeam::roofline {
namespace {

using model::Operation;
using model::OpKind;

// Far beyond any context or batch; products of these and a model's sizes stay within 64 bits.
constexpr std::uint64_t kMostPositions = std::uint64_t{1} << 24;
constexpr std::uint64_t kMostColumns = std::uint64_t{1} << 20;

/// The larger of the two floors, and which one it is. Without a peak the memory is the only limit that is known.
struct Floor {
  double ns = 0;
  Limit limit = Limit::kMemory;
};

Floor StreamFloor(const Roof& roof, double bytes, double flops) {
  Floor floor{MemoryFloorNs(bytes, roof.bandwidth_gb_s), Limit::kMemory};
  if (!roof.peak_flop_s) return floor;
  const double compute = ComputeFloorNs(flops, *roof.peak_flop_s);
  return compute > floor.ns ? Floor{compute, Limit::kCompute} : floor;
}

void FinishPart(Part& part, const Roof& roof, std::optional<double> ridge) {
  if (part.streams) {
    const Floor floor = StreamFloor(roof, part.bytes, part.flops);
    part.floor_ns = floor.ns;
    part.limit = floor.limit;
  } else if (roof.cache_bandwidth_gb_s) {
    part.floor_ns = MemoryFloorNs(part.bytes, *roof.cache_bandwidth_gb_s);
    part.limit = Limit::kCache;
  }
  const auto instructions = roof.instructions_per_weight.find(part.format);
  if (part.bits_per_weight > 0 && roof.vector_instructions_s && instructions != roof.instructions_per_weight.end()) {
    const double weights = part.bytes * 8 / part.bits_per_weight;
    part.unpack_floor_ns = UnpackFloorNs(weights, instructions->second, *roof.vector_instructions_s);
  }
  if (part.bits_per_weight > 0 && ridge) part.crossover_batch = CrossoverBatch(part.bits_per_weight, *ridge);
}

class PartList {
 public:
  explicit PartList(const model::CacheFormats& cache) : cache_(cache) {}

  void Add(const Operation& operation) {
    const bool table = operation.kind == OpKind::kMatmul;
    Part& part = Find(operation.role, FormatOf(operation));
    ++part.calls;
    part.streams = operation.Streams();
    part.flops += static_cast<double>(operation.flops);
    part.activation_bytes += static_cast<double>(operation.activation_bytes);
    // Tables and the KV cache are read from memory; what is left touches activations and small vectors.
    part.bytes += static_cast<double>(operation.weight_bytes + operation.kv_bytes);
    if (!operation.Streams()) part.bytes += static_cast<double>(operation.activation_bytes);
    if (table) part.bits_per_weight = operation.weights->format->BitsPerWeight();
  }

  /// The 16-bit vectors into and out of the tables, as a line of their own.
  void AddActivations(double bytes) {
    Part& part = Find("activations", "f16");
    part.bytes = bytes;
    part.streams = true;
  }

  std::vector<Part> Take() { return std::move(parts_); }

 private:
  std::string FormatOf(const Operation& operation) const {
    if (operation.kind == OpKind::kMatmul || operation.kind == OpKind::kEmbed) return operation.weights->format->name;
    // Plain floats go by the name that the lines of activations have.
    const bool is_float = cache_.keys == cache_.values && cache_.keys->layout->encoding;
    if (operation.kind != OpKind::kAttention) return "f16";
    return is_float ? model::CacheFormatName(*cache_.keys) : cache_.Name();
  }

  Part& Find(std::string_view role, std::string_view format) {
    for (Part& part : parts_) {
      if (part.role == role && part.format == format) return part;
    }
    Part& part = parts_.emplace_back();
    part.role = role;
    part.format = format;
    return part;
  }

  const model::CacheFormats& cache_;
  std::vector<Part> parts_;
};

void AddToPass(Pass& pass, const Operation& operation) {
  pass.kv_append_bytes += static_cast<double>(operation.kv_append_bytes);
  if (operation.kind == OpKind::kEmbed) pass.row_bytes += static_cast<double>(operation.weight_bytes);
  if (operation.kind == OpKind::kMatmul) {
    pass.weight_bytes += static_cast<double>(operation.weight_bytes);
    pass.activation_bytes += static_cast<double>(operation.activation_bytes);
    pass.weight_flops += static_cast<double>(operation.flops);
  }
  if (operation.kind == OpKind::kAttention) {
    pass.kv_bytes += static_cast<double>(operation.kv_bytes);
    pass.attention_flops += static_cast<double>(operation.flops);
  }
}

model::GraphOptions GraphOptionsOf(const BoundOptions& options, std::uint64_t depth) {
  model::GraphOptions graph;
  graph.tokens = options.prompt > 0 ? options.prompt : 1;
  graph.sequences = options.batch;
  graph.depth = depth;
  graph.cache = options.cache;
  return graph;
}

Pass ComputePass(const std::vector<Operation>& operations, const Roof& roof, const model::GraphOptions& options) {
  Pass pass;
  pass.depth = options.depth;
  pass.tokens = options.tokens;
  pass.sequences = options.sequences;
  for (const Operation& operation : operations) AddToPass(pass, operation);
  const Floor floor = StreamFloor(roof, pass.bytes(), pass.weight_flops + pass.attention_flops);
  pass.floor_ns = floor.ns;
  pass.limit = floor.limit;
  return pass;
}

Result<void> CheckOptions(const BoundOptions& options) {
  const auto refuse = [](std::string where, std::uint64_t found, std::uint64_t least, std::uint64_t most) {
    return Fail(Code::kBoundOptions, std::move(where), std::to_string(found), fmt::format("{} to {}", least, most));
  };
  if (options.depths.empty()) return Fail(Code::kBoundOptions, "--depth", "no depth", "at least one");
  for (const std::uint64_t depth : options.depths) {
    if (depth > kMostPositions) return refuse("--depth", depth, 0, kMostPositions);
  }
  if (options.prompt > kMostColumns) return refuse("--prompt", options.prompt, 1, kMostColumns);
  const std::uint64_t most_batch = kMostColumns / std::max<std::uint64_t>(1, options.prompt);
  if (options.batch == 0 || options.batch > most_batch) return refuse("--batch", options.batch, 1, most_batch);
  return {};
}

std::string InWords(const chip::Fact& fact) {
  std::string words(ProvenanceName(fact.provenance));
  if (!fact.date.empty()) words += " " + fact.date;
  return words + ", " + fact.name;
}

Result<void> CheckRate(std::string_view flag, std::optional<double> value, double most, std::string_view unit) {
  if (!value || (*value > 0 && *value <= most)) return {};
  return Fail(Code::kBoundOptions, std::string(flag), fmt::format("{}", *value),
              fmt::format("a number above 0, at most {:g} {}", most, unit));
}

}  // namespace

std::string_view LimitName(Limit limit) {
  switch (limit) {
    case Limit::kMemory:
      return "memory";
    case Limit::kCompute:
      return "compute";
    case Limit::kCache:
      return "cache";
    case Limit::kUnknown:
      break;
  }
  return "unknown";
}

Result<Roof> RoofOf(const chip::Chip& chip, std::optional<double> bandwidth_gb_s, std::optional<double> peak_flop_s) {
  // Far beyond any machine, but not so far that a floor rounds to nothing.
  constexpr double kMostGbS = 1e9, kMostFlopS = 1e24;
  BOLTBEAM_TRY(CheckRate("--bandwidth", bandwidth_gb_s, kMostGbS, "GB/s"));
  BOLTBEAM_TRY(CheckRate("--peak", peak_flop_s, kMostFlopS, "FLOP/s"));
  Roof roof;
  const chip::Fact* bandwidth = chip.Bandwidth();
  if (!bandwidth_gb_s && bandwidth == nullptr) {
    const std::optional<double> published = chip.Get("published_bandwidth_gb_s");
    return Fail(Code::kBoundNoBandwidth, chip.name,
                published ? fmt::format("no bandwidth was measured, only {} GB/s published", *published)
                          : "no bandwidth is known",
                published ? fmt::format("a measurement (`boltbeam chip measure` on that machine), or --bandwidth {} to "
                                        "divide by the published figure",
                                        *published)
                          : "a measurement (`boltbeam chip measure`), --bandwidth GB/s, or --chip NAME");
  }
  roof.bandwidth_gb_s = bandwidth_gb_s ? *bandwidth_gb_s : bandwidth->value;
  roof.bandwidth_from = bandwidth_gb_s ? "--bandwidth" : InWords(*bandwidth);
  const chip::Fact* peak = chip.Peak();
  if (peak_flop_s || peak != nullptr) {
    roof.peak_flop_s = peak_flop_s ? *peak_flop_s : peak->value;
    roof.peak_from = peak_flop_s ? "--peak" : InWords(*peak);
  }
  roof.cache_bandwidth_gb_s = chip.Get("cache_bandwidth_gb_s");
  roof.latency_ns = chip.Get("memory_latency_ns");
  roof.vector_instructions_s = chip.Get("vector_instructions_s");
  return roof;
}

Result<Bound> ComputeBound(const model::Model& model, const Roof& roof, const BoundOptions& options) {
  BOLTBEAM_TRY(CheckOptions(options));
  Bound bound;
  bound.roof = roof;
  if (roof.peak_flop_s) bound.ridge_ops_per_byte = Ridge(*roof.peak_flop_s, roof.bandwidth_gb_s);
  if (roof.latency_ns) bound.bytes_in_flight = BytesInFlight(roof.bandwidth_gb_s, *roof.latency_ns);
  bound.bits_per_weight = model::TakeCensus(model).BitsPerWeight();
  if (bound.ridge_ops_per_byte) {
    bound.crossover_batch = CrossoverBatch(bound.bits_per_weight, *bound.ridge_ops_per_byte);
  }
  PartList list(options.cache);
  for (const std::uint64_t depth : options.depths) {
    const model::GraphOptions graph = GraphOptionsOf(options, depth);
    const std::vector<Operation> operations = model::BuildTokenGraph(model, graph);
    bound.depths.push_back(ComputePass(operations, roof, graph));
    if (bound.depths.size() > 1) continue;
    for (const Operation& operation : operations) list.Add(operation);
  }
  bound.pass = bound.depths.front();
  list.AddActivations(bound.pass.activation_bytes);
  bound.parts = list.Take();
  for (Part& part : bound.parts) {
    FinishPart(part, roof, bound.ridge_ops_per_byte);
    if (part.streams) bound.pass.parts_floor_ns += *part.floor_ns;
  }
  return bound;
}

}  // namespace boltbeam::roofline
