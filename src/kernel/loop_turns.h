// How often each loop of a program turns for a range of work items: found by running its addresses and nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/program.h"

namespace boltbeam::kernel {

/// A 32-bit word of a buffer that is known before the program runs, such as one of the pass's state.
struct KnownWord {
  std::uint32_t buffer = 0;
  std::int64_t offset = 0;  // bytes
  std::int32_t value = 0;
};

/// One loop of a program, in the order of the text; the first stands for the program's own code.
struct LoopTurns {
  std::int32_t parent = -1;      // index of the loop around it
  double turns = 0;              // of its body, over the whole range
  double vector_operations = 0;  // IsVectorArithmetic in its body, without those of the loops in it
  bool is_known = true;    // false: its bounds depend on memory that is not known; it counts as one turn each time
  bool is_single = false;  // from the text alone it turns once at most: a compiler leaves no loop of it
};

/// Runs what the bounds of loops depend on: 64-bit scalars and words that are known. Conditions count as true.
std::vector<LoopTurns> TurnsOf(const Program& program, std::int64_t begin, std::int64_t end,
                               std::span<const KnownWord> known = {});

}  // namespace boltbeam::kernel
