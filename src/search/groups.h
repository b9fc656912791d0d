// What is searched as one: tables that a decoded token's kernels multiply together keep one geometry, or the step that
// multiplies them falls apart.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "engine/geometry_choice.h"
#include "model/model.h"
#include "search/candidate.h"

namespace boltbeam::search {

struct Group {
  Part part;                              // as one step reads it: of tables side by side the rows together
  std::vector<std::string> tables;        // names; one knob text is chosen for all of them
  const model::Tensor* tensor = nullptr;  // the largest of them

  /// Bytes that a token reads of it.
  [[nodiscard]] std::uint64_t TokenBytes() const { return part.bytes * part.calls; }
};

/// The groups of a model as a plan with these choices has them, the one of which a token reads most first.
Result<std::vector<Group>> GroupsOf(const model::Model& model, const kernel::VectorFacts& facts,
                                    const std::vector<engine::GeometryChoice>& choices);

/// Whether the plan's steps still multiply the same tables together when all of the group's have this geometry; the
/// reason when not, or when a table of it can't have it.
Result<void> FitsGroup(const model::Model& model, const kernel::VectorFacts& facts,
                       std::vector<engine::GeometryChoice> choices, const Group& group,
                       const kernel::GemvGeometry& geometry);

}  // namespace boltbeam::search
