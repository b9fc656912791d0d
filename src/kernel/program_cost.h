// What a loop program does for a range of work items, counted without running it.
#pragma once

#include <cstdint>

#include "kernel/program.h"

namespace boltbeam::kernel {

struct ProgramCost {
  double instructions = 0;  // operations on lanes; loads and stores have units of their own
  double bytes = 0;         // loaded and stored
};

/// Whether an operation takes a vector unit's time: on lanes, and neither load nor store.
bool IsVectorArithmetic(const Instruction& instruction);

/// Counts every turn of every loop whose bounds follow from the range and from constants. A loop whose bounds lie in
/// memory counts as one turn, and a condition as true.
ProgramCost CostOf(const Program& program, std::int64_t begin, std::int64_t end);

}  // namespace boltbeam::kernel
