// What a plan says of its parts before anything runs: the knobs turned, instructions and bytes, and what other knobs
// would make of them.
#pragma once

#include <vector>

#include "audit/why.h"
#include "chip/facts.h"
#include "engine/engine.h"

namespace boltbeam::audit {

/// One row for every part that multiplies by tables, in the token's order; of a part with tables of several shapes the
/// first. `seen`: the chip that the engine was loaded for; `machine`: with all its instruction sets.
Result<std::vector<PartPlan>> PartPlans(const engine::Engine& engine, const chip::Chip& seen,
                                        const chip::Chip& machine);

/// Fusions that are off and that this plan could take.
std::vector<std::string> IdleRoutes(const engine::Engine& engine);

}  // namespace boltbeam::audit
