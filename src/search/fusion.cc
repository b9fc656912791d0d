#include "search/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "model/token_graph.h"
#include "search/candidate.h"
#include "search/gpu_machine.h"

namespace boltbeam::search {
namespace {

constexpr double kVectorBytes = 4;         // of a value between two steps
constexpr double kGuessedLaunchNs = 1300;  // between two kernels of a recorded graph, where nothing is declared
constexpr double kGuessedBarrierNs = 500;
constexpr double kLoadBytes = 16;    // that a lane has under way
constexpr double kPieceLanes = 128;  // of a workgroup that works on a piece
constexpr double kRowsOfPiece = 4;   // of a product: a workgroup has some rows

/// The product with a table of the layer.
FusionNode Product(const model::Model& model, model::Role role, const char* name, std::vector<FusionEdge> reads) {
  FusionNode node{name, 1, 0, 0, std::move(reads)};
  if (const model::Tensor* table = model.Find(role, 0)) {
    node.pieces = std::ceil(static_cast<double>(table->rows()) / kRowsOfPiece);
    node.streamed_bytes = static_cast<double>(table->info->bytes);
    node.output_bytes = static_cast<double>(table->rows()) * kVectorBytes;
  }
  return node;
}

/// The group's steps that others outside read, or that nothing reads.
std::size_t Outputs(const std::vector<FusionNode>& nodes, const std::vector<std::size_t>& group) {
  std::size_t outputs = 0;
  for (const std::size_t member : group) {
    bool is_read = false, is_read_outside = false;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const bool reads = Contains(nodes[i].reads, member, &FusionEdge::from);
      is_read |= reads;
      is_read_outside |= reads && !Contains(group, i);
    }
    outputs += is_read_outside || !is_read ? 1 : 0;
  }
  return outputs;
}

/// What merging a group comes to, before it is weighed.
struct Merged {
  double pieces = 0;    // of the merged kernel
  double streamed = 0;  // bytes
  double between = 0;   // bytes written and read again
  double apart_ns = 0;  // the steps by themselves, boundaries left out
  double again_ns = 0;  // small steps that every piece computes for itself
  double widest = 0;    // pieces of the widest streaming step
  std::string impossible;
};

Merged Merge(const std::vector<FusionNode>& nodes, const std::vector<std::size_t>& group,
             const FusionMachine& machine) {
  Merged merged;
  const FusionNode& last = nodes[group.back()];
  merged.pieces = last.pieces;
  for (const std::size_t member : group) {
    const FusionNode& node = nodes[member];
    merged.streamed += node.streamed_bytes;
    merged.apart_ns += node.streamed_bytes / machine.Drawn(node.pieces);
    if (node.streamed_bytes > 0) merged.widest = std::max(merged.widest, node.pieces);
    for (const FusionEdge& edge : node.reads) {
      if (!Contains(group, edge.from)) continue;
      const FusionNode& from = nodes[edge.from];
      merged.between += 2 * from.output_bytes;
      if (edge.need == Need::kAll) {
        if (from.streamed_bytes > 0) {
          merged.impossible = fmt::format("{} needs all of {}: a barrier across the chip", node.name, from.name);
        }
        // As many pieces as are at work do it side by side, and then the next ones.
        const double at_once = machine.pieces_at_once > 0 ? std::min(node.pieces, machine.pieces_at_once) : node.pieces;
        const double rounds = machine.pieces_at_once > 0 ? std::ceil(node.pieces / at_once) : 1;
        merged.again_ns += rounds * (machine.latency_ns + 2 * from.output_bytes * at_once / machine.bandwidth_gb_s / 8);
      }
      // A piece that sums several up is where they all end: only as many stay independent.
      if (edge.need == Need::kPieces) merged.pieces = std::min(merged.pieces, node.pieces);
    }
  }
  return merged;
}

FusionIdea Weigh(const std::vector<FusionNode>& nodes, const std::vector<std::size_t>& group,
                 const FusionMachine& machine, double layers, double token_ns, double smallest_claim) {
  const Merged merged = Merge(nodes, group, machine);
  FusionIdea idea;
  for (const std::size_t member : group) idea.steps.push_back(nodes[member].name);
  const double boundaries = static_cast<double>(group.size() - 1) * machine.boundary_ns;
  idea.bound_ns = layers * (boundaries + merged.between / machine.bandwidth_gb_s);
  idea.pieces_before = merged.widest;
  idea.pieces_after = merged.pieces;
  idea.gb_s_before = machine.Drawn(std::max(1.0, merged.widest));
  idea.gb_s_after = machine.Drawn(merged.pieces);
  const double merged_ns = merged.streamed / idea.gb_s_after + merged.again_ns;
  idea.predicted_ns = idea.bound_ns - layers * (merged_ns - merged.apart_ns);
  if (!merged.impossible.empty()) {
    idea.closed = merged.impossible;
  } else if (idea.bound_ns < smallest_claim * token_ns) {
    idea.closed = fmt::format("at most {:.2f} % of the token, the smallest claim is {:.0f} %",
                              100 * idea.bound_ns / token_ns, 100 * smallest_claim);
  } else if (idea.predicted_ns < 0 && idea.gb_s_after < 0.99 * idea.gb_s_before) {
    idea.closed = fmt::format("less concurrency: {:.0f} pieces instead of {:.0f} draw {:.0f} GB/s instead of {:.0f}",
                              idea.pieces_after, idea.pieces_before, idea.gb_s_after, idea.gb_s_before);
  } else if (idea.predicted_ns < smallest_claim * token_ns) {
    idea.closed =
        fmt::format("what every piece does again leaves {:.2f} % of the token", 100 * idea.predicted_ns / token_ns);
  }
  return idea;
}

}  // namespace

std::vector<FusionNode> LayerGraph(const model::Model& model, std::uint64_t depth, std::uint64_t splits) {
  using model::Role;
  const model::HyperParameters& hyper = model.hyper();
  const double hidden = hyper.hidden * kVectorBytes;
  const double heads = hyper.heads, kv_heads = hyper.kv_heads;
  const double head_bytes = hyper.head_dim * kVectorBytes;
  const double parts = static_cast<double>(std::max<std::uint64_t>(1, splits));
  const double kv_bytes = 2.0 * 2 * kv_heads * hyper.head_dim * static_cast<double>(depth);
  std::vector<FusionNode> nodes;
  const auto add_node = [&](FusionNode node) {
    nodes.push_back(std::move(node));
    return nodes.size() - 1;
  };
  const auto norm = add_node({"attn_norm", 1, 0, hidden, {}});
  const auto q = add_node(Product(model, Role::kAttnQ, "q", {{norm, Need::kAll}}));
  const auto k = add_node(Product(model, Role::kAttnK, "k", {{norm, Need::kAll}}));
  const auto v = add_node(Product(model, Role::kAttnV, "v", {{norm, Need::kAll}}));
  const auto rope = add_node(
      {"rope", heads + kv_heads, 0, (heads + kv_heads) * head_bytes, {{q, Need::kPieces}, {k, Need::kPieces}}});
  const auto attention = add_node({"attention",
                                   kv_heads * parts,
                                   kv_bytes,
                                   heads * parts * (head_bytes + 8),
                                   {{rope, Need::kPieces}, {v, Need::kPieces}}});
  const auto combine = add_node({"combine", heads, 0, heads * head_bytes, {{attention, Need::kPieces}}});
  const auto out = add_node(Product(model, Role::kAttnOutput, "attn_output", {{combine, Need::kAll}}));
  const auto add = add_node({"attn_residual", hyper.hidden / kRowsOfPiece, 0, hidden, {{out, Need::kPiece}}});
  const auto ffn_norm = add_node({"ffn_norm", 1, 0, hidden, {{add, Need::kAll}}});
  const auto gate = add_node(Product(model, Role::kFfnGate, "gate", {{ffn_norm, Need::kAll}}));
  const auto up = add_node(Product(model, Role::kFfnUp, "up", {{ffn_norm, Need::kAll}}));
  const auto mul = add_node(
      {"gated", hyper.ffn / kRowsOfPiece, 0, hyper.ffn * kVectorBytes, {{gate, Need::kPiece}, {up, Need::kPiece}}});
  const auto down = add_node(Product(model, Role::kFfnDown, "down", {{mul, Need::kAll}}));
  add_node({"ffn_residual", hyper.hidden / kRowsOfPiece, 0, hidden, {{down, Need::kPiece}, {add, Need::kPiece}}});
  return nodes;
}

std::vector<std::vector<std::size_t>> FusionGroups(const std::vector<FusionNode>& nodes, std::size_t most) {
  const auto touch = [&](std::size_t a, std::size_t b) {
    return Contains(nodes[b].reads, a, &FusionEdge::from) || Contains(nodes[a].reads, b, &FusionEdge::from);
  };
  std::set<std::vector<std::size_t>> seen;
  const std::function<void(std::vector<std::size_t>)> grow = [&](std::vector<std::size_t> group) {
    std::ranges::sort(group);
    if (!seen.insert(group).second || group.size() == most) return;
    for (std::size_t next = 0; next < nodes.size(); ++next) {
      if (Contains(group, next)) continue;
      if (!std::ranges::any_of(group, [&](std::size_t member) { return touch(member, next); })) continue;
      std::vector<std::size_t> larger = group;
      larger.push_back(next);
      grow(std::move(larger));
    }
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) grow({i});
  std::vector<std::vector<std::size_t>> groups;
  for (const std::vector<std::size_t>& group : seen) {
    if (group.size() > 1 && Outputs(nodes, group) == 1) groups.push_back(group);
  }
  return groups;
}

double FusionMachine::Drawn(double pieces) const {
  const double at_once = pieces_at_once > 0 ? std::min(pieces, pieces_at_once) : pieces;
  double drawn = std::min(bandwidth_gb_s, at_once * bytes_under_way / latency_ns);
  if (stream_gb_s > 0) drawn = std::min(drawn, at_once * stream_gb_s);
  return drawn;
}

Result<FusionMachine> FusionMachineOf(const chip::Chip& chip, std::uint32_t threads) {
  FusionMachine machine;
  if (chip.backend != "cpu") {
    BOLTBEAM_ASSIGN(const GpuMachine gpu, GpuMachineOf(chip));
    machine.bandwidth_gb_s = gpu.bandwidth_gb_s;
    machine.latency_ns = gpu.latency_ns;
    machine.bytes_under_way = kPieceLanes * kLoadBytes;
    machine.stream_gb_s = gpu.stream_gb_s;
    machine.pieces_at_once = gpu.multiprocessors * 8;
    machine.boundary_ns = gpu.dispatch_ns > 0 ? gpu.dispatch_ns : kGuessedLaunchNs;
    machine.unknown = gpu.unknown;
    if (gpu.dispatch_ns <= 0) machine.unknown.emplace_back("dispatch_ns");
    return machine;
  }
  const chip::Fact* bandwidth = chip.Bandwidth();
  if (bandwidth == nullptr) {
    return Fail(Code::kBoundNoBandwidth, chip.name, "no memory bandwidth is known", "a measurement (`chip measure`)");
  }
  machine.bandwidth_gb_s = bandwidth->value;
  machine.latency_ns = chip.Get("memory_latency_ns").value_or(100);
  machine.pieces_at_once = threads;
  // A thread's hardware keeps as much under way as one thread was seen to draw.
  const double alone = chip.Get("read_bandwidth_gb_s.threads_1").value_or(bandwidth->value);
  machine.bytes_under_way = alone * machine.latency_ns;
  machine.stream_gb_s = alone;
  machine.boundary_ns = chip.Get("barrier_ns").value_or(kGuessedBarrierNs);
  if (!chip.Get("barrier_ns")) machine.unknown.emplace_back("barrier_ns");
  return machine;
}

std::vector<FusionIdea> FusionIdeas(const std::vector<FusionNode>& nodes, const FusionMachine& machine,
                                    std::uint32_t layers, double token_ns, double smallest_claim) {
  std::vector<FusionIdea> ideas;
  for (const std::vector<std::size_t>& group : FusionGroups(nodes)) {
    ideas.push_back(Weigh(nodes, group, machine, layers, token_ns, smallest_claim));
  }
  std::ranges::stable_sort(ideas, [](const FusionIdea& a, const FusionIdea& b) {
    return a.closed.empty() != b.closed.empty() ? a.closed.empty() : a.predicted_ns > b.predicted_ns;
  });
  return ideas;
}

}  // namespace boltbeam::search
