// Which installed plans a model takes, and whether their kernels are still right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "engine/geometry_choice.h"
#include "model/cache_format.h"
#include "model/model.h"
#include "runtime/code.h"
#include "search/plan_store.h"

namespace boltbeam::search {

inline constexpr std::string_view kDefaultPlan = "default";

struct PlanUse {
  std::vector<engine::GeometryChoice> geometry;  // of tables that the model has
  std::vector<std::string> with, without;        // routes
  std::vector<std::string> plans;                // whose choices these are: names, or the file's path
  std::vector<std::string> notes;                // for people: what was checked again, what was left out and why
};

/// choice: empty takes what is installed for this chip, "default" nothing, anything else is a plan's file or the name
/// of an installed plan.
///
/// A table takes the newest installed plan that has one of its format and shape, and never what was measured for
/// another. Tables that one kernel multiplies together take a plan only when it gives all of them the same knobs. What
/// was made with instructions that the machine lacks is left out. Routes come only from a plan for exactly the model's
/// tables. Where the compiler, the instruction sets or the kernels have changed since a table was found correct, it is
/// checked again first: what fails is left out, what passes is remembered.
///
/// threads: that will run; 0: as many as the machine's curve says. Of two plans that have a table, what was measured
/// with as many goes first. One of another number is used, as its kernels are right with any, and a note says so: which
/// of them is fastest may be otherwise.
///
/// cache: that attention will read. A plan's attention that is not legal with it is left out.
Result<PlanUse> UsePlan(const model::Model& model, const chip::Chip& machine, const PlanStore& store,
                        const std::string& choice, runtime::KernelCache& kernels, std::uint32_t threads = 0,
                        const model::CacheFormats& cache = {});

/// What makes a table's kernel what it is: its program, the compiler and the instruction sets.
Result<std::string> CheckKey(const formats::Format& format, std::uint64_t rows, std::uint64_t cols,
                             const kernel::GemvGeometry& geometry, const codegen::Target& target);

}  // namespace boltbeam::search
