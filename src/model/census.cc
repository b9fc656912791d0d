#include "model/census.h"

#include <algorithm>
#include <tuple>

#include "model/token_graph.h"

namespace boltbeam::model {
namespace {

bool IsVector(const Tensor& tensor) { return tensor.info->dimensions == 1; }

Exclusion ExclusionOf(const Model& model, const Tensor& tensor) {
  if (IsVector(tensor)) return Exclusion::kSmallVector;
  if (tensor.role == Role::kEmbedding && !model.tied()) return Exclusion::kRowGather;
  return Exclusion::kNone;
}

/// The account's part; a tied embedding counts as the head.
std::string_view PartOf(const Model& model, const Tensor& tensor) {
  return PartOfRole(&tensor == &model.head() ? Role::kHead : tensor.role);
}

void AddToGroup(std::vector<CensusGroup>& groups, const Model& model, const CensusEntry& entry) {
  const Tensor& tensor = *entry.tensor;
  const bool vector = IsVector(tensor);  // vectors of all lengths are one line
  const std::uint64_t rows = vector ? 0 : tensor.rows();
  const std::uint64_t cols = vector ? 0 : tensor.cols();
  const std::string_view part = PartOf(model, tensor);
  auto found = std::ranges::find_if(groups, [&](const CensusGroup& group) {
    return group.role == part && group.format == tensor.format->name && group.rows == rows && group.cols == cols;
  });
  if (found == groups.end()) {
    groups.push_back({std::string(part), tensor.format->name, rows, cols, 0, 0, 0, entry.exclusion});
    found = groups.end() - 1;
  }
  ++found->tensors;
  found->bytes += tensor.info->bytes;
  found->elements += tensor.info->elements;
}

/// Where in a token a part is read: the order of roles within a layer, then the head.
int ReadingOrder(const CensusGroup& group) {
  constexpr std::string_view kOrder[] = {"embed",   "norm",        "bias",     "rope",   "attn_qo",
                                         "attn_kv", "ffn_gate_up", "ffn_down", "lm_head"};
  return static_cast<int>(std::ranges::find(kOrder, group.role) - std::begin(kOrder));
}

}  // namespace

std::string_view ExclusionReason(Exclusion exclusion) {
  switch (exclusion) {
    case Exclusion::kRowGather:
      return "row gather: one row is read per token";
    case Exclusion::kSmallVector:
      return "small vectors: read by every token, and small enough to stay in a cache";
    case Exclusion::kNone:
      break;
  }
  return "read in full by every token";
}

double Census::BitsPerWeight() const {
  return counted_elements == 0 ? 0 : 8.0 * static_cast<double>(counted_bytes) / static_cast<double>(counted_elements);
}

Census TakeCensus(const Model& model) {
  Census census;
  for (const Tensor& tensor : model.tensors()) {
    const CensusEntry entry{&tensor, ExclusionOf(model, tensor)};
    census.entries.push_back(entry);
    AddToGroup(census.groups, model, entry);
    const bool counted = entry.exclusion == Exclusion::kNone;
    (counted ? census.counted_bytes : census.excluded_bytes) += tensor.info->bytes;
    ++(counted ? census.counted_tensors : census.excluded_tensors);
    if (counted) census.counted_elements += tensor.info->elements;
  }
  for (const gguf::TensorInfo& info : model.file().tensors()) census.tensor_bytes += info.bytes;
  const Tensor& embedding = *model.Find(Role::kEmbedding);
  census.row_bytes = embedding.info->bytes / embedding.rows();
  std::ranges::stable_sort(census.groups, {}, [](const CensusGroup& group) {
    return std::tuple(group.exclusion != Exclusion::kNone, ReadingOrder(group), group.format);
  });
  return census;
}

}  // namespace boltbeam::model
