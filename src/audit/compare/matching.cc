#include "audit/compare/matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace boltbeam::audit {
namespace {

using imports::ForeignOperation;
using imports::ForeignTensor;
using model::Operation;
using model::OpKind;

struct Use {
  std::string role, format;
  double calls = 0;
};

std::string Upper(std::string_view text) {
  std::string upper;
  for (const unsigned char c : text) upper += static_cast<char>(std::toupper(c));
  return upper;
}

std::string Key(const ForeignOperation& operation) {
  std::string key = operation.kind;
  const auto add = [&](const ForeignTensor& tensor) {
    key += fmt::format(" {}[{},{},{},{}]", tensor.format, tensor.shape[0], tensor.shape[1], tensor.shape[2],
                       tensor.shape[3]);
  };
  add(operation.result);
  for (const ForeignTensor& source : operation.sources) add(source);
  return key;
}

// Operations of one kind on the same shapes are one, whatever their parameters: their mean time.
struct Group {
  ForeignOperation operation;
  double ns = 0, hot_ns = 0, members = 0;
};

std::vector<Group> Groups(const std::vector<TimedOperation>& operations) {
  std::map<std::string, Group> groups;
  for (const TimedOperation& timed : operations) {
    Group& group = groups[Key(timed.operation)];
    group.operation = timed.operation;
    group.ns += timed.ns;
    group.hot_ns += timed.hot_ns.value_or(timed.ns);
    ++group.members;
  }
  std::vector<Group> list;
  for (auto& [key, group] : groups) {
    group.ns /= group.members;
    group.hot_ns /= group.members;
    list.push_back(std::move(group));
  }
  return list;
}

class Matcher {
 public:
  Matcher(const model::Model& model, std::uint64_t depth, const std::vector<Group>& groups) : model_(model) {
    model::GraphOptions options;
    options.depth = depth;
    graph_ = model::BuildTokenGraph(model, options);
    for (const Operation& operation : graph_) {
      ropes_ += operation.kind == OpKind::kRope ? 1 : 0;
      attentions_ += operation.kind == OpKind::kAttention ? 1 : 0;
      gates_ += operation.kind == OpKind::kGate ? 1 : 0;
    }
    for (const Group& group : groups) {
      cache_writes_ += WritesCache(group.operation) ? 1 : 0;
      if (group.operation.kind == "FLASH_ATTN_EXT") caches_.insert(group.operation.sources[1].shape[1]);
    }
  }

  /// The regions that this operation belongs to, each with the number of times that it runs there; empty: none.
  [[nodiscard]] std::vector<Use> UsesOf(const ForeignOperation& operation) const {
    if (operation.kind == "MUL_MAT") return Products(operation);
    if (operation.kind == "RMS_NORM" || operation.kind == "MUL") return Norms(operation);
    if (operation.kind == "SCALE") return OfHeads(operation);
    if (operation.kind == "ROPE") return OfHeads(operation);
    if (operation.kind == "ADD") return Adds(operation);
    if (operation.kind == "FLASH_ATTN_EXT") return {{"attention", "", AttentionsOver(operation.sources[1].shape[1])}};
    if (operation.kind == "SOFT_MAX") return {{"attention", "", attentions_}};
    if (WritesCache(operation)) return {{"rope", "", 2 * ropes_ / std::max(1.0, cache_writes_)}};
    if (operation.kind.ends_with("GLU")) return {{"gate", "", gates_}};
    if (operation.kind == "GET_ROWS" && operation.sources[0].Rows() == model_.hyper().vocab) return {{"embed", "", 1}};
    return {};
  }

 private:
  // Every table of this format and shape, by part: a token reads each once.
  [[nodiscard]] std::vector<Use> Products(const ForeignOperation& operation) const {
    const ForeignTensor& table = operation.sources[0];
    std::vector<Use> uses;
    for (const Operation& own : graph_) {
      if (own.kind != OpKind::kMatmul || own.weights->format->name != Upper(table.format) ||
          own.cols != table.shape[0] || own.rows != table.Rows()) {
        continue;
      }
      const auto found = std::ranges::find(uses, own.role, &Use::role);
      if (found == uses.end()) {
        uses.push_back({own.role, own.weights->format->name, 1});
      } else {
        ++found->calls;
      }
    }
    return uses;
  }

  // Layers with a sliding window have a shorter cache: where their program has as many lengths as our graph, each
  // length runs as often as ours of that rank; else all alike.
  [[nodiscard]] double AttentionsOver(std::uint64_t positions) const {
    std::map<std::uint64_t, double> lengths;
    for (const Operation& own : graph_) {
      if (own.kind == OpKind::kAttention) ++lengths[own.kv_bytes];
    }
    if (lengths.size() != caches_.size())
      return attentions_ / static_cast<double>(std::max<std::size_t>(1, caches_.size()));
    const auto rank = std::distance(caches_.begin(), caches_.find(positions));
    return std::next(lengths.begin(), rank)->second;
  }

  // Rotation, and the norms and factors of heads, are one step of ours. Queries and keys of as many heads have one
  // shape, and both are done.
  [[nodiscard]] std::vector<Use> OfHeads(const ForeignOperation& operation) const {
    const auto& hyper = model_.hyper();
    const ForeignTensor& heads = operation.result;
    const int sides = (heads.shape[1] == hyper.heads ? 1 : 0) + (heads.shape[1] == hyper.kv_heads ? 1 : 0);
    if (heads.shape[0] != hyper.head_dim || sides == 0) return {};
    return {{"rope", "", sides * ropes_}};
  }

  [[nodiscard]] std::vector<Use> Norms(const ForeignOperation& operation) const {
    const std::uint64_t width = operation.result.shape[0];
    const bool factor = operation.sources.size() > 1 && operation.sources[1].shape[0] == 1;
    if (factor) return {{"embed", "", 1}};
    double norms = 0;
    if (operation.result.Rows() == 1) {
      for (const Operation& own : graph_) {
        norms += own.kind == OpKind::kNorm && own.weights->cols() == width ? 1 : 0;
      }
    }
    return norms > 0 ? std::vector<Use>{{"norm", "", norms}} : OfHeads(operation);
  }

  // What attention and feed-forward add to the stream, and biases.
  [[nodiscard]] std::vector<Use> Adds(const ForeignOperation& operation) const {
    if (operation.result.shape[0] == model_.hyper().hidden) {
      return {{"attn_qo", "residual", attentions_}, {"ffn_down", "residual", gates_}};
    }
    double biases = 0;
    std::string role;
    for (const Operation& own : graph_) {
      if (own.bias == nullptr || own.rows != operation.result.shape[0]) continue;
      ++biases;
      role = own.role;
    }
    return biases > 0 ? std::vector<Use>{{role, "bias", biases}} : std::vector<Use>{};
  }

  [[nodiscard]] bool WritesCache(const ForeignOperation& operation) const {
    const std::uint64_t kv = std::uint64_t{model_.hyper().kv_heads} * model_.hyper().head_dim;
    return operation.kind == "SET_ROWS" && operation.result.shape[0] == kv && operation.result.Rows() > 1;
  }

  const model::Model& model_;
  std::vector<Operation> graph_;
  double ropes_ = 0, attentions_ = 0, gates_ = 0;
  std::set<std::uint64_t> caches_;  // distinct lengths of their caches
  double cache_writes_ = 0;         // distinct ones: one when keys and values have one shape
};

void AddUse(Matching& matching, const Use& use, const Group& group) {
  auto region = std::ranges::find_if(
      matching.regions, [&](const MatchedRegion& r) { return r.role == use.role && r.format == use.format; });
  if (region == matching.regions.end()) {
    region = matching.regions.insert(matching.regions.end(), {use.role, use.format});
  }
  region->calls += use.calls;
  region->ns += use.calls * group.ns;
  region->hot_ns += use.calls * group.hot_ns;
  region->bytes += use.calls * group.operation.RealBytes().value_or(0);
}

}  // namespace

double Matching::TotalNs() const {
  double sum = unmatched_ns;
  for (const MatchedRegion& region : regions) sum += region.ns;
  return sum;
}

Matching MatchOperations(const std::vector<TimedOperation>& operations, const model::Model& model,
                         std::uint64_t depth) {
  const std::vector<Group> groups = Groups(operations);
  const Matcher matcher(model, depth, groups);
  Matching matching;
  for (const Group& group : groups) {
    const std::vector<Use> uses = matcher.UsesOf(group.operation);
    for (const Use& use : uses) AddUse(matching, use, group);
    if (!uses.empty()) continue;
    matching.unmatched_ns += group.ns;
    matching.unmatched.push_back(fmt::format("{}: {:.1f} µs", Key(group.operation), group.ns / 1e3));
  }
  return matching;
}

}  // namespace boltbeam::audit
