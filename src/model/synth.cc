#include "model/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/architecture.h"

namespace boltbeam::model {
namespace {

// Adds the tensors of one layer, or those of no layer for -1, in the order of their names.
Result<void> AddTensors(const std::vector<TensorRule>& rules, std::int32_t layer, const MixtureRegistry& mixtures,
                        SynthPlan& plan) {
  const auto first = static_cast<std::ptrdiff_t>(plan.tensors.size());
  for (const TensorRule& rule : rules) {
    if (rule.per_layer() != (layer >= 0)) continue;
    if (rule.optional && (rule.role != Role::kHead || plan.shape.tied)) continue;
    SynthTensor tensor;
    tensor.role = rule.role;
    tensor.name = rule.name;
    if (layer >= 0) tensor.name.replace(tensor.name.find('*'), 1, std::to_string(layer));
    for (const std::string& symbol : rule.shape) {
      tensor.shape.push_back(DimensionOf(symbol, plan.shape.hyper));
      if (tensor.shape.back() == 0) {
        return Fail(Code::kJson, "models/architectures.json", "dimension " + symbol,
                    "a symbol that stands for a width");
      }
    }
    const bool is_head = rule.role == Role::kHead || (rule.role == Role::kEmbedding && plan.shape.tied);
    tensor.format = tensor.shape.size() == 1 ? mixtures.vectors
                                             : mixtures.Choose(plan.mixture, rule.role, is_head,
                                                               static_cast<std::uint32_t>(std::max(layer, 0)),
                                                               plan.shape.hyper, tensor.shape[0]);
    plan.tensors.push_back(std::move(tensor));
  }
  std::sort(plan.tensors.begin() + first, plan.tensors.end(),
            [](const SynthTensor& a, const SynthTensor& b) { return a.name < b.name; });
  return {};
}

}  // namespace

std::uint64_t SynthTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

std::uint64_t SynthPlan::data_bytes() const {
  std::uint64_t bytes = 0;
  for (const SynthTensor& tensor : tensors) bytes += tensor.bytes();
  return bytes;
}

Result<SynthPlan> PlanSynth(std::string_view spec, const SynthOptions& options) {
  BOLTBEAM_ASSIGN(const ShapeRegistry shapes, LoadShapes());
  BOLTBEAM_ASSIGN(const MixtureRegistry mixtures, LoadMixtures());
  const std::size_t colon = spec.find(':');
  const std::string_view type = colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1);
  BOLTBEAM_ASSIGN(const Shape* shape, shapes.Find(spec.substr(0, colon)));
  BOLTBEAM_ASSIGN(const Mixture* mixture, mixtures.Find(type));
  if (options.layers > shape->hyper.layers) {
    return Fail(Code::kUsage, "--layers", fmt::format("{}", options.layers),
                fmt::format("1 to {}, as many as {} has", shape->hyper.layers, shape->name));
  }
  Shape asked = *shape;
  if (options.layers != 0) asked.hyper.layers = options.layers;
  return PlanShape(asked, *mixture);
}

Result<SynthPlan> PlanShape(const Shape& shape, const Mixture& mixture) {
  BOLTBEAM_ASSIGN(ShapeRegistry shapes, LoadShapes());
  BOLTBEAM_ASSIGN(const MixtureRegistry mixtures, LoadMixtures());
  BOLTBEAM_ASSIGN(const ArchitectureRegistry architectures, LoadArchitectures());
  BOLTBEAM_ASSIGN(const ArchitectureRow* row, architectures.Find(shape.architecture));
  SynthPlan plan{shape, mixture, {}, std::move(shapes.weights)};
  const auto layers = static_cast<std::int32_t>(plan.shape.hyper.layers);
  for (std::int32_t layer = -1; layer < layers; ++layer) {
    BOLTBEAM_TRY(AddTensors(row->tensors, layer, mixtures, plan));
  }
  return plan;
}

}  // namespace boltbeam::model
