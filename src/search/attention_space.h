// Decode attention over a KV cache on a CPU: how long its chunks are, how wide its registers, which instruction scores
// keys in codes. The counterpart of a GPU's flash tile.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "model/cache_format.h"
#include "model/model.h"
#include "search/knob_space.h"

namespace boltbeam::search {

struct AttentionPart {
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0, layers = 0;
  std::uint64_t depth = 0;                              // positions that a token sees
  double key_bytes = 0, value_bytes = 0;                // of a head's position
  bool has_key_codes = false, has_value_codes = false;  // keys are kept as codes of 8 bits

  [[nodiscard]] double bytes() const { return static_cast<double>(kv_heads * depth) * (key_bytes + value_bytes); }
};

AttentionPart AttentionPartOf(const model::Model& model, const model::CacheFormats& cache, std::uint64_t depth);

/// The points that kernel::AttentionRefusals has nothing against and whose scores stay in the first cache. Facts: those
/// of kernel::SpaceFacts, which a chip without declared instruction sets lacks, and l1d_bytes.
KnobSpace AttentionSpace(const AttentionPart& part, const chip::Chip& chip);

struct AttentionPrediction {
  std::size_t point = 0;
  double ns = 0, low_ns = 0, high_ns = 0;  // of one layer, by all threads
};
struct AttentionForesight {
  std::vector<AttentionPrediction> survivors;  // fastest first
  std::vector<Rejected> rejected;
  double floor_ns = 0;
};

/// Chunks are shared among threads whole: where there are fewer of them than threads, threads stand idle.
/// kBoundNoBandwidth when the memory's rate is not known.
Result<AttentionForesight> PredictAttention(const AttentionPart& part, const KnobSpace& space, const chip::Chip& chip,
                                            std::uint32_t threads);

}  // namespace boltbeam::search
