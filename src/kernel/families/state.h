// The scalars of one pass over the model, read by kernels from a buffer: i32 words at these byte offsets.
#pragma once

#include <cstdint>

#include "kernel/builder.h"

namespace boltbeam::kernel {

inline constexpr std::int64_t kStateColumns = 0;   // tokens of this pass
inline constexpr std::int64_t kStateTiles = 4;     // tiles of columns for the products
inline constexpr std::int64_t kStatePosition = 8;  // position of the first token
inline constexpr std::int64_t kStateChunks =
    12;  // chunks of the KV cache that hold positions of this pass's last token
// Of layers that look back a window only: the first chunk that this pass's first token sees, and how many from there.
inline constexpr std::int64_t kStateWindowFirst = 16;
inline constexpr std::int64_t kStateWindowChunks = 20;
// Not 0: every logit is stored, else only the largest.
inline constexpr std::int64_t kStateKeepLogits = 24;
inline constexpr std::int64_t kStateBytes = 64;

inline Value StateWord(Builder& b, std::uint32_t state, std::int64_t offset) {
  return b.Load(state, {Scalar::kI32, 1}, Memory::kWord, b.I64(0), offset);
}

/// The largest power of two up to `most` that divides n: lanes for a vector of n elements.
inline std::uint16_t LanesFor(std::uint64_t n, std::uint16_t most) {
  std::uint16_t lanes = most;
  while (n % lanes != 0) lanes /= 2;
  return lanes;
}

}  // namespace boltbeam::kernel
