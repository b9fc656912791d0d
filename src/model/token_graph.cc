#include "model/token_graph.h"

#include <algorithm>
#include <cmath>

namespace boltbeam::model {
namespace {

constexpr std::uint64_t kActivationBytes = 2;  // of one element

class GraphBuilder {
 public:
  GraphBuilder(const Model& model, const GraphOptions& options)
      : model_(model), hyper_(model.hyper()), options_(options), columns_(options.tokens * options.sequences) {}

  std::vector<Operation> Build() {
    Embed();
    for (std::uint32_t layer = 0; layer < hyper_.layers; ++layer) {
      layer_ = static_cast<std::int32_t>(layer);
      AttentionBlock();
      FeedForwardBlock();
    }
    layer_ = -1;
    if (options_.head_once) columns_ = options_.sequences;
    Norm(*model_.Find(Role::kOutputNorm), false);
    Matmul(model_.head(), Role::kHead, nullptr, false);
    Elementwise(OpKind::kArgmax, "argmax", hyper_.vocab, 0, 0);
    return std::move(operations_);
  }

 private:
  Operation& Add(OpKind kind, std::string_view role) {
    Operation& operation = operations_.emplace_back();
    operation.kind = kind;
    operation.role = role;
    operation.layer = layer_;
    operation.columns = columns_;
    return operation;
  }

  void Embed() {
    const Tensor& table = *model_.Find(Role::kEmbedding);
    Operation& operation = Add(OpKind::kEmbed, "embed");
    operation.weights = &table;
    operation.cols = hyper_.hidden;
    if (model_.architecture().scale_embedding) operation.scale = std::sqrt(static_cast<double>(hyper_.hidden));
    operation.weight_bytes = table.info->bytes / table.rows() * columns_;
    operation.activation_bytes = kActivationBytes * hyper_.hidden * columns_;
  }

  void Norm(const Tensor& weights, bool adds_residual) {
    Operation& operation = Add(OpKind::kNorm, "norm");
    operation.weights = &weights;
    operation.cols = weights.info->shape[0];
    operation.adds_residual = adds_residual;
    operation.weight_bytes = weights.info->bytes;
    operation.activation_bytes = kActivationBytes * 2 * operation.cols * columns_;
    operation.flops = 4 * operation.cols * columns_;  // square and add, scale and multiply
  }

  void Matmul(const Tensor& weights, Role role, const Tensor* bias, bool adds_residual) {
    Operation& operation = Add(OpKind::kMatmul, PartOfRole(role));
    operation.weights = &weights;
    operation.bias = bias;
    operation.rows = weights.rows();
    operation.cols = weights.cols();
    operation.adds_residual = adds_residual;
    operation.weight_bytes = weights.info->bytes;
    operation.activation_bytes = kActivationBytes * (operation.rows + operation.cols) * columns_;
    operation.flops = 2 * operation.rows * operation.cols * columns_;
  }

  void LayerMatmul(Role role, bool adds_residual, Role bias_role = Role::kEmbedding) {
    const Tensor* bias = bias_role == Role::kEmbedding ? nullptr : model_.Find(bias_role, layer_);
    Matmul(*model_.Find(role, layer_), role, bias, adds_residual);
  }

  /// An operation on activations only: so many elements in and out, and operations, for each column.
  void Elementwise(OpKind kind, std::string_view role, std::uint64_t in, std::uint64_t out, std::uint64_t flops) {
    Operation& operation = Add(kind, role);
    operation.activation_bytes = kActivationBytes * (in + out) * columns_;
    operation.flops = flops * columns_;
  }

  std::uint64_t QueryElements() const { return std::uint64_t{hyper_.heads} * hyper_.head_dim; }
  std::uint64_t KvElements() const { return std::uint64_t{hyper_.kv_heads} * hyper_.head_dim; }

  void Rope() {
    const std::uint64_t rotated = QueryElements() + KvElements();
    Elementwise(OpKind::kRope, "rope", rotated, rotated,
                3 * rotated + (model_.architecture().qk_norm ? 4 * rotated : 0));
    operations_.back().kv_append_bytes = options_.cache.Bytes(KvElements()) * columns_;
  }

  /// Positions that the tokens of a sequence look at, summed: each sees those before it and itself.
  std::uint64_t SeenPositions(std::uint32_t layer) const {
    const std::uint64_t first = options_.depth + 1;
    const std::uint64_t last = options_.depth + options_.tokens;
    const std::uint64_t most = hyper_.KvPositions(layer, last);
    if (first >= most) return options_.tokens * most;  // all of them look at a full window
    return (first + most) * (most - first + 1) / 2 + (last - most) * most;
  }

  void Attention() {
    const auto layer = static_cast<std::uint32_t>(layer_);
    Operation& operation = Add(OpKind::kAttention, "attention");
    // Tokens of one sequence share one read of its cache; every sequence has its own.
    operation.kv_bytes =
        options_.cache.Bytes(KvElements()) * hyper_.KvPositions(layer, options_.depth) * options_.sequences;
    operation.activation_bytes = kActivationBytes * 2 * QueryElements() * columns_;
    operation.flops = 4 * QueryElements() * SeenPositions(layer) * options_.sequences;  // scores and weighted sum
  }

  void AttentionBlock() {
    const bool post_norm = model_.architecture().post_norms;
    Norm(*model_.Find(Role::kAttnNorm, layer_), false);
    LayerMatmul(Role::kAttnQ, false, Role::kAttnQBias);
    LayerMatmul(Role::kAttnK, false, Role::kAttnKBias);
    LayerMatmul(Role::kAttnV, false, Role::kAttnVBias);
    Rope();
    Attention();
    LayerMatmul(Role::kAttnOutput, !post_norm);
    if (post_norm) Norm(*model_.Find(Role::kAttnPostNorm, layer_), true);
  }

  void FeedForwardBlock() {
    const bool post_norm = model_.architecture().post_norms;
    Norm(*model_.Find(Role::kFfnNorm, layer_), false);
    LayerMatmul(Role::kFfnGate, false);
    LayerMatmul(Role::kFfnUp, false);
    Elementwise(OpKind::kGate, "gate", std::uint64_t{2} * hyper_.ffn, hyper_.ffn, std::uint64_t{2} * hyper_.ffn);
    LayerMatmul(Role::kFfnDown, !post_norm);
    if (post_norm) Norm(*model_.Find(Role::kFfnPostNorm, layer_), true);
  }

  const Model& model_;
  const HyperParameters& hyper_;
  const GraphOptions& options_;
  std::uint64_t columns_;
  std::int32_t layer_ = -1;
  std::vector<Operation> operations_;
};

}  // namespace

std::vector<Operation> BuildTokenGraph(const Model& model, const GraphOptions& options) {
  return GraphBuilder(model, options).Build();
}

}  // namespace boltbeam::model
