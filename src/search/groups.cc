#include "search/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/weights.h"
#include "kernel/knobs.h"
#include "model/token_graph.h"

namespace boltbeam::search {
namespace {

using engine::TableName;

/// Tensors that a step multiplies together, in the order of the token; each space once.
Result<std::vector<std::vector<const model::Tensor*>>> SpacesOf(const model::Model& model,
                                                                const kernel::VectorFacts& facts,
                                                                const std::vector<engine::GeometryChoice>& choices) {
  engine::Options options;
  options.threads = 1;
  options.geometry = choices;
  BOLTBEAM_ASSIGN(const engine::Weights weights, engine::Weights::Plan(model, facts, options));
  std::vector<std::vector<const model::Tensor*>> spaces;
  std::set<const engine::RowSpace*> seen;
  for (const model::Operation& operation : model::BuildTokenGraph(model, {})) {
    if (operation.kind != model::OpKind::kMatmul) continue;
    const engine::RowSpace& space = weights.space(*operation.weights);
    if (seen.insert(&space).second) spaces.push_back(space.tensors);
  }
  return spaces;
}

/// Names of tables that belong together: those of one step, and of steps that share a name.
class Joined {
 public:
  void Add(const std::vector<const model::Tensor*>& tensors) {
    const std::string first = Root(TableName(*tensors.front()));
    for (const model::Tensor* tensor : tensors) parent_[Root(TableName(*tensor))] = first;
  }
  std::string Root(const std::string& name) {
    const auto found = parent_.try_emplace(name, name).first;
    return found->second == name ? name : Root(found->second);
  }

 private:
  std::map<std::string, std::string> parent_;
};

std::uint64_t RowsOf(const std::vector<const model::Tensor*>& tensors) {
  std::uint64_t rows = 0;
  for (const model::Tensor* tensor : tensors) rows += tensor->rows();
  return rows;
}

}  // namespace

Result<std::vector<Group>> GroupsOf(const model::Model& model, const kernel::VectorFacts& facts,
                                    const std::vector<engine::GeometryChoice>& choices) {
  BOLTBEAM_ASSIGN(const auto spaces, SpacesOf(model, facts, choices));
  Joined joined;
  for (const auto& tensors : spaces) joined.Add(tensors);
  const std::vector<Part> parts = PartsOf(model);
  std::map<std::string, Group> groups;
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> bytes_by_rows;  // of a token, by the steps' rows
  for (const auto& tensors : spaces) {
    const std::string root = joined.Root(TableName(*tensors.front()));
    Group& group = groups[root];
    for (const model::Tensor* tensor : tensors) {
      const std::string name = TableName(*tensor);
      if (group.tensor == nullptr || tensor->info->bytes > group.tensor->info->bytes) group.tensor = tensor;
      bytes_by_rows[root][RowsOf(tensors)] += tensor->info->bytes;
      if (std::ranges::find(group.tables, name) != group.tables.end()) continue;
      group.tables.push_back(name);
      const Part& part = *std::ranges::find(parts, name, &Part::table);
      group.part.role += (group.part.role.empty() ? "" : "+") + part.role;
    }
  }
  std::vector<Group> list;
  for (auto& [root, group] : groups) {
    // The size of step that most of its bytes are read in.
    const auto& sizes = bytes_by_rows[root];
    const auto most = std::ranges::max_element(sizes, {}, [](const auto& entry) { return entry.second; });
    std::uint64_t total = 0;
    for (const auto& [rows, bytes] : sizes) total += bytes;
    const model::Tensor& tensor = *group.tensor;
    group.part.format = tensor.format;
    group.part.rows = most->first;
    group.part.cols = tensor.cols();
    group.part.table = fmt::format("{}.{}x{}", tensor.format->name, most->first, tensor.cols());
    group.part.bytes = tensor.info->bytes / tensor.rows() * most->first;
    group.part.calls = static_cast<std::uint32_t>((total + group.part.bytes - 1) / group.part.bytes);
    list.push_back(std::move(group));
  }
  std::ranges::stable_sort(list, [](const Group& a, const Group& b) { return a.TokenBytes() > b.TokenBytes(); });
  return list;
}

Result<void> FitsGroup(const model::Model& model, const kernel::VectorFacts& facts,
                       std::vector<engine::GeometryChoice> choices, const Group& group,
                       const kernel::GemvGeometry& geometry) {
  // Threads that compute whole heads need no barrier before attention.
  const std::uint32_t head_dim = model.hyper().head_dim;
  for (const model::Tensor& tensor : model.tensors()) {
    const bool has_heads =
        tensor.role == model::Role::kAttnQ || tensor.role == model::Role::kAttnK || tensor.role == model::Role::kAttnV;
    if (!has_heads || head_dim % geometry.rows() == 0) continue;
    if (std::ranges::find(group.tables, TableName(tensor)) == group.tables.end()) continue;
    return Fail(Code::kKernelIllegal, group.part.table,
                fmt::format("heads of {} rows, groups of {}", head_dim, geometry.rows()), "groups that fit into heads");
  }
  BOLTBEAM_ASSIGN(const auto before, SpacesOf(model, facts, choices));
  for (const std::string& table : group.tables) choices.push_back({table, kernel::GeometryText(geometry)});
  BOLTBEAM_ASSIGN(const auto after, SpacesOf(model, facts, choices));
  if (after.size() <= before.size()) return {};
  return Fail(Code::kKernelIllegal, group.part.table,
              fmt::format("{} steps instead of {}", after.size(), before.size()),
              "groups of rows that tables of one step are made of whole");
}

}  // namespace boltbeam::search
