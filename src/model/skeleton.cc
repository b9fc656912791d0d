#include "model/skeleton.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/architecture.h"

namespace boltbeam::model {
namespace {

constexpr std::uint32_t kBlock = 256;  // a multiple of every format's block

HyperParameters Narrow(const HyperParameters& full, std::uint32_t scale) {
  HyperParameters narrow = full;
  narrow.heads = scale * kBlock / std::gcd(kBlock, full.head_dim);
  narrow.kv_heads = full.heads == full.kv_heads ? narrow.heads : scale;
  narrow.ffn = scale * kBlock;
  // Operations are told apart by shape: the stream's is neither that of a head nor that of all of them.
  narrow.hidden = scale * kBlock;
  while (narrow.hidden == full.head_dim || narrow.hidden == narrow.heads * full.head_dim) narrow.hidden += kBlock;
  return narrow;
}

}  // namespace

Result<SynthPlan> PlanSkeleton(const Model& model, std::uint32_t scale) {
  BOLTBEAM_ASSIGN(ShapeRegistry shapes, LoadShapes());
  BOLTBEAM_ASSIGN(const ArchitectureRegistry architectures, LoadArchitectures());
  BOLTBEAM_ASSIGN(const ArchitectureRow* row, architectures.Find(model.architecture().name));
  SynthPlan plan;
  plan.shape = {"skeleton",   "A skeleton", model.architecture().name, Narrow(model.hyper(), scale),
                model.tied(), std::string()};
  plan.weights = std::move(shapes.weights);
  for (const Tensor& full : model.tensors()) {
    SynthTensor tensor{full.info->name, full.role, full.format, {}};
    const auto rule = std::ranges::find(row->tensors, full.role, &TensorRule::role);
    for (const std::string& symbol : rule->shape) tensor.shape.push_back(DimensionOf(symbol, plan.shape.hyper));
    plan.tensors.push_back(std::move(tensor));
  }
  return plan;
}

}  // namespace boltbeam::model
