// BoltBeam: from a model and a chip to a plan whose parts were timed, few candidates each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "engine/geometry_choice.h"
#include "model/model.h"
#include "search/groups.h"
#include "search/part_search.h"
#include "search/plan_file.h"

namespace boltbeam::search {

struct DecideRequest {
  std::vector<engine::GeometryChoice> start;  // what runs now; what no choice names runs the default geometry
  std::uint32_t threads = 1;
  double budget_s = 0;  // for the parts; 0: no limit. What it leaves no time for keeps its start
  PartRules rules;
  Coefficients coefficients;
  IsRefuted is_refuted;  // by routes' records; those that were timed here are remembered by themselves
};

struct DecideStatus {
  std::size_t part = 0, parts = 0;
  std::string table, trying, best;
  double seconds = 0;
};

struct DecideHooks {
  std::function<void(const DecideStatus& status)> progress;
  std::function<bool()> cancelled;
};

struct GroupSearch {
  Group group;
  PartSearch found;
  std::vector<Rejected> rejected;  // by legality, and what was foretold to be too slow
  std::uint64_t free_product = 0;
  std::string skipped;  // why it was not searched; empty: it was
};

struct Decision {
  std::vector<GroupSearch> groups;
  std::vector<engine::GeometryChoice> choices;  // of every table: the best, or its start
  bool is_interrupted = false;
  double seconds = 0;

  [[nodiscard]] bool HasGain() const;
  [[nodiscard]] std::uint64_t Timed() const;
  [[nodiscard]] std::uint64_t Remembered() const;
  [[nodiscard]] double CompileSeconds() const;
};

/// Searches every group of the model. The chip must know its memory's rate (WithRates). When it is interrupted what was
/// decided so far is in the decision.
Result<Decision> DecidePlan(const model::Model& model, const chip::Chip& chip, TimingBench& bench,
                            runtime::KernelCache& kernels, TrialMemory& memory, const DecideRequest& request,
                            const DecideHooks& hooks = {});

/// The largest rows and columns of what is timed for a model.
struct LargestTable {
  std::uint64_t rows = 0, cols = 0;
};
Result<LargestTable> LargestOf(const model::Model& model, const kernel::VectorFacts& facts);

/// The chip with what predictions need and nobody has measured yet: the read rate and the instruction rate, probed now.
Result<chip::Chip> WithRates(const chip::Chip& chip, runtime::KernelCache& kernels, TimingBench& bench);

/// The chip with this read rate in place of all that it declares: what its memory gives now.
chip::Chip AtReadRate(chip::Chip chip, double gb_s);

/// Geometries for every table that are as bad as the facts allow: of all legal points the one that is foretold to be
/// the slowest, its loads and prefetches at their worst.
Result<std::vector<engine::GeometryChoice>> WorstChoices(const model::Model& model, const chip::Chip& chip,
                                                         std::uint32_t threads, const Coefficients& coefficients);

/// The default geometry of a chip that lacks what instruction sets above `set` add.
Result<std::vector<engine::GeometryChoice>> ChoicesOfSet(const model::Model& model, const chip::Chip& chip,
                                                         std::string_view set);

/// A plan of the decision, with what it was made for and with.
Result<PlanFile> PlanOf(const model::Model& model, const chip::Chip& chip, const codegen::Target& target,
                        const std::vector<engine::GeometryChoice>& choices, std::uint32_t threads);

}  // namespace boltbeam::search
