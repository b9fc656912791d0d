#include "kernel/attention_space.h"

#include <fmt/format.h>

#include <bit>

namespace boltbeam::kernel {
namespace {

constexpr std::uint32_t kLeastChunk = 16, kMostChunk = 4096;
constexpr std::uint16_t kLeastLanes = 4, kMostLanes = 16;

}  // namespace

std::vector<AttentionReason> AttentionRefusals(const AttentionShape& shape, const SpaceFacts& facts) {
  std::vector<AttentionReason> reasons;
  const auto refuse = [&](std::string_view knob, Refusal refusal, std::string evidence) {
    reasons.push_back({knob, refusal, std::move(evidence)});
  };
  const bool is_width = std::has_single_bit(shape.lanes) && shape.lanes >= kLeastLanes && shape.lanes <= kMostLanes;
  if (!facts.lanes) {
    refuse("lanes", Refusal::kMissingFact, "the width of vector registers is not known");
  } else if (!is_width || shape.lanes > *facts.lanes) {
    refuse("lanes", Refusal::kInstruction, fmt::format("registers of {} lanes, {} there", shape.lanes, *facts.lanes));
  } else if (shape.head_dim % shape.lanes != 0) {
    refuse("lanes", Refusal::kDivisibility, fmt::format("heads of {} in vectors of {}", shape.head_dim, shape.lanes));
  }
  if (!std::has_single_bit(shape.chunk) || shape.chunk < kLeastChunk || shape.chunk > kMostChunk) {
    refuse("chunk", Refusal::kDivisibility,
           fmt::format("chunks of {} positions, a power of two from {} to {} is possible", shape.chunk, kLeastChunk,
                       kMostChunk));
  } else if (std::string overflow = SumOverflow(shape); !overflow.empty()) {
    refuse("chunk", Refusal::kOverflow, std::move(overflow));
  }
  if (shape.dot == Dot::kDot4) {
    if (!facts.has_dot4) {
      refuse("dot", Refusal::kMissingFact, "whether there is a four-way dot product of bytes is not known");
    } else if (!*facts.has_dot4) {
      refuse("dot", Refusal::kInstruction, "no four-way dot product of bytes there");
    } else if (!shape.key.IsCoded()) {
      refuse("dot", Refusal::kNoMeaning, "keys are no codes");
    }
  }
  return reasons;
}

}  // namespace boltbeam::kernel
