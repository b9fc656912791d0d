#include "engine/plan.h"

#include <algorithm>
#include <span>

#include "engine/attention_part.h"
#include "engine/plan_assembly.h"
#include "engine/product_input.h"
#include "engine/products_part.h"
#include "engine/routes.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/state.h"
#include "model/token_graph.h"

namespace boltbeam::engine {
namespace {

using kernel::Program;
using model::Operation;
using model::OpKind;
using model::Role;
using Owner = ProductInput::Owner;

/// Walks the token graph and adds the steps of every operation.
class TokenPlanner {
 public:
  TokenPlanner(PlanContext& context, bool decode)
      : c_(context),
        w_(context.workspace),
        hyper_(context.model.hyper()),
        plan_(context, decode),
        input_(plan_),
        products_(plan_, input_),
        attention_(plan_, input_) {}

  Result<Plan> Build() && {
    const std::vector<Operation> graph = model::BuildTokenGraph(c_.model, {});
    const auto is_product = [](const Operation& operation) { return operation.kind == OpKind::kMatmul; };
    for (auto at = graph.begin(); at != graph.end();) {
      // Products one after another have the same input.
      const auto end = is_product(*at) ? std::find_if_not(at, graph.end(), is_product) : at + 1;
      plan_.Begin(*at);
      BOLTBEAM_TRY(is_product(*at) ? products_.Add({at, end}) : Add(*at));
      at = end;
    }
    return plan_.Finish();
  }

 private:
  Result<void> Add(const Operation& operation) {
    switch (operation.kind) {
      case OpKind::kEmbed:
        return Embed(operation);
      case OpKind::kNorm:
        return Norm(operation);
      case OpKind::kMatmul:
        return products_.Add({&operation, 1});
      case OpKind::kRope:
        return attention_.AddRope(operation);
      case OpKind::kAttention:
        return attention_.AddAttention(operation);
      case OpKind::kGate:
        return Gate(operation);
      case OpKind::kArgmax:
        return Argmax(operation);
    }
    return Fail(Code::kInternal, operation.role, "an operation that no kernel family computes");
  }

  /// The stream: while decoding a thread may have its own.
  std::byte* Stream(std::uint32_t thread) const {
    if (!plan_.decode()) return w_.x;
    return w_.streams[plan_.IsOn(kNormInConsumer) ? thread : 0];
  }
  bool HasOwnStreams() const { return c_.model.architecture().post_norms && plan_.IsOn(kNormInConsumer); }
  std::uint64_t XStride() const { return kernel::OutputStride(hyper_.hidden); }

  Result<void> Embed(const Operation& operation) {
    kernel::VectorShape shape{hyper_.hidden, w_.row_bytes, XStride(), c_.facts.lanes};
    BOLTBEAM_ASSIGN(Program program,
                    kernel::BuildDequantizeRow(*operation.weights->format, shape, static_cast<float>(operation.scale)));
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t) buffers.push_back({w_.rows, Stream(t)});
    plan_.AddStep(std::move(program), operation.role, operation.weights->format->name,
                  {1, true, PerChunk::kNo, HasOwnStreams()}, std::move(buffers), w_.row_bytes);
    plan_.EndPhase();
    return {};
  }

  Result<void> Norm(const Operation& operation) {
    if (operation.adds_residual) return AddNormed(operation);
    // What a norm just added to the stream, the same thread did for the same columns.
    if (!plan_.IsColumnwise() || operation.layer < 0) plan_.EndPhase();
    if (operation.layer < 0) plan_.EndBody();
    const std::uint64_t bytes = std::uint64_t{hyper_.hidden} * 4;
    const bool by_one = plan_.decode() && !plan_.Take(kNormInConsumer, true);
    BOLTBEAM_ASSIGN(const std::vector<std::byte*> y, plan_.Scratch("norm", bytes, by_one));
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t)
      buffers.push_back({Stream(t), c_.weights.vector(*operation.weights), y[t]});
    plan_.BeginColumnwise();
    const std::uint32_t late = operation.role == c_.options.slow_part ? c_.options.slow_turns : 0;
    plan_.AddStep(kernel::BuildRmsNorm({hyper_.hidden, XStride(), bytes, c_.facts.lanes, late},
                                       static_cast<float>(hyper_.rms_epsilon)),
                  operation.role, "F32", by_one ? PlanAssembly::OneThread() : plan_.Columnwise(), std::move(buffers),
                  bytes);
    input_.Set(y, hyper_.hidden, by_one ? Owner::kOne : Owner::kEvery);
    return {};
  }

  /// The result of a block, normalised and added to the stream.
  Result<void> AddNormed(const Operation& operation) {
    plan_.EndPhase();
    const bool by_one = plan_.decode() && !plan_.IsOn(kNormInConsumer);
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t)
      buffers.push_back({w_.branch, c_.weights.vector(*operation.weights), Stream(t)});
    plan_.BeginColumnwise();
    plan_.AddStep(kernel::BuildRmsNormAdd({hyper_.hidden, XStride(), XStride(), c_.facts.lanes},
                                          static_cast<float>(hyper_.rms_epsilon)),
                  operation.role, "F32", by_one ? PlanAssembly::OneThread() : plan_.Columnwise(), std::move(buffers),
                  std::uint64_t{hyper_.hidden} * 4);
    return {};
  }

  /// Rows of a group of the layer's table.
  std::uint64_t GroupRows(Role role, const Operation& operation) const {
    return c_.weights.table(*c_.model.Find(role, operation.layer)).layout.lanes;
  }

  Result<void> Gate(const Operation& operation) {
    if (products_.IsGated()) return {};
    // As many work items as the products have row groups, shared in the same way: of one size in both.
    const std::uint64_t rows = GroupRows(Role::kFfnGate, operation);
    const bool by_rows = plan_.Take(kGateByRows, hyper_.ffn % rows == 0 && rows == GroupRows(Role::kFfnUp, operation));
    if (!by_rows) plan_.EndPhase();
    const std::uint64_t bytes = std::uint64_t{hyper_.ffn} * 4;
    BOLTBEAM_ASSIGN(const std::vector<std::byte*> y, plan_.Scratch("gate", bytes, by_rows));
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t) buffers.push_back({w_.gate, w_.up, y[t]});
    plan_.BeginColumnwise();
    // By rows a group counts as a column.
    const kernel::VectorShape shape =
        by_rows ? kernel::VectorShape{rows, 4 * rows, 4 * rows, kernel::LanesFor(rows, c_.facts.lanes)}
                : kernel::VectorShape{hyper_.ffn, kernel::OutputStride(hyper_.ffn), bytes, c_.facts.lanes};
    const auto groups = static_cast<std::int64_t>(hyper_.ffn / rows);
    plan_.AddStep(kernel::BuildGate(shape, GateFunctionOf(c_.model)), operation.role, "F32",
                  by_rows ? PlanAssembly::Once(groups) : plan_.Columnwise(), std::move(buffers), 2 * bytes);
    input_.Set(y, hyper_.ffn, by_rows ? Owner::kParts : Owner::kEvery, rows);
    return {};
  }

  Result<void> Argmax(const Operation& operation) {
    if (!plan_.decode()) return {};
    plan_.EndPhase();
    if (products_.best() != nullptr) {
      // No part of the graph: what the graph calls argmax is done inside the product.
      plan_.AddStep(kernel::BuildArgmaxFinal(c_.threads, true), "best_logit", "F32", PlanAssembly::Once(1),
                    plan_.Shared({products_.best(), w_.argmax}));
      return {};
    }
    const std::uint64_t vocab = hyper_.vocab;
    const auto runs = static_cast<std::int64_t>(CeilDiv<std::uint64_t>(vocab, kernel::kArgmaxChunk));
    plan_.AddStep(kernel::BuildArgmaxPartial(vocab, c_.facts.lanes), operation.role, "F32", PlanAssembly::Once(runs),
                  plan_.Shared({w_.logits, w_.argmax_partial}), vocab * 4);
    plan_.EndPhase();
    plan_.AddStep(kernel::BuildArgmaxFinal(static_cast<std::uint64_t>(runs)), operation.role, "F32",
                  PlanAssembly::Once(1), plan_.Shared({w_.argmax_partial, w_.argmax}));
    return {};
  }

  PlanContext& c_;
  const Workspace& w_;
  const model::HyperParameters& hyper_;
  PlanAssembly plan_;
  ProductInput input_;
  ProductsPart products_;
  AttentionPart attention_;
};

}  // namespace

Result<Plan> BuildPlan(PlanContext& context, bool decode) {
  BOLTBEAM_ASSIGN(Plan plan, TokenPlanner(context, decode).Build());
  BOLTBEAM_TRY(CheckProvenance(plan));
  return plan;
}

namespace {

StepFault FaultOf(const Step& step, std::uint32_t thread, const Faults& faults) {
  if (step.info.role != faults.part || !step.info.streams) return {};
  return {thread == faults.late_thread ? faults.late_ns : 0, faults.scattered};
}

}  // namespace

void Plan::Flatten(std::uint32_t threads, const Faults& faults) {
  calls.assign(threads, {});
  pointers.assign(threads, {});
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    for (const Step& step : steps) {
      const std::vector<void*>& own = step.buffers[thread];
      pointers[thread].insert(pointers[thread].end(), own.begin(), own.end());
    }
    void* const* next = pointers[thread].data();
    for (const Step& step : steps) {
      const std::size_t count = step.buffers[thread].size();
      const StepFault fault = FaultOf(step, thread, faults);
      calls[thread].push_back({step.function, next, static_cast<std::uint32_t>(count), step.work,
                               fault.scattered ? 0 : step.piece_items, !step.shares.empty(),
                               step.shares.empty() ? runtime::Range{} : step.shares[thread], fault});
      next += count;
    }
  }
}

Result<void> CheckProvenance(const Plan& plan) {
  for (const Step& step : plan.steps) {
    const kernel::Provenance provenance = step.program->provenance;
    if (provenance != kernel::Provenance::kSearchGenerated && provenance != kernel::Provenance::kCompilerGenerated) {
      return Fail(Code::kKernelProvenance, step.program->name, std::string(kernel::ProvenanceName(provenance)),
                  "search_generated or compiler_generated: no other kernel ships in a default plan");
    }
  }
  return {};
}

}  // namespace boltbeam::engine
