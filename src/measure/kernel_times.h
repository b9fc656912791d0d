// How long each kernel of a plan takes inside real tokens.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/route_bounds.h"

namespace boltbeam::measure {

struct KernelTime {
  double ns = 0;     // of one token: each step from its first thread's begin to its last one's end, all steps together
  double ticks = 0;  // of the processor's counter, of all threads together
};

/// By kernel identity: the median of `tokens` tokens at depth 1 and beyond, after one that warms up. The engine must
/// have no session. Ticks are 0 where the clock is no counter of the processor.
Result<std::map<std::string, KernelTime>> TimeKernels(engine::Engine& engine, std::uint32_t tokens);

/// Nanoseconds from the first thread's coming to the last one's at each barrier of a token: the median of `tokens`
/// tokens. The engine must have no session; zeros with one thread.
Result<std::vector<double>> TimeBarrierWaits(engine::Engine& engine, std::uint32_t tokens);

/// What each route can save at most, with the waits of a few tokens of this very plan. The engine must have no session.
Result<std::vector<engine::RouteBound>> BoundRoutes(engine::Engine& engine, const chip::Chip& machine);

}  // namespace boltbeam::measure
