#include "engine/products_part.h"

#include <cstring>

#include "engine/routes.h"
#include "kernel/families/best.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/state.h"

namespace boltbeam::engine {
namespace {

using kernel::Epilogue;
using model::Operation;
using model::Role;
using Kind = RowSpace::Kind;

bool IsHead(const model::Model& model, const Operation& operation) {
  return operation.layer < 0 && operation.weights == &model.head();
}

constexpr std::uint64_t kBestBytes = 8;  // a value and its row

}  // namespace

kernel::GateFunction GateFunctionOf(const model::Model& model) {
  const bool is_gelu = model.architecture().activation == model::Activation::kGelu;
  return is_gelu ? kernel::GateFunction::kGelu : kernel::GateFunction::kSilu;
}

kernel::GemvShape ProductShape(const model::Model& model, const Operation& operation, const Weights& weights,
                               const Options& options, bool decode) {
  const Table& table = weights.table(*operation.weights);
  const RowSpace& space = weights.space(*operation.weights);
  const auto is_on = [&](std::string_view route) { return IsRouteOn(route, options.with, options.without); };
  kernel::GemvShape shape{.rows = operation.rows, .cols = operation.cols};
  if (operation.bias != nullptr) shape.epilogue = Epilogue::kBias;
  if (operation.adds_residual && (!decode || is_on(kResidualInEpilogue))) shape.epilogue = Epilogue::kResidual;
  if (decode && space.kind == Kind::kPairs) shape.gate = GateFunctionOf(model);
  if (decode && space.kind == Kind::kRows) {
    shape.rows = 0;
    for (const model::Tensor* tensor : space.tensors) shape.rows += tensor->rows();
  }
  if (!decode && table.group_stride != table.GroupBytes()) shape.group_bytes = table.group_stride;
  shape.best = decode && IsHead(model, operation) && is_on(kArgmaxInVocabulary);
  return shape;
}

kernel::GemvGeometry ProductsPart::GeometryOf(const Operation& operation) const {
  const kernel::GemvGeometry& decode = plan_.context().weights.table(*operation.weights).geometry;
  if (plan_.decode()) return decode;
  return kernel::PromptGeometry(*operation.weights->format, plan_.context().facts, decode);
}

Result<void> ProductsPart::Add(std::span<const Operation> operations) {
  is_gated_ = false;
  std::vector<Input> inputs;
  for (const Operation& operation : operations) {
    const Table& table = plan_.context().weights.table(*operation.weights);
    BOLTBEAM_ASSIGN(Input input, input_.For(kernel::ActivationsFor(table.layout, GeometryOf(operation).dot)));
    inputs.push_back(std::move(input));
  }
  plan_.EndColumnwise();
  for (std::size_t i = 0; i < operations.size();) {
    const RowSpace& space = plan_.context().weights.space(*operations[i].weights);
    const std::size_t count = plan_.decode() ? space.tensors.size() : 1;
    plan_.Begin(operations[i]);
    BOLTBEAM_TRY(Product(operations.subspan(i, count), space, inputs[i]));
    i += count;
  }
  return {};
}

Result<ProductsPart::Target> ProductsPart::TargetOf(const Operation& operation) {
  const Workspace& w = plan_.workspace();
  const auto shared = [&](std::byte* output) { return Target{Input(plan_.threads(), output)}; };
  const auto heads = [&](std::byte* output) {
    plan_.SetHeads(operation.weights->role, Input(plan_.threads(), output));
    return shared(output);
  };
  switch (operation.weights->role) {
    case Role::kAttnQ:
      return heads(w.query);
    case Role::kAttnK:
      return heads(w.key);
    case Role::kAttnV:
      return heads(w.value);
    case Role::kAttnOutput:
    case Role::kFfnDown:
      return ResidualTarget(operation);
    case Role::kFfnGate:
      return shared(w.gate);
    case Role::kFfnUp:
      return shared(w.up);
    case Role::kHead:
    case Role::kEmbedding:
      return shared(w.logits);
    default:
      return Fail(Code::kInternal, operation.role, "a table that no product reads");
  }
}

Result<ProductsPart::Target> ProductsPart::ResidualTarget(const Operation& operation) {
  const Workspace& w = plan_.workspace();
  if (!operation.adds_residual) return Target{Input(plan_.threads(), w.branch)};
  if (!plan_.decode() || plan_.Take(kResidualInEpilogue, true)) return Target{Input(plan_.threads(), w.x)};
  BOLTBEAM_ASSIGN(Input branch, plan_.Scratch("branch", kernel::OutputStride(plan_.hyper().hidden), true));
  return Target{std::move(branch), true};
}

Result<ProductsPart::Target> ProductsPart::GatedTarget() {
  plan_.Take(kGateInRegisters, true);
  is_gated_ = true;
  BOLTBEAM_ASSIGN(Input output, plan_.Scratch("gated", kernel::OutputStride(plan_.hyper().ffn), true));
  return Target{std::move(output)};
}

Result<ProductsPart::Target> ProductsPart::RowsTarget(std::span<const Operation> operations, const RowSpace& space) {
  plan_.Take(kQkvOneSpace, true);
  std::uint64_t rows = 0;
  for (const Operation& operation : operations) rows += operation.rows;
  BOLTBEAM_ASSIGN(Input output, plan_.Scratch("qkv", kernel::OutputStride(rows), true));
  const std::int64_t group_bytes = std::int64_t{4} * plan_.context().weights.table(*space.tensors[0]).layout.lanes;
  std::int64_t table_at = 0;  // groups of the tables before
  for (std::size_t i = 0; i < operations.size(); ++i) {
    Input places;
    for (std::uint32_t t = 0; t < plan_.threads(); ++t) {
      std::int64_t first = space.RangeOf(t).begin;  // where the thread's own groups of this table lie
      for (std::size_t before = 0; before < i; ++before) {
        first += space.shares[before][t].end - space.shares[before][t].begin;
      }
      const std::int64_t at = space.by_thread ? first - space.shares[i][t].begin : table_at;
      places.push_back(output[t] + at * group_bytes);
    }
    plan_.SetHeads(operations[i].weights->role, std::move(places));
    table_at += plan_.context().weights.table(*space.tensors[i]).groups();
  }
  return Target{std::move(output)};
}

Result<std::byte*> ProductsPart::BiasOf(std::span<const Operation> operations, const RowSpace& space) {
  const Weights& weights = plan_.context().weights;
  if (operations.size() == 1) return weights.vector(*operations[0].bias);
  std::uint64_t rows = 0;
  for (const Operation& operation : operations) rows += operation.rows;
  BOLTBEAM_ASSIGN(std::byte * all, plan_.Memory(kernel::OutputStride(rows)));
  std::byte* next = all;
  for (std::uint32_t t = 0; t < plan_.threads(); ++t) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const std::byte* const bias = weights.vector(*operations[i].bias);
      const std::uint64_t group_bytes = std::uint64_t{4} * weights.table(*space.tensors[i]).layout.lanes;
      const runtime::Range share = space.shares[i][t];
      const std::uint64_t bytes = static_cast<std::uint64_t>(share.end - share.begin) * group_bytes;
      if (bias != nullptr) std::memcpy(next, bias + static_cast<std::uint64_t>(share.begin) * group_bytes, bytes);
      next += bytes;
    }
  }
  return all;
}

Result<std::byte*> ProductsPart::BestMemory() {
  plan_.Take(kArgmaxInVocabulary, true);
  BOLTBEAM_ASSIGN(best_, plan_.Memory(kBestBytes * plan_.threads()));
  // A thread without rows never writes its own.
  for (std::uint32_t t = 0; t < plan_.threads(); ++t) {
    std::memcpy(best_ + kBestBytes * t, &kernel::kLowest, sizeof(kernel::kLowest));
  }
  return best_;
}

Result<void> ProductsPart::Product(std::span<const Operation> operations, const RowSpace& space, const Input& input) {
  const PlanContext& c = plan_.context();
  const Operation& operation = operations[0];
  const Table& table = c.weights.table(*operation.weights);
  const kernel::GemvGeometry geometry = GeometryOf(operation);
  kernel::GemvShape shape = ProductShape(c.model, operation, c.weights, c.options, plan_.decode());
  if (operation.role == c.options.slow_part) shape.delay_turns = c.options.slow_turns;
  const bool is_fused = operations.size() > 1;
  BOLTBEAM_ASSIGN(const Target target, shape.gate ? GatedTarget()
                                       : is_fused ? RowsTarget(operations, space)
                                                  : TargetOf(operation));
  std::byte *bias = nullptr, *best = nullptr;
  if (shape.epilogue == Epilogue::kBias) {
    BOLTBEAM_ASSIGN(bias, BiasOf(operations, space));
  }
  if (shape.best) {
    BOLTBEAM_ASSIGN(best, BestMemory());
  }
  BOLTBEAM_ASSIGN(kernel::Program program, kernel::BuildGemv(table.layout, geometry, shape));
  Buffers buffers;
  std::vector<runtime::Range> shares;
  for (std::uint32_t t = 0; t < plan_.threads(); ++t) {
    shares.push_back(is_fused ? space.RangeOf(t) : table.shares[t]);
    // The kernel counts groups of the whole space, the table's base those of the table. A plan that is only looked at
    // has no tables.
    const std::int64_t ahead = shares[t].begin - table.shares[t].begin;
    std::byte* weights = table.base[t];
    if (weights != nullptr) weights -= ahead * static_cast<std::int64_t>(table.group_stride);
    std::vector<void*> own{weights, input[t], target.output[t]};
    if (shape.epilogue == Epilogue::kBias) own.push_back(bias);
    if (shape.best) own.push_back(best + kBestBytes * t);
    if (geometry.columns > 1 || shape.best) own.push_back(plan_.workspace().state);
    buffers.push_back(std::move(own));
  }
  std::uint64_t bytes = 0;
  for (const Operation& one : operations) bytes += c.weights.table(*one.weights).bytes;
  plan_.AddStep(std::move(program), operation.role, operation.weights->format->name, PlanAssembly::Once(table.groups()),
                std::move(buffers), bytes);
  Step& step = plan_.LastStep();
  step.info.streams = true;
  step.shares = std::move(shares);
  // Alone, its shares are equal ones, and its results no other step's of the same phase.
  if (!is_fused && plan_.decode()) plan_.MayShareTails(table.GroupBytes());
  if (is_fused && operations.back().role != operation.role) {
    for (const Operation& one : operations) {
      step.info.parts.emplace_back(one.role, c.weights.table(*one.weights).bytes);
    }
  }
  if (shape.gate) input_.Set(target.output, plan_.hyper().ffn, ProductInput::Owner::kParts, table.layout.lanes);
  if (target.is_apart) AddToStream(table, target.output.front());
  return {};
}

/// stream += what a product left apart: every thread the rows that it computed itself.
void ProductsPart::AddToStream(const Table& table, std::byte* branch) {
  const std::uint64_t rows = table.layout.lanes;
  const kernel::VectorShape shape{rows, 4 * rows, 4 * rows, kernel::LanesFor(rows, plan_.lanes())};
  plan_.AddStep(kernel::BuildAdd(shape), "residual", "F32", PlanAssembly::Once(table.groups()),
                plan_.Shared({branch, plan_.workspace().x}), std::uint64_t{plan_.hyper().hidden} * 8);
}

}  // namespace boltbeam::engine
