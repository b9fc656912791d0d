#include "engine/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/routes.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/gemv.h"
#include "model/token_graph.h"

namespace boltbeam::engine {
namespace {

using kernel::ActivationLayout;
using kernel::Program;
using model::OpKind;
using model::Role;

class PlanBuilder {
 public:
  PlanBuilder(PlanContext& context, bool decode)
      : c_(context),
        w_(context.workspace),
        hyper_(context.model.hyper()),
        decode_(decode),
        columns_(decode ? 1 : context.workspace.max_columns) {}

  Result<Plan> Build() && {
    const std::vector<model::Operation> graph = model::BuildTokenGraph(c_.model, {});
    for (const model::Operation& operation : graph) {
      operation_ = &operation;
      BOLTBEAM_TRY(Add(operation));
    }
    EndPhase();
    return std::move(plan_);
  }

 private:
  using Buffers = std::vector<std::vector<void*>>;

  Result<void> Add(const model::Operation& operation) {
    switch (operation.kind) {
      case OpKind::kEmbed:
        return Embed(operation);
      case OpKind::kNorm:
        return Norm(operation);
      case OpKind::kMatmul:
        return Matmul(operation);
      case OpKind::kRope:
        return Rope(operation);
      case OpKind::kAttention:
        return Attention();
      case OpKind::kGate:
        return Gate();
      case OpKind::kArgmax:
        return Argmax();
    }
    return Fail(Code::kInternal, operation.role, "an operation that no kernel family computes");
  }

  // Buffers that differ from thread to thread are cut anew for each; shared ones repeat.
  Buffers Shared(const std::vector<void*>& buffers) const { return Buffers(c_.threads, buffers); }

  /// Memory for a vector that the products of a phase read: of every thread's own while decoding, unless the threads
  /// fill it together.
  Result<std::vector<std::byte*>> Scratch(const std::string& purpose, std::uint64_t column_bytes,
                                          bool together = false) {
    const auto [place, is_new] = scratch_.try_emplace(purpose + (together ? ".together" : ""));
    if (is_new) {
      const std::uint32_t copies = decode_ && !together ? c_.threads : 1;
      const std::uint64_t padded = AlignUp<std::uint64_t>(columns_, 16);  // tiles of columns may be padded
      for (std::uint32_t copy = 0; copy < copies; ++copy) {
        BOLTBEAM_ASSIGN(std::byte * memory, c_.arena.Allocate(column_bytes * (decode_ ? 1 : padded)));
        place->second.push_back(memory);
      }
      place->second.resize(c_.threads, place->second.front());
    }
    return place->second;
  }

  Work Columnwise(std::int64_t items = 1) const { return {items, true, PerChunk::kNo, decode_}; }
  static Work Once(std::int64_t items) { return {items, false, PerChunk::kNo, false}; }

  /// The stream: while decoding a thread may have its own.
  std::byte* Stream(std::uint32_t thread) const { return decode_ ? w_.streams[thread] : w_.x; }
  bool HasOwnStreams() const { return c_.model.architecture().post_norms; }

  /// Whether a decode plan may take a route; counts that it does.
  bool Take(std::string_view route, bool is_possible) {
    if (!decode_ || !is_possible || std::ranges::find(c_.options.without, route) != c_.options.without.end()) {
      return false;
    }
    ++plan_.route_uses[route];
    return true;
  }

  void AddStep(Program&& program, const std::string& role, const std::string& format, Work work, Buffers buffers,
               std::uint64_t stored_bytes = 0) {
    const std::string identity = kernel::Identity(program);
    const auto place = c_.programs.try_emplace(identity, std::move(program)).first;
    Step step;
    step.program = &place->second;
    step.info.role = role;
    step.info.format = format;
    step.info.layer = operation_->layer;
    step.info.kernel = step.program->name;
    step.info.kernel_id = identity;
    step.info.provenance = kernel::ProvenanceName(step.program->provenance);
    step.info.phase = static_cast<std::uint32_t>(plan_.phase_end.size());
    step.info.stored_bytes = stored_bytes;
    step.work = work;
    step.buffers = std::move(buffers);
    plan_.steps.push_back(std::move(step));
  }

  void EndPhase() {
    const auto end = static_cast<std::uint32_t>(plan_.steps.size());
    if (end != 0 && (plan_.phase_end.empty() || plan_.phase_end.back() != end)) plan_.phase_end.push_back(end);
    is_columnwise_ = false;
    is_spread_ = false;
  }

  /// While a prompt is read, columnwise steps are shared among threads: their results need a barrier before a product.
  void BeginColumnwise() { is_columnwise_ = true; }
  void EndColumnwise() {
    if (is_spread_ || (is_columnwise_ && !decode_)) EndPhase();
    is_columnwise_ = false;
  }

  std::uint64_t XStride() const { return kernel::OutputStride(hyper_.hidden); }

  Result<void> Embed(const model::Operation& operation) {
    kernel::VectorShape shape{hyper_.hidden, w_.row_bytes, XStride(), c_.facts.lanes};
    BOLTBEAM_ASSIGN(Program program,
                    kernel::BuildDequantizeRow(*operation.weights->format, shape, static_cast<float>(operation.scale)));
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t) buffers.push_back({w_.rows, Stream(t)});
    AddStep(std::move(program), operation.role, operation.weights->format->name,
            {1, true, PerChunk::kNo, decode_ && HasOwnStreams()}, std::move(buffers), w_.row_bytes);
    EndPhase();
    return {};
  }

  Result<void> Norm(const model::Operation& operation) {
    if (operation.adds_residual) return AddNormed(operation);
    // What a norm just added to the stream, the same thread did for the same columns.
    if (!is_columnwise_ || operation.layer < 0) EndPhase();
    if (operation.layer < 0) {
      plan_.body_steps = static_cast<std::uint32_t>(plan_.steps.size());
      plan_.body_phases = static_cast<std::uint32_t>(plan_.phase_end.size());
    }
    const std::uint64_t bytes = std::uint64_t{hyper_.hidden} * 4;
    BOLTBEAM_ASSIGN(const std::vector<std::byte*> y, Scratch("norm", bytes));
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t)
      buffers.push_back({Stream(t), c_.weights.vector(*operation.weights), y[t]});
    BeginColumnwise();
    AddStep(
        kernel::BuildRmsNorm({hyper_.hidden, XStride(), bytes, c_.facts.lanes}, static_cast<float>(hyper_.rms_epsilon)),
        operation.role, "F32", Columnwise(), std::move(buffers), bytes);
    SetInput(y, hyper_.hidden);
    return {};
  }

  /// The result of a block, normalised and added to the stream.
  Result<void> AddNormed(const model::Operation& operation) {
    EndPhase();
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t)
      buffers.push_back({w_.branch, c_.weights.vector(*operation.weights), Stream(t)});
    BeginColumnwise();
    AddStep(kernel::BuildRmsNormAdd({hyper_.hidden, XStride(), XStride(), c_.facts.lanes},
                                    static_cast<float>(hyper_.rms_epsilon)),
            operation.role, "F32", Columnwise(), std::move(buffers), std::uint64_t{hyper_.hidden} * 4);
    return {};
  }

  void SetInput(std::vector<std::byte*> vectors, std::uint64_t elements) {
    input_ = std::move(vectors);
    input_elements_ = elements;
    quantised_.clear();
  }

  bool HasWholeBlocksForEveryThread(const ActivationLayout& layout) const {
    return input_elements_ % (std::uint64_t{layout.elements} * c_.threads) == 0;
  }

  /// The current input in the form that a table's products read, quantised at most once per form.
  Result<std::vector<std::byte*>> InputFor(const ActivationLayout& layout) {
    if (layout.is_float) return input_;
    for (const auto& [known, buffers] : quantised_) {
      if (known == layout) return buffers;
    }
    const std::string purpose = fmt::format("act.{}.{}.{}.{}.{}", input_elements_, layout.elements, layout.sum_elements,
                                            layout.bias, layout.block_bytes);
    const bool together = is_spread_ && Take(kQuantiseByBlocks, HasWholeBlocksForEveryThread(layout));
    if (is_spread_ && !together) EndPhase();
    BOLTBEAM_ASSIGN(std::vector<std::byte*> out, Scratch(purpose, layout.ColumnBytes(input_elements_), together));
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t) buffers.push_back({input_[t], out[t]});
    BeginColumnwise();
    // While decoding a block counts as a column: the work items are blocks.
    const std::uint64_t elements = decode_ ? layout.elements : input_elements_;
    const auto items = static_cast<std::int64_t>(input_elements_ / elements);
    AddStep(kernel::BuildQuantize({elements, elements * 4, 0, c_.facts.lanes}, layout), "quantize", "F32",
            together ? Once(items) : Columnwise(items), std::move(buffers), input_elements_ * 4);
    quantised_.emplace_back(layout, out);
    return out;
  }

  struct Target {
    std::byte* output = nullptr;
    kernel::Epilogue epilogue = kernel::Epilogue::kStore;
  };

  Result<Target> TargetOf(Role role) const {
    switch (role) {
      case Role::kAttnQ:
        return Target{w_.query};
      case Role::kAttnK:
        return Target{w_.key};
      case Role::kAttnV:
        return Target{w_.value};
      case Role::kAttnOutput:
      case Role::kFfnDown:
        if (operation_->adds_residual) return Target{w_.x, kernel::Epilogue::kResidual};
        return Target{w_.branch};
      case Role::kFfnGate:
        return Target{w_.gate};
      case Role::kFfnUp:
        return Target{w_.up};
      case Role::kHead:
      case Role::kEmbedding:
        return Target{w_.logits};
      default:
        return Fail(Code::kInternal, operation_->role, "a table that no product reads");
    }
  }

  Result<void> Matmul(const model::Operation& operation) {
    const Table& table = c_.weights.table(*operation.weights);
    kernel::GemvGeometry geometry = kernel::DefaultGeometry(*operation.weights->format, c_.facts, !decode_);
    BOLTBEAM_ASSIGN(Target target, TargetOf(operation.weights->role));
    const model::Tensor* bias = operation.bias;
    if (bias != nullptr) target.epilogue = kernel::Epilogue::kBias;
    BOLTBEAM_ASSIGN(const std::vector<std::byte*> input, InputFor(kernel::ActivationsFor(table.layout, geometry.dot)));
    kernel::GemvShape shape{operation.rows, operation.cols, target.epilogue, 0};
    if (operation.role == c_.options.slow_part) shape.delay_turns = c_.options.slow_turns;
    BOLTBEAM_ASSIGN(Program program, kernel::BuildGemv(table.layout, geometry, shape));
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t) {
      std::vector<void*> own{table.base[t], input[t], target.output};
      if (bias != nullptr) own.push_back(c_.weights.vector(*bias));
      if (geometry.columns > 1) own.push_back(w_.state);
      buffers.push_back(std::move(own));
    }
    EndColumnwise();
    AddStep(std::move(program), operation.role, operation.weights->format->name, Once(table.groups()),
            std::move(buffers), table.bytes);
    return {};
  }

  bool IsLocal() const { return hyper_.IsLocal(static_cast<std::uint32_t>(operation_->layer)); }

  kernel::AttentionShape LayerAttention() const {
    kernel::AttentionShape shape = c_.attention;
    if (IsLocal()) shape.window = hyper_.sliding_window;
    return shape;
  }

  std::byte* KeyCache() const {
    return w_.cache + static_cast<std::uint64_t>(operation_->layer) * c_.attention.LayerCacheBytes();
  }
  std::byte* ValueCache() const { return KeyCache() + c_.attention.KeysBytes(); }

  Result<void> Rope(const model::Operation& operation) {
    // Then the rows of q, k and v that a thread computes are whole heads, and the same ones in all three.
    by_heads_ = Take(kAttentionByHeads, hyper_.kv_heads % c_.threads == 0 && hyper_.head_dim % c_.facts.lanes == 0);
    if (!by_heads_) EndPhase();
    std::byte* const table = IsLocal() ? w_.local_rope_table : w_.rope_table;
    std::vector<void*> queries{w_.query, table, w_.state};
    std::vector<void*> keys{w_.key, table, w_.state, KeyCache()};
    if (c_.attention.has_norm) {
      queries.push_back(c_.weights.vector(*c_.model.Find(Role::kAttnQNorm, operation.layer)));
      keys.push_back(c_.weights.vector(*c_.model.Find(Role::kAttnKNorm, operation.layer)));
    }
    AddStep(kernel::BuildRope(c_.attention, false), operation.role, "F32", Once(hyper_.heads), Shared(queries));
    AddStep(kernel::BuildRope(c_.attention, true), operation.role, "F32", Once(hyper_.kv_heads), Shared(keys));
    AddStep(kernel::BuildAppendValues(c_.attention), operation.role, "F32", Once(hyper_.kv_heads),
            Shared({w_.value, w_.state, ValueCache()}));
    if (!by_heads_) EndPhase();
    return {};
  }

  Result<void> Attention() {
    const kernel::AttentionShape shape = LayerAttention();
    BOLTBEAM_ASSIGN(const std::vector<std::byte*> scratch, ThreadScratch());
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t) {
      buffers.push_back({w_.query, KeyCache(), ValueCache(), w_.state, w_.partial, scratch[t]});
    }
    const std::string format = c_.attention.kv == kernel::Memory::kF16 ? "F16" : "F32";
    const PerChunk per_chunk = shape.window == 0 ? PerChunk::kAll : PerChunk::kWindow;
    AddStep(kernel::BuildAttention(shape), operation_->role, format, {hyper_.kv_heads, false, per_chunk, false},
            std::move(buffers));
    if (!by_heads_) EndPhase();
    const std::uint64_t elements = std::uint64_t{hyper_.heads} * hyper_.head_dim;
    BOLTBEAM_ASSIGN(const std::vector<std::byte*> y, Scratch("attention", elements * 4, by_heads_));
    Buffers combine;
    for (std::uint32_t t = 0; t < c_.threads; ++t) combine.push_back({w_.partial, w_.state, y[t]});
    BeginColumnwise();
    AddStep(kernel::BuildCombine(shape), operation_->role, format,
            by_heads_ ? Once(hyper_.heads) : Columnwise(hyper_.heads), std::move(combine));
    EndColumnwise();  // heads are shared among threads otherwise than the columns that follow
    SetInput(y, elements);
    is_spread_ = by_heads_;
    return {};
  }

  /// Scores of one chunk, in memory of each thread's own whatever the plan.
  Result<std::vector<std::byte*>> ThreadScratch() {
    std::vector<std::byte*>& memory = scratch_["scores"];
    while (memory.size() < c_.threads) {
      BOLTBEAM_ASSIGN(std::byte * place, c_.arena.Allocate(c_.attention.ScratchBytes()));
      memory.push_back(place);
    }
    return memory;
  }

  Result<void> Gate() {
    const std::uint64_t lanes = c_.facts.lanes;
    const bool by_rows = Take(kGateByRows, hyper_.ffn % lanes == 0);
    if (!by_rows) EndPhase();
    const std::uint64_t bytes = std::uint64_t{hyper_.ffn} * 4;
    BOLTBEAM_ASSIGN(const std::vector<std::byte*> y, Scratch("gate", bytes, by_rows));
    Buffers buffers;
    for (std::uint32_t t = 0; t < c_.threads; ++t) buffers.push_back({w_.gate, w_.up, y[t]});
    BeginColumnwise();
    // By rows a vector counts as a column: as many work items as the products have row groups, shared in the same way.
    const kernel::VectorShape shape =
        by_rows ? kernel::VectorShape{lanes, 4 * lanes, 4 * lanes, c_.facts.lanes}
                : kernel::VectorShape{hyper_.ffn, kernel::OutputStride(hyper_.ffn), bytes, c_.facts.lanes};
    const auto vectors = static_cast<std::int64_t>(hyper_.ffn / lanes);
    const bool is_gelu = c_.model.architecture().activation == model::Activation::kGelu;
    AddStep(kernel::BuildGate(shape, is_gelu ? kernel::GateFunction::kGelu : kernel::GateFunction::kSilu),
            operation_->role, "F32", by_rows ? Once(vectors) : Columnwise(), std::move(buffers), 2 * bytes);
    SetInput(y, hyper_.ffn);
    is_spread_ = by_rows;
    return {};
  }

  Result<void> Argmax() {
    if (!decode_) return {};
    EndPhase();
    const std::uint64_t vocab = hyper_.vocab;
    const auto runs = static_cast<std::int64_t>(CeilDiv<std::uint64_t>(vocab, kernel::kArgmaxChunk));
    AddStep(kernel::BuildArgmaxPartial(vocab, c_.facts.lanes), operation_->role, "F32", Once(runs),
            Shared({w_.logits, w_.argmax_partial}), vocab * 4);
    EndPhase();
    AddStep(kernel::BuildArgmaxFinal(static_cast<std::uint64_t>(runs)), operation_->role, "F32", Once(1),
            Shared({w_.argmax_partial, w_.argmax}));
    return {};
  }

  PlanContext& c_;
  const Workspace& w_;
  const model::HyperParameters& hyper_;
  const bool decode_;
  const std::uint64_t columns_;
  Plan plan_;
  const model::Operation* operation_ = nullptr;
  bool is_columnwise_ = false;
  bool is_spread_ = false;  // every thread has computed a part of the input, and no barrier came since
  bool by_heads_ = false;   // in this layer
  std::map<std::string, std::vector<std::byte*>> scratch_;
  std::vector<std::byte*> input_;
  std::uint64_t input_elements_ = 0;
  std::vector<std::pair<ActivationLayout, std::vector<std::byte*>>> quantised_;
};

}  // namespace

Result<Plan> BuildPlan(PlanContext& context, bool decode) {
  BOLTBEAM_ASSIGN(Plan plan, PlanBuilder(context, decode).Build());
  BOLTBEAM_TRY(CheckProvenance(plan));
  return plan;
}

void Plan::Flatten(std::uint32_t threads) {
  calls.assign(threads, {});
  pointers.assign(threads, {});
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    for (const Step& step : steps) {
      const std::vector<void*>& own = step.buffers[thread];
      pointers[thread].insert(pointers[thread].end(), own.begin(), own.end());
    }
    void* const* next = pointers[thread].data();
    for (const Step& step : steps) {
      calls[thread].push_back({step.function, next, step.work});
      next += step.buffers[thread].size();
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
