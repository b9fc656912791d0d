#include "model/hyper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"

namespace boltbeam::model {
namespace {

class KeyReader {
 public:
  KeyReader(const gguf::File& file, const ArchitectureRegistry& registry, const ArchitectureRow& row)
      : file_(file), registry_(registry), row_(row) {}

  bool Has(std::string_view key) const { return file_.Find(Full(key)) != nullptr; }
  std::string Where(std::string_view key) const { return file_.path() + ": " + Full(key); }

  /// A required integer: absent is refused by the container's own error.
  Result<std::uint32_t> Integer(std::string_view key) const {
    const gguf::KeyValue* entry = file_.Find(Full(key));
    if (entry != nullptr && std::holds_alternative<gguf::ArrayRef>(entry->value)) return SameInEveryLayer(key);
    BOLTBEAM_ASSIGN(const std::uint64_t value, file_.GetUnsigned(Full(key)));
    return InRange(key, value);
  }

  /// An integer that may be absent, unless the architecture's row asks for it.
  Result<std::uint32_t> IntegerOr(std::string_view key, std::uint64_t fallback) const {
    if (Has(key) || row_.Requires(key)) return Integer(key);
    const auto found = row_.defaults.find(std::string(key));
    return static_cast<std::uint32_t>(found != row_.defaults.end() ? found->second : static_cast<double>(fallback));
  }

  /// A float that has to be finite and positive.
  Result<double> FloatOr(std::string_view key, double fallback) const {
    if (!Has(key) && !row_.Requires(key)) {
      const auto found = row_.defaults.find(std::string(key));
      return found != row_.defaults.end() ? found->second : fallback;
    }
    BOLTBEAM_ASSIGN(const double value, file_.GetFloat(Full(key)));
    if (!std::isfinite(value) || value <= 0) {
      return Fail(Code::kModelParameterFloat, Where(key), fmt::format("{}", value), "a finite number above 0");
    }
    return value;
  }

  Result<std::string> TextOr(std::string_view key, std::string fallback) const {
    if (!Has(key)) return fallback;
    return file_.GetString(Full(key));
  }

 private:
  std::string Full(std::string_view key) const { return fmt::format("{}.{}", row_.architecture.name, key); }

  Result<std::uint32_t> InRange(std::string_view key, std::uint64_t value) const {
    const auto range = registry_.ranges.find(key);
    if (range == registry_.ranges.end())
      return Fail(Code::kInternal, Where(key), "no legal range", "one in the registry");
    if (value < range->second.least || value > range->second.most) {
      return Fail(Code::kModelParameterRange, Where(key), std::to_string(value),
                  fmt::format("{} to {}", range->second.least, range->second.most));
    }
    return static_cast<std::uint32_t>(value);
  }

  /// Some files give one value per layer; they are read when all of them agree.
  Result<std::uint32_t> SameInEveryLayer(std::string_view key) const {
    BOLTBEAM_ASSIGN(const std::vector<std::int64_t> values, file_.GetIntegers(Full(key)));
    if (values.empty()) return Fail(Code::kModelParameterRange, Where(key), "an empty list", "one value per layer");
    const bool same = std::ranges::all_of(values, [&](std::int64_t value) { return value == values.front(); });
    if (!same) {
      return Fail(Code::kModelUnsupportedKey, Where(key), "values that differ from layer to layer",
                  "the same value in every layer");
    }
    return InRange(key, values.front() < 0 ? 0 : static_cast<std::uint64_t>(values.front()));
  }

  const gguf::File& file_;
  const ArchitectureRegistry& registry_;
  const ArchitectureRow& row_;
};

Result<void> ReadSizes(const KeyReader& keys, HyperParameters& hyper) {
  BOLTBEAM_ASSIGN(hyper.layers, keys.Integer("block_count"));
  BOLTBEAM_ASSIGN(hyper.hidden, keys.Integer("embedding_length"));
  BOLTBEAM_ASSIGN(hyper.ffn, keys.Integer("feed_forward_length"));
  BOLTBEAM_ASSIGN(hyper.context, keys.Integer("context_length"));
  BOLTBEAM_ASSIGN(hyper.heads, keys.Integer("attention.head_count"));
  BOLTBEAM_ASSIGN(hyper.kv_heads, keys.IntegerOr("attention.head_count_kv", hyper.heads));
  return {};
}

Result<void> ReadHeadDim(const KeyReader& keys, HyperParameters& hyper) {
  if (!keys.Has("attention.key_length") && hyper.hidden % hyper.heads != 0) {
    return Fail(Code::kModelParameterMismatch, keys.Where("embedding_length"),
                fmt::format("{} can't be divided by {} heads", hyper.hidden, hyper.heads),
                "a multiple of attention.head_count, or attention.key_length");
  }
  BOLTBEAM_ASSIGN(hyper.head_dim, keys.IntegerOr("attention.key_length", hyper.hidden / hyper.heads));
  BOLTBEAM_ASSIGN(const std::uint32_t value_length, keys.IntegerOr("attention.value_length", hyper.head_dim));
  if (value_length != hyper.head_dim) {
    return Fail(Code::kModelUnsupportedKey, keys.Where("attention.value_length"), std::to_string(value_length),
                fmt::format("attention.key_length's {}", hyper.head_dim));
  }
  if (hyper.kv_heads > hyper.heads || hyper.heads % hyper.kv_heads != 0) {
    return Fail(Code::kModelParameterMismatch, keys.Where("attention.head_count"),
                fmt::format("{} heads can't share {} KV heads", hyper.heads, hyper.kv_heads),
                "a multiple of attention.head_count_kv");
  }
  return {};
}

Result<void> ReadRopeScaling(const KeyReader& keys, const ArchitectureRegistry& registry, HyperParameters& hyper) {
  BOLTBEAM_ASSIGN(const std::string type, keys.TextOr("rope.scaling.type", "linear"));
  if (std::ranges::find(registry.rope_scaling, type) == registry.rope_scaling.end()) {
    return Fail(Code::kModelRopeScaling, keys.Where("rope.scaling.type"), type,
                fmt::format("{}", fmt::join(registry.rope_scaling, " or ")));
  }
  if (type == "none") return {};
  const bool old_name = keys.Has("rope.scale_linear") && !keys.Has("rope.scaling.factor");
  BOLTBEAM_ASSIGN(const double factor, keys.FloatOr(old_name ? "rope.scale_linear" : "rope.scaling.factor", 1.0));
  hyper.rope_frequency_scale = 1.0 / factor;
  return {};
}

Result<void> ReadRope(const KeyReader& keys, const ArchitectureRegistry& registry, HyperParameters& hyper) {
  BOLTBEAM_ASSIGN(hyper.rope_dims, keys.IntegerOr("rope.dimension_count", hyper.head_dim));
  if (hyper.rope_dims > hyper.head_dim || hyper.rope_dims % 2 != 0) {
    return Fail(Code::kModelParameterMismatch, keys.Where("rope.dimension_count"), std::to_string(hyper.rope_dims),
                fmt::format("an even number up to the head's {}", hyper.head_dim));
  }
  BOLTBEAM_ASSIGN(hyper.rope_base, keys.FloatOr("rope.freq_base", 10000.0));
  return ReadRopeScaling(keys, registry, hyper);
}

Result<void> CheckExperts(const KeyReader& keys) {
  BOLTBEAM_ASSIGN(const std::uint32_t experts, keys.IntegerOr("expert_count", 0));
  BOLTBEAM_ASSIGN(const std::uint32_t used, keys.IntegerOr("expert_used_count", 0));
  if (used > experts) {
    return Fail(Code::kModelExpertCount, keys.Where("expert_used_count"), std::to_string(used),
                fmt::format("at most expert_count's {}", experts));
  }
  if (experts > 0) {
    return Fail(Code::kModelUnsupportedKey, keys.Where("expert_count"), std::to_string(experts),
                "a dense model: mixtures of experts are not supported");
  }
  return {};
}

Result<void> CheckRefusedKeys(const KeyReader& keys, const ArchitectureRow& row) {
  for (const std::string& key : row.refused_keys) {
    if (!keys.Has(key)) continue;
    return Fail(Code::kModelUnsupportedKey, keys.Where(key), "this key is set", "a model without it");
  }
  return {};
}

Result<void> ReadWindow(const KeyReader& keys, HyperParameters& hyper) {
  BOLTBEAM_ASSIGN(hyper.sliding_window, keys.IntegerOr("attention.sliding_window", 0));
  BOLTBEAM_ASSIGN(hyper.sliding_window_pattern, keys.IntegerOr("attention.sliding_window_pattern", 1));
  BOLTBEAM_ASSIGN(hyper.local_rope_base, keys.FloatOr("rope.freq_base_swa", hyper.rope_base));
  return {};
}

Result<void> CheckVocabulary(const KeyReader& keys, std::uint32_t vocab, std::vector<std::string>& warnings) {
  if (!keys.Has("vocab_size")) return {};
  BOLTBEAM_ASSIGN(const std::uint32_t declared, keys.Integer("vocab_size"));
  if (declared != vocab) {
    warnings.push_back(fmt::format("{} says {}, but the embedding has {} rows; the embedding decides",
                                   keys.Where("vocab_size"), declared, vocab));
  }
  return {};
}

}  // namespace

Result<HyperParameters> ReadHyperParameters(const gguf::File& file, const ArchitectureRegistry& registry,
                                            const ArchitectureRow& row, std::uint64_t vocab,
                                            std::vector<std::string>& warnings) {
  const KeyReader keys(file, registry, row);
  HyperParameters hyper;
  BOLTBEAM_TRY(ReadSizes(keys, hyper));
  BOLTBEAM_TRY(ReadHeadDim(keys, hyper));
  BOLTBEAM_TRY(ReadRope(keys, registry, hyper));
  BOLTBEAM_ASSIGN(hyper.rms_epsilon, keys.FloatOr("attention.layer_norm_rms_epsilon", 1e-5));
  const bool per_hidden = std::ranges::find(row.scale_by_hidden_at, hyper.layers) != row.scale_by_hidden_at.end();
  const double query_elements = per_hidden ? static_cast<double>(hyper.hidden) / hyper.heads : hyper.head_dim;
  BOLTBEAM_ASSIGN(hyper.attention_scale, keys.FloatOr("attention.scale", 1.0 / std::sqrt(query_elements)));
  BOLTBEAM_TRY(CheckExperts(keys));
  BOLTBEAM_TRY(CheckRefusedKeys(keys, row));
  if (row.sliding_window) BOLTBEAM_TRY(ReadWindow(keys, hyper));
  const auto range = registry.ranges.find("vocab_size");
  if (range != registry.ranges.end() && (vocab < range->second.least || vocab > range->second.most)) {
    return Fail(Code::kModelParameterRange, file.path() + ": embedding", fmt::format("{} rows", vocab),
                fmt::format("{} to {}", range->second.least, range->second.most));
  }
  hyper.vocab = static_cast<std::uint32_t>(vocab);
  BOLTBEAM_TRY(CheckVocabulary(keys, hyper.vocab, warnings));
  return hyper;
}

bool HyperParameters::IsLocal(std::uint32_t layer) const {
  return sliding_window != 0 && sliding_window_pattern != 0 &&
         layer % sliding_window_pattern != sliding_window_pattern - 1;
}

std::uint64_t HyperParameters::KvPositions(std::uint32_t layer, std::uint64_t depth) const {
  return IsLocal(layer) ? std::min<std::uint64_t>(depth, sliding_window) : depth;
}

Result<std::uint64_t> KvCacheBytes(const HyperParameters& hyper, std::uint64_t positions, std::uint32_t element_bytes,
                                   std::uint64_t limit_bytes) {
  // Every factor but positions is bounded by the registry's ranges, so that this product can't overflow.
  const std::uint64_t per_position = std::uint64_t{2} * hyper.layers * hyper.kv_heads * hyper.head_dim * element_bytes;
  const std::optional<std::uint64_t> bytes = CheckedMul(per_position, positions);
  if (!bytes || *bytes > limit_bytes) {
    return Fail(Code::kModelKvCacheSize, "KV cache",
                fmt::format("{} positions of {} bytes each", positions, per_position),
                fmt::format("at most {} bytes, which is {} positions", limit_bytes, limit_bytes / per_position));
  }
  return *bytes;
}

}  // namespace boltbeam::model
