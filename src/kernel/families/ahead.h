// Asking for memory before it is read, for processors that do not do so far enough by themselves.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "kernel/builder.h"

namespace boltbeam::kernel {

struct Ahead {
  std::uint32_t bytes = 0;  // how far; 0: nothing is asked for
  bool once = false;        // what comes need not stay in the caches
};

/// Beside a load of `bytes` at value + from: asks for the lines that lie so far behind those that begin in it, as if
/// value were a line's first byte. One by one, for a burst of more lines than a core can have under way waits for
/// itself.
inline void FetchAhead(Builder& b, std::uint32_t buffer, Value value, std::int64_t from, std::int64_t bytes,
                       const Ahead& ahead) {
  constexpr std::int64_t kLineBytes = 64;
  if (ahead.bytes == 0) return;
  for (std::int64_t line = CeilDiv(from, kLineBytes) * kLineBytes; line < from + bytes; line += kLineBytes) {
    b.Prefetch(buffer, value, line + ahead.bytes, ahead.once);
  }
}

}  // namespace boltbeam::kernel
