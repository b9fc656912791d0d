// Which geometry attention runs with: the default's, or what a plan or a person chose as "attention:KNOB=VALUE,...".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/geometry_choice.h"
#include "kernel/families/attention.h"
#include "kernel/geometry.h"
#include "model/model.h"

namespace boltbeam::engine {

/// The name that choices and plans have for it, as they have names of tables.
inline constexpr std::string_view kAttentionTable = "attention";

/// The shape with the knobs of the text turned: lanes (4, 8, 16), chunk (positions: 16 to 4096, a power of two), dot
/// (maddhalves, dot4: of keys in codes). kUsage when one is not known; whether they are legal, AttentionFault says.
Result<kernel::AttentionShape> TurnAttention(std::string_view knobs, kernel::AttentionShape shape);

/// "chunk=128,dot=dot4,lanes=16"
std::string AttentionText(const kernel::AttentionShape& shape);

/// Why the shape can't run with these registers and instructions; empty: it can.
std::string AttentionFault(const kernel::AttentionShape& shape, const kernel::VectorFacts& facts);

/// Every choice for attention, in order. kKernelIllegal with the reason when the result can't run.
Result<kernel::AttentionShape> AttentionFor(std::span<const GeometryChoice> choices, kernel::AttentionShape shape,
                                            const kernel::VectorFacts& facts);

/// How a model's attention runs while options.context positions fit: with the options' choices and cache formats.
/// kKernelIllegal when a head's dims are no whole blocks of a cache's format, and as AttentionFor.
Result<kernel::AttentionShape> AttentionShapeOf(const model::Model& model, const Options& options,
                                                const kernel::VectorFacts& facts);

}  // namespace boltbeam::engine
