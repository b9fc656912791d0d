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

struct RouteBound {
  const Route* route = nullptr;
  std::uint32_t uses = 0;  // by a token of this plan; 0: off, or not possible
  PlanCost saved;          // of the plan without the route over the plan with it
  /// What that takes at the measured rates, each at the slowest that it can be: a barrier; a byte of small vectors from
  /// the memory, not from a cache; a call whose code and arguments have left the caches; nothing overlapping.
  std::optional<double> at_most_ns;
  std::string missing;  // the fact without which nothing is said
};

/// The plan is built once with each route and once without, and the difference counted: of a route that is off, too.
Result<std::vector<RouteBound>> RouteBounds(const Engine& engine, const chip::Chip& machine);

/// Nanoseconds at most for what is saved; nullopt, and the name of the fact, when the chip was not measured.
std::optional<double> AtMostNs(const PlanCost& saved, const chip::Chip& machine, std::string& missing);

}  // namespace boltbeam::engine
