// A language model as its GGUF file describes it: hyper-parameters, and every tensor with its role.
//
// A tensor or an architecture that can't be classified is refused by name: nothing is guessed. What distinguishes one
// architecture from another is a row of data/models/architectures.json, never an if in code.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/format.h"
#include "gguf/file.h"

namespace boltbeam::model {

enum class RopeKind : std::uint8_t { kNorm, kNeox };  // pairs (2i, 2i+1) or (i, i + n/2)
enum class Activation : std::uint8_t { kSilu, kGelu };

/// What an architecture's row says: the differences between dense decoders.
struct Architecture {
  std::string name;  // general.architecture
  RopeKind rope = RopeKind::kNorm;
  Activation activation = Activation::kSilu;
  bool qk_norm = false;          // RMSNorm per head on q and k before RoPE
  bool qkv_bias = false;         // biases on q, k, v may be present
  bool post_norms = false;       // norms after attention and after the feed-forward block, before the residual
  bool scale_embedding = false;  // embedding * sqrt(hidden)
  bool runnable = false;         // false: inspected and bounded only
  std::string not_runnable_reason;
};

struct HyperParameters {
  std::uint32_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, context = 0;
  std::uint32_t rope_dims = 0;
  double rms_epsilon = 0, rope_base = 10000, attention_scale = 0;  // attention_scale: 1/sqrt(head_dim) by default
  double rope_frequency_scale = 1;                                 // linear scaling: 1/factor
  std::uint32_t sliding_window = 0;                                // 0: none
  std::uint32_t sliding_window_pattern = 0;                        // every n-th layer is global
  double local_rope_base = 10000;                                  // of the layers that are not; their scale is 1

  /// Whether the layer looks back a sliding window only: its rotation is by local_rope_base.
  [[nodiscard]] bool IsLocal(std::uint32_t layer) const;
  /// Positions of the KV cache that layer reads when the context holds depth of them.
  [[nodiscard]] std::uint64_t KvPositions(std::uint32_t layer, std::uint64_t depth) const;
};

/// What a tensor is for. Names are those of the account's rows.
enum class Role : std::uint8_t {
  kEmbedding,
  kAttnNorm,
  kAttnQ,
  kAttnK,
  kAttnV,
  kAttnQBias,
  kAttnKBias,
  kAttnVBias,
  kAttnQNorm,
  kAttnKNorm,
  kAttnOutput,
  kAttnPostNorm,
  kFfnNorm,
  kFfnGate,
  kFfnUp,
  kFfnDown,
  kFfnPostNorm,
  kOutputNorm,
  kHead,
  kRopeFrequencies,
};

/// "attn_q": the role in the registry and in error messages.
std::string_view RoleName(Role role);
std::optional<Role> FindRole(std::string_view name);

struct Tensor {
  const gguf::TensorInfo* info = nullptr;
  const formats::Format* format = nullptr;
  Role role = Role::kEmbedding;
  std::int32_t layer = -1;  // -1: not of a layer

  [[nodiscard]] std::uint64_t rows() const { return info->shape[1]; }  // output features; 1 for a vector
  [[nodiscard]] std::uint64_t cols() const { return info->shape[0]; }  // input features
};

class Model {
 public:
  static Result<Model> Load(const std::string& path, const gguf::OpenOptions& options = {});

  const gguf::File& file() const { return *file_; }
  const Architecture& architecture() const { return architecture_; }
  const HyperParameters& hyper() const { return hyper_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// nullptr when the model has no such tensor (a bias, a separate head).
  const Tensor* Find(Role role, std::int32_t layer = -1) const;
  /// The table that the vocabulary head multiplies by: its own, or the tied embedding.
  const Tensor& head() const;
  bool tied() const;
  /// What is odd but not wrong, such as a vocabulary size that disagrees with the table's.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::shared_ptr<const gguf::File> file_;
  Architecture architecture_;
  HyperParameters hyper_;
  std::vector<Tensor> tensors_;
  std::map<std::pair<Role, std::int32_t>, std::size_t> index_;
  std::vector<std::string> warnings_;
};

/// Whether this build can compute the model: kModelNotRunnable when its architecture is only inspected,
/// kModelUnsupportedType when a tensor's type has no bit layout that a kernel can be generated from.
Result<void> CheckRunnable(const Model& model);

/// Bytes of a KV cache of that many positions, every layer in full; kModelKvCacheSize when it overflows or is above
/// limit_bytes.
Result<std::uint64_t> KvCacheBytes(const HyperParameters& hyper, std::uint64_t positions, std::uint32_t element_bytes,
                                   std::uint64_t limit_bytes);

}  // namespace boltbeam::model
