// Whether two engines compute the same: asked before any of them is timed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/error.h"
#include "engine/engine.h"
#include "judge/gate.h"

namespace boltbeam::judge {

/// Of the largest logit, where the best tokens are equal: 8-bit activations turn another order of sums into this much,
/// and work that was left out into more.
inline constexpr double kNearLogits = 0.05;

/// What teacher-forced tokens on both sides gave, over all depths.
struct OutputFinding {
  std::uint64_t tokens = 0, same_bits = 0, same_tokens = 0;  // positions with equal logits, with equal best token
  double largest = 0;                                        // relative to the largest logit of the position
  std::uint64_t reused = 0;      // positions at which B's logits were those of another position, to the last bit
  std::uint64_t unrepeated = 0;  // positions that gave other logits the second time, on either side
  // Time of a token for the second time, over that of tokens before and after it that are new: the least of the depths'
  // medians. Near 1, unless a side remembers what it computed.
  double a_again = 1, b_again = 1;

  [[nodiscard]] bool Bitwise() const { return tokens > 0 && same_bits == tokens; }
};

/// A fast hash of every bit of the logits.
std::uint64_t HashLogits(std::span<const float> logits);

/// Appends the tokens to both sessions, which stand at the same depth, compares, and goes back. vocabulary: of further
/// tokens, which are computed twice. kLogits: not finite.
Result<void> CompareOutputs(engine::Session& a, engine::Session& b, std::span<const std::int32_t> tokens,
                            std::uint32_t vocabulary, OutputFinding& finding, const std::function<bool()>& cancelled);

/// What the quality of both sides is against logits of a full-precision model; absent: none were given.
struct ReferenceFinding {
  double kl_a = 0, kl_b = 0;
  std::uint64_t tokens = 0;
};

/// The conditions `output`, `fresh_output` and `deterministic`. same_model: both sides run the same file.
std::vector<Condition> OutputConditions(const OutputFinding& finding, const ReferenceFinding* reference,
                                        bool same_model, const Thresholds& thresholds);

}  // namespace boltbeam::judge
