// The memory of a plan that is built and not run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/plan.h"

namespace boltbeam::engine {

/// Memory that a plan names and nobody follows: place, everywhere. Never null, because a plan takes that for "there is
/// none".
inline Workspace UnusedWorkspace(std::byte* place, std::uint32_t threads) {
  Workspace w;
  w.rows = w.x = w.query = w.query_codes = w.key = w.value = w.gate = w.up = place;
  w.streams.assign(threads, place);
  w.branch = w.partial = w.logits = w.argmax_partial = w.argmax = w.state = place;
  w.rope_table = w.local_rope_table = w.cache = place;
  return w;
}

}  // namespace boltbeam::engine
