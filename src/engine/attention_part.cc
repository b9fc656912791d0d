#include "engine/attention_part.h"

#include "engine/routes.h"
#include "kernel/families/elementwise.h"

namespace boltbeam::engine {

using model::Role;

bool AttentionPart::IsLocal(const model::Operation& operation) const {
  return plan_.hyper().IsLocal(static_cast<std::uint32_t>(operation.layer));
}

kernel::AttentionShape AttentionPart::ShapeOf(const model::Operation& operation) const {
  kernel::AttentionShape shape = plan_.context().attention;
  if (IsLocal(operation)) shape.window = plan_.hyper().sliding_window;
  return shape;
}

std::byte* AttentionPart::KeyCache(const model::Operation& operation) const {
  const std::uint64_t layer = static_cast<std::uint64_t>(operation.layer);
  return plan_.workspace().cache + layer * plan_.context().attention.LayerCacheBytes();
}

std::byte* AttentionPart::ValueCache(const model::Operation& operation) const {
  return KeyCache(operation) + plan_.context().attention.KeysBytes();
}

Result<void> AttentionPart::AddRope(const model::Operation& operation) {
  const model::HyperParameters& hyper = plan_.hyper();
  const Workspace& w = plan_.workspace();
  const PlanContext& c = plan_.context();
  // Then the rows of q, k and v that a thread computes are whole heads, and the same ones in all three.
  const auto table_of = [&](const model::Tensor& tensor) -> const Table& { return c.weights.table(tensor); };
  by_heads_ = plan_.Take(kAttentionByHeads, HeadsFit(c.model, operation.layer, table_of, plan_.threads()));
  if (!by_heads_) plan_.EndPhase();
  std::byte* const table = IsLocal(operation) ? w.local_rope_table : w.rope_table;
  const bool is_coded = c.attention.key.IsCoded();
  Buffers queries, keys, values;
  for (std::uint32_t t = 0; t < plan_.threads(); ++t) {
    queries.push_back({plan_.Heads(Role::kAttnQ, t), table, w.state});
    keys.push_back({plan_.Heads(Role::kAttnK, t), table, w.state});
    if (!is_coded) keys.back().push_back(KeyCache(operation));
    values.push_back({plan_.Heads(Role::kAttnV, t), w.state, ValueCache(operation)});
    if (!c.attention.has_norm) continue;
    queries.back().push_back(c.weights.vector(*c.model.Find(Role::kAttnQNorm, operation.layer)));
    keys.back().push_back(c.weights.vector(*c.model.Find(Role::kAttnKNorm, operation.layer)));
  }
  const auto by_head = [](std::uint32_t heads) { return PlanAssembly::Once(heads); };
  plan_.AddStep(kernel::BuildRope(c.attention, false), operation.role, "F32", by_head(hyper.heads), std::move(queries));
  plan_.AddStep(kernel::BuildRope(c.attention, true), operation.role, "F32", by_head(hyper.kv_heads), std::move(keys));
  plan_.AddStep(kernel::BuildAppendValues(c.attention), operation.role, "F32", by_head(hyper.kv_heads),
                std::move(values));
  if (is_coded) AddCodes(operation);
  if (!by_heads_) plan_.EndPhase();
  return {};
}

void AttentionPart::AddCodes(const model::Operation& operation) {
  const std::uint32_t heads = plan_.hyper().heads, kv_heads = plan_.hyper().kv_heads;
  const Workspace& w = plan_.workspace();
  const kernel::AttentionShape& shape = plan_.context().attention;
  Buffers keys, queries;
  for (std::uint32_t t = 0; t < plan_.threads(); ++t) {
    keys.push_back({plan_.Heads(Role::kAttnK, t), w.state, KeyCache(operation)});
    queries.push_back({plan_.Heads(Role::kAttnQ, t), w.query_codes});
  }
  plan_.AddStep(kernel::BuildAppendKeyCodes(shape), operation.role, "F32", PlanAssembly::Once(kv_heads),
                std::move(keys));
  // While decoding a thread codes the heads that it has rotated; columns are shared among the threads otherwise.
  if (!plan_.decode()) plan_.EndPhase();
  const std::uint64_t head_bytes = std::uint64_t{shape.head_dim} * 4;
  plan_.AddStep(kernel::BuildQuantize({shape.head_dim, head_bytes, 0, plan_.lanes()}, shape.QueryCodes()),
                operation.role, "F32", {heads, true, PerChunk::kNo, false}, std::move(queries));
}

Result<void> AttentionPart::AddAttention(const model::Operation& operation) {
  const model::HyperParameters& hyper = plan_.hyper();
  const Workspace& w = plan_.workspace();
  const kernel::AttentionShape shape = ShapeOf(operation);
  BOLTBEAM_ASSIGN(const std::vector<std::byte*> scratch, plan_.ThreadScratch("scores", shape.ScratchBytes()));
  Buffers buffers;
  for (std::uint32_t t = 0; t < plan_.threads(); ++t) {
    void* const query = shape.key.IsCoded() ? w.query_codes : plan_.Heads(Role::kAttnQ, t);
    buffers.push_back({query, KeyCache(operation), ValueCache(operation), w.state, w.partial, scratch[t]});
  }
  const std::string format = plan_.context().options.cache.Name();
  const PerChunk per_chunk = shape.window == 0 ? PerChunk::kAll : PerChunk::kWindow;
  plan_.AddStep(kernel::BuildAttention(shape), operation.role, format, {hyper.kv_heads, false, per_chunk, false},
                std::move(buffers));
  plan_.LastStep().info.streams = true;
  if (!by_heads_) plan_.EndPhase();
  const std::uint64_t elements = std::uint64_t{hyper.heads} * hyper.head_dim;
  BOLTBEAM_ASSIGN(const std::vector<std::byte*> y, plan_.Scratch("attention", elements * 4, by_heads_));
  Buffers combine;
  for (std::uint32_t t = 0; t < plan_.threads(); ++t) combine.push_back({w.partial, w.state, y[t]});
  plan_.BeginColumnwise();
  plan_.AddStep(kernel::BuildCombine(shape), operation.role, format,
                by_heads_ ? PlanAssembly::Once(hyper.heads) : plan_.Columnwise(hyper.heads), std::move(combine));
  plan_.EndColumnwise();  // heads are shared among threads otherwise than the columns that follow
  input_.Set(y, elements, by_heads_ ? ProductInput::Owner::kParts : ProductInput::Owner::kEvery,
             hyper.head_dim * (hyper.heads / hyper.kv_heads));
  return {};
}

}  // namespace boltbeam::engine
