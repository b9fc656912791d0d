// Where a position lies in the cache of keys and values, in the words of a loop program.
#pragma once

#include <cstdint>

#include "kernel/builder.h"
#include "kernel/families/attention.h"
#include "kernel/families/state.h"

namespace boltbeam::kernel {

constexpr float kMasked = -1.0e30F;  // the score of a position that is not seen

/// Chunks that this pass attends to.
inline Value ChunksOf(Builder& b, std::uint32_t state, const AttentionShape& shape) {
  return Widen(StateWord(b, state, shape.window == 0 ? kStateChunks : kStateWindowChunks));
}

/// A position's chunk of the cache and its place there.
struct CachePlace {
  Value head;      // byte offset of the head's chunk
  Value position;  // in the chunk
};

inline CachePlace PlaceInCache(const AttentionShape& shape, Value head, Value position) {
  const Value chunk = position / shape.chunk;
  return {head * static_cast<std::int64_t>(shape.HeadBytes()) + chunk * static_cast<std::int64_t>(shape.ChunkBytes()),
          position - chunk * shape.chunk};
}

}  // namespace boltbeam::kernel
