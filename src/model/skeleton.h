// A skeleton of a model: the same architecture, layers, heads' width and formats, so that a program builds the same
// graph for a token, on tables as narrow as blocks allow. What its token costs beyond its operations is what the
// program does between them.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "model/model.h"
#include "model/synth.h"

namespace boltbeam::model {

/// Every tensor of the model, a separate head or none, in its own format. scale: so many times as wide as need be.
/// Some 10 MB for 28 layers of 4-bit tables.
Result<SynthPlan> PlanSkeleton(const Model& model, std::uint32_t scale = 1);

}  // namespace boltbeam::model
