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

constexpr std::string_view kAttentionRole = "attention";

Floor StreamFloor(const Roof& roof, double bytes, std::optional<double> compute_ns) {
  const Floor floor{MemoryFloorNs(bytes, roof.bandwidth_gb_s), Limit::kMemory};
  return compute_ns && *compute_ns > floor.ns ? Floor{*compute_ns, Limit::kCompute} : floor;
}

std::optional<double> ComputeNs(const Roof& roof, const std::string& format, double flops) {
  if (flops == 0) return 0;
  const std::optional<double> peak = PeakFor(roof, format);
  return peak ? std::optional(ComputeFloorNs(flops, *peak)) : std::nullopt;
}

const PartInstructions* InstructionsOf(const Roof& roof, std::size_t depth, const Part& part) {
  if (depth >= roof.instructions.size()) return nullptr;
  const std::string format = part.bits_per_weight > 0 ? part.format : "";
  const auto& all = roof.instructions[depth];
  const auto found = std::ranges::find_if(
      all, [&](const PartInstructions& one) { return one.role == part.role && one.format == format; });
  return found == all.end() ? nullptr : &*found;
}

void FinishInstructions(Part& part, const Roof& roof, const PartInstructions& instructions) {
  part.instructions = instructions.count.Total();
  part.is_from_listing = instructions.is_from_listing;
  const double streamed = instructions.stored_bytes > 0 ? instructions.stored_bytes : part.bytes;
  part.ceilings =
      CeilingsOf(roof.threads, part.streams ? streamed : 0, part.streams ? 0 : part.bytes, instructions.count);
  if (!part.ceilings.empty()) part.unpack_floor_ns = part.ceilings.back().unpack_floor_ns;
  if (part.limit != Limit::kCompute && BindsInstructions(part.ceilings)) part.limit = Limit::kInstructions;
}

void FinishPart(Part& part, const Roof& roof) {
  if (part.streams) {
    const std::string key = part.role == kAttentionRole ? AttentionKey(part.format) : part.format;
    const Floor floor = StreamFloor(roof, part.bytes, ComputeNs(roof, key, part.flops));
    part.floor_ns = floor.ns;
    part.limit = floor.limit;
    if (part.flops > 0) {
      const auto peak = roof.peaks.find(key);
      part.peak = peak != roof.peaks.end() ? peak->second : Peak{roof.peak_flop_s, roof.peak_from};
    }
  } else if (roof.cache_bandwidth_gb_s) {
    part.floor_ns = MemoryFloorNs(part.bytes, *roof.cache_bandwidth_gb_s);
    part.limit = Limit::kCache;
  }
  if (const PartInstructions* instructions = InstructionsOf(roof, 0, part)) {
    FinishInstructions(part, roof, *instructions);
  }
  if (part.bits_per_weight > 0 && part.peak.flop_s) {
    part.crossover_batch = CrossoverBatch(part.bits_per_weight, Ridge(*part.peak.flop_s, roof.bandwidth_gb_s));
  }
}

/// Instructions of the whole token at a depth, and what binds it on each number of threads.
void AddInstructions(Pass& pass, const Roof& roof, std::size_t depth) {
  if (depth >= roof.instructions.size() || roof.instructions[depth].empty()) return;
  chip::VectorCounts all, attention;
  double stored = 0;
  for (const PartInstructions& part : roof.instructions[depth]) {
    all += part.count;
    stored += part.stored_bytes;
    if (part.role == kAttentionRole) attention += part.count;
  }
  pass.instructions = all.Total();
  pass.attention_instructions = attention.Total();
  const double streamed = pass.bytes() + (stored > 0 ? stored - pass.weight_bytes : 0);
  pass.ceilings = CeilingsOf(roof.threads, streamed, 0, all);
  pass.attention_ceilings = CeilingsOf(roof.threads, pass.kv_bytes, 0, attention);
  if (pass.limit != Limit::kCompute && BindsInstructions(pass.ceilings)) pass.limit = Limit::kInstructions;
}

/// One peak for all tables, each by its operations; none when one of them is not known.
void MixPeaks(const std::vector<Part>& parts, Roof& roof) {
  if (roof.peaks.empty()) return;
  double flops = 0, ns = 0;
  for (const Part& part : parts) {
    if (part.bits_per_weight == 0) continue;
    const std::optional<double> own = ComputeNs(roof, part.format, part.flops);
    if (!own) return;
    flops += part.flops;
    ns += *own;
    const auto peak = roof.peaks.find(part.format);
    if (peak == roof.peaks.end()) continue;
    const std::string& from = peak->second.from;
    if (roof.peak_from.find(from) == std::string::npos) roof.peak_from += (roof.peak_from.empty() ? "" : "; ") + from;
  }
  if (ns > 0) roof.peak_flop_s = flops / ns * 1e9;
}

/// The name of what an operation reads.
std::string FormatOf(const Operation& operation, const model::CacheFormats& cache) {
  if (operation.kind == OpKind::kMatmul || operation.kind == OpKind::kEmbed) return operation.weights->format->name;
  return operation.kind == OpKind::kAttention ? CacheKey(cache) : "f16";
}

class PartList {
 public:
  explicit PartList(const model::CacheFormats& cache) : cache_(cache) {}

  void Add(const Operation& operation) {
    const bool table = operation.kind == OpKind::kMatmul;
    Part& part = Find(operation.role, FormatOf(operation, cache_));
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
  std::optional<double> compute_ns = 0;
  for (const Operation& operation : operations) {
    AddToPass(pass, operation);
    if (!operation.Streams()) continue;
    const auto flops = static_cast<double>(operation.flops);
    const std::string format = FormatOf(operation, options.cache);
    const bool is_attention = operation.kind == OpKind::kAttention;
    const std::optional<double> own = ComputeNs(roof, is_attention ? AttentionKey(format) : format, flops);
    compute_ns = compute_ns && own ? std::optional(*compute_ns + *own) : std::nullopt;
  }
  const Floor floor = StreamFloor(roof, pass.bytes(), compute_ns);
  pass.floor_ns = floor.ns;
  pass.limit = floor.limit;
  return pass;
}

/// What the plan does beside the token graph's parts.
std::vector<Part> CodeParts(const std::vector<Part>& parts, const Roof& roof) {
  std::vector<Part> more;
  if (roof.instructions.empty()) return more;
  for (const PartInstructions& one : roof.instructions.front()) {
    if (std::ranges::any_of(parts, [&](const Part& part) { return InstructionsOf(roof, 0, part) == &one; })) continue;
    Part& part = more.emplace_back();
    part.role = one.role;
    part.format = one.format;
    FinishInstructions(part, roof, one);
  }
  return more;
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

std::string CacheKey(const model::CacheFormats& cache) {
  // Plain floats go by the name that the lines of activations have.
  const bool is_float = cache.keys == cache.values && cache.keys->layout->encoding;
  return is_float ? model::CacheFormatName(*cache.keys) : cache.Name();
}

std::string AttentionKey(const std::string& cache_key) { return "attention " + cache_key; }

std::optional<double> PeakFor(const Roof& roof, const std::string& format) {
  if (roof.peaks.empty()) return roof.peak_flop_s;
  const auto peak = roof.peaks.find(format);
  return peak == roof.peaks.end() ? std::nullopt : peak->second.flop_s;
}

std::string_view LimitName(Limit limit) {
  switch (limit) {
    case Limit::kMemory:
      return "memory";
    case Limit::kCompute:
      return "compute";
    case Limit::kCache:
      return "cache";
    case Limit::kInstructions:
      return "instructions";
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
  roof.is_stated = bandwidth_gb_s.has_value();
  roof.bandwidth_from = bandwidth_gb_s ? "--bandwidth" : InWords(*bandwidth);
  const chip::Fact* peak = chip.Peak();
  if (peak_flop_s || peak != nullptr) {
    roof.peak_flop_s = peak_flop_s ? *peak_flop_s : peak->value;
    roof.peak_from = peak_flop_s ? "--peak" : InWords(*peak);
  }
  roof.cache_bandwidth_gb_s = chip.Get("cache_bandwidth_gb_s");
  roof.latencies = LatenciesOf(chip);
  return roof;
}

Result<Bound> ComputeBound(const model::Model& model, const Roof& roof, const BoundOptions& options) {
  BOLTBEAM_TRY(CheckOptions(options));
  Bound bound;
  bound.roof = roof;
  bound.in_flight = InFlightAt(roof.bandwidth_gb_s, roof.latencies);
  bound.bits_per_weight = model::TakeCensus(model).BitsPerWeight();
  PartList list(options.cache);
  for (const std::uint64_t depth : options.depths) {
    const model::GraphOptions graph = GraphOptionsOf(options, depth);
    const std::vector<Operation> operations = model::BuildTokenGraph(model, graph);
    bound.depths.push_back(ComputePass(operations, roof, graph));
    AddInstructions(bound.depths.back(), roof, bound.depths.size() - 1);
    if (bound.depths.size() > 1) continue;
    for (const Operation& operation : operations) list.Add(operation);
  }
  bound.pass = bound.depths.front();
  list.AddActivations(bound.pass.activation_bytes);
  bound.parts = list.Take();
  MixPeaks(bound.parts, bound.roof);
  for (Part& part : bound.parts) {
    FinishPart(part, roof);
    if (part.streams) bound.pass.parts_floor_ns += *part.floor_ns;
  }
  bound.code_parts = CodeParts(bound.parts, roof);
  if (bound.roof.peak_flop_s) {
    bound.ridge_ops_per_byte = Ridge(*bound.roof.peak_flop_s, roof.bandwidth_gb_s);
    bound.crossover_batch = CrossoverBatch(bound.bits_per_weight, *bound.ridge_ops_per_byte);
  }
  return bound;
}

}  // namespace boltbeam::roofline
