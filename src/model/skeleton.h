// A skeleton of a model: the same architecture, layers, heads' width, vocabulary and formats, so that a program builds
// the same graph for a token, on tables as narrow as blocks allow. What its token costs beyond its operations is what
// the program does between them. The head keeps its rows: it sweeps caches once a token, so that what the program keeps
// for itself comes out of memory as it does beside the whole model's tables, and there are as many logits.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "model/model.h"
#include "model/synth.h"

namespace boltbeam::model {

/// Every tensor of the model, a separate head or none, in its own format. scale: so many times as wide as need be.
/// Some 10 MB for 28 layers of 4-bit tables, and 0.4 kB for each token of the vocabulary.
Result<SynthPlan> PlanSkeleton(const Model& model, std::uint32_t scale = 1);

}  // namespace boltbeam::model
