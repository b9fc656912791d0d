// The identity of a plan that is not loaded: what a switch would lead to.
#pragma once

#include <string>

#include "engine/engine.h"

namespace boltbeam::engine {

/// Engine::plan_id() of what Load would make of the same arguments, without its weights. Errors as Load's, except for
/// want of memory.
Result<std::string> PlanIdentity(const model::Model& model, const chip::Chip& machine, const Options& options);

}  // namespace boltbeam::engine
