// What a route can save of a token at most: known before anyone measures it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "engine/engine.h"
#include "engine/routes.h"

namespace boltbeam::engine {

/// How long threads wait for each other at a barrier, from the first one's coming to the last one's.
struct BarrierWaits {
  std::vector<double> ns;  // of the barriers of a token of this plan, as measured; empty: the chip's fact is taken
  std::vector<double> unshared_ns;  // the same while no thread took over another's tail
  /// Of so many barriers the longest ones, whichever they are: nobody knows which would vanish before the plan is run.
  static double LongestNs(std::vector<double> ns, double barriers);
};

struct RouteBound {
  const Route* route = nullptr;
  std::uint32_t uses = 0;  // by a token of this plan; 0: off, or not possible
  PlanCost saved;          // of the plan without the route over the plan with it
  /// What that takes at the measured rates, each at the slowest that it can be: a barrier and what threads wait for
  /// each other at it; a byte of small vectors from the memory, not from a cache; a byte more of the thread that
  /// streams most; a call whose code and arguments have left the caches; nothing overlapping. What the route costs in
  /// turn is not taken off: it may cost next to nothing. Of a route that saves waits: those at as many barriers as it
  /// has uses, while no tails were shared.
  std::optional<double> at_most_ns;
  std::optional<double> waits_ns;  // of it: at barriers, and for the thread that streams most
  std::string waits_from;          // "this plan's tokens", "barrier_wait_ns"; empty: no barrier is saved
  std::string missing;             // the fact without which nothing is said
};

/// The plan is built once with each route and once without, and the difference counted: of a route that is off, too. A
/// route that stands in place of it is left out of both.
Result<std::vector<RouteBound>> RouteBounds(const Engine& engine, const chip::Chip& machine,
                                            const BarrierWaits& waits = {});

/// Fills in what the saved cost comes to at most; `missing` is the name of a fact that the chip was not measured for.
void FillIn(RouteBound& bound, const chip::Chip& machine, const BarrierWaits& waits);
/// The same of a route that saves waits: nothing where they were not measured.
void FillInWaits(RouteBound& bound, const BarrierWaits& waits);

}  // namespace boltbeam::engine
