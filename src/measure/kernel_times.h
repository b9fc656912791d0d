// How long each kernel of a plan takes inside real tokens.
#pragma once

#include <cstdint>
#include <functional>
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

/// By kernel identity: the median of `tokens` tokens at depth 0, after one that warms up. The engine must
/// have no session. Ticks are 0 where the clock is no counter of the processor.
Result<std::map<std::string, KernelTime>> TimeKernels(engine::Engine& engine, std::uint32_t tokens);

/// The fusions that a plan may use, with what each can save at most.
struct RouteList {
  std::vector<engine::RouteBound> bounds;
  std::vector<std::string> spoiled;  // what made the waits of tokens longer while they were measured, in words
};

/// With the waits of a few tokens of this very plan, with shared tails and without in turns. The engine must have no
/// session. kInterrupted when `cancelled` says so.
Result<RouteList> BoundRoutes(engine::Engine& engine, const chip::Chip& machine,
                              const std::function<bool()>& cancelled = {});

}  // namespace boltbeam::measure
