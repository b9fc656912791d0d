// Asking for memory before it is read, for processors that do not do so far enough by themselves.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "kernel/builder.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

struct Ahead {
  std::uint32_t bytes = 0;  // how far; 0: nothing is asked for
  bool once = false;        // what comes need not stay in the caches
  std::uint16_t every = 1;  // one line of so many
};

/// Beside a load of `bytes` at value + from: asks for the lines that lie so far behind those that begin in it, as if
/// value were the first byte of one that is asked for. One by one, for a burst of more lines than a core can have under
/// way waits for itself.
inline void FetchAhead(Builder& b, std::uint32_t buffer, Value value, std::int64_t from, std::int64_t bytes,
                       const Ahead& ahead) {
  if (ahead.bytes == 0) return;
  const std::int64_t step = std::int64_t{kLineBytes} * ahead.every;
  for (std::int64_t line = CeilDiv(from, step) * step; line < from + bytes; line += step) {
    b.Prefetch(buffer, value, line + ahead.bytes, ahead.once);
  }
}

}  // namespace boltbeam::kernel
