// Candidate routes that others have recorded (data/routes/recorded.json): which family here has each, or why none has,
// and what was found. A refutation is inherited where the chip and the shapes are the recorded ones, nowhere else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "search/candidate.h"
#include "search/fusion.h"
#include "search/knob_space.h"

namespace boltbeam::search {

/// What an operation must be like for a route: shapes and facts, never the name of a model.
struct RouteRule {
  std::vector<std::string> shapes;  // rows x columns that a refutation was measured on; empty: any
  std::uint64_t rows_multiple = 0, cols_multiple = 0, cols_least = 0;
  std::vector<std::string> facts;  // that the chip must declare
};

struct RecordedRoute {
  std::string name, workload, status, reason, chip;
  std::string recorded_family;
  std::string family, why_not;  // exactly one of them is not empty
  std::vector<std::string> formats, roles;
  RouteRule when;
  std::vector<std::pair<std::string, std::vector<std::string>>> knobs;  // values that make a point one of the route's
  std::vector<std::string> fuses;

  [[nodiscard]] bool IsRefuted() const { return status == "refuted"; }
  /// Whether a table is one that the route is for.
  [[nodiscard]] bool Covers(const Part& part) const;
};

/// kJson when the text is no such registry; a rule that asks for a model's name is refused, too.
Result<std::vector<RecordedRoute>> ReadRecordedRoutes(std::string_view text, const std::string& where);
/// The registry of this build.
Result<std::vector<RecordedRoute>> LoadRecordedRoutes();

/// The names of this program's families: "product", "attention", "gpu-product", "flash-tile", "fusion".
const std::vector<std::string>& FamilyNames();

/// What the registry says about this chip and model.
struct RecordedNote {
  std::string name, family, status, applies, reason;
};

/// Takes out of a space the points that a recorded refutation on that chip and shape covers; how many.
std::uint64_t DropRefuted(KnobSpace& space, const Part& part, const std::string& chip,
                          const std::vector<RecordedRoute>& routes);

/// Closes the ideas that were refuted on this chip, for tables of just these shapes.
void CloseRefuted(std::vector<FusionIdea>& ideas, const std::vector<Part>& parts, const std::string& chip,
                  const std::vector<RecordedRoute>& routes);

/// One line for each route of the registry.
std::vector<RecordedNote> NotesOn(const std::vector<RecordedRoute>& routes, const std::vector<Part>& parts,
                                  const chip::Chip& chip);

}  // namespace boltbeam::search
