// The operations of one forward pass of M tokens at context depth d: the one description that the floor, the engine,
// the account and the comparison walk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/cache_format.h"
#include "model/model.h"

namespace boltbeam::model {

enum class OpKind : std::uint8_t {
  kEmbed,      // gather M rows of the embedding
  kNorm,       // RMSNorm, and the quantisation of its result for the products that follow
  kMatmul,     // a weight table times M activation columns; `adds_residual` when the result is added to the stream
  kRope,       // qk-norm, RoPE of q and k, append to the KV cache
  kAttention,  // scores, softmax, weighted sum over the KV cache
  kGate,       // activation(gate) * up
  kArgmax,
};

/// One operation. Bytes are what one pass must move at least, per source.
struct Operation {
  OpKind kind = OpKind::kMatmul;
  std::string role;  // the account's part: attn_qo, attn_kv, ffn_gate_up, ffn_down, lm_head, norm, rope, ...
  std::int32_t layer = -1;
  const Tensor* weights = nullptr;                // kMatmul and kEmbed: the table. kNorm: the norm's vector
  const Tensor* bias = nullptr;                   // kMatmul: added to its result
  std::uint64_t rows = 0, cols = 0, columns = 1;  // kMatmul: [rows x cols] times `columns` vectors
  bool adds_residual = false;
  double scale = 1;                    // kEmbed: of the rows
  std::uint64_t weight_bytes = 0;      // read of the table: whole, or the rows that kEmbed gathers
  std::uint64_t activation_bytes = 0;  // 16-bit activations in and out
  std::uint64_t kv_bytes = 0;          // KV cache read
  std::uint64_t kv_append_bytes = 0;   // KV cache written: shown, not part of a floor
  std::uint64_t flops = 0;             // 2 per multiply-add

  /// Whether the memory has to deliver it: tables and the KV cache. Everything else touches only activations and small
  /// vectors, which a cache holds.
  [[nodiscard]] bool Streams() const { return kind == OpKind::kMatmul || kind == OpKind::kAttention; }
};

struct GraphOptions {
  std::uint64_t tokens = 1;     // positions of one sequence computed together
  std::uint64_t depth = 0;      // positions already in its KV cache
  std::uint64_t sequences = 1;  // independent sequences, each with its own KV cache
  CacheFormats cache = {};
  bool head_once = true;  // a prompt needs logits of its last token only
};

std::vector<Operation> BuildTokenGraph(const Model& model, const GraphOptions& options);

/// The part that a weight role belongs to: kAttnQ and kAttnOutput are attn_qo, kAttnK and kAttnV attn_kv, ...
std::string_view PartOfRole(Role role);

}  // namespace boltbeam::model
