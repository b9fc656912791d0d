// The loops of a listing, and the vector instructions in each: what a processor is really given for a loop program.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "chip/vector_counts.h"

namespace boltbeam::codegen {

/// One loop, in the order of the listing; the first stands for the code outside of all loops.
struct ListingLoop {
  std::int32_t parent = -1;                     // index of the loop around it
  chip::VectorCounts vector_instructions = {};  // in its body, without those of the loops in it
};

/// The natural loops of what EmitListing prints as assembly, of x86-64 and arm64.
std::vector<ListingLoop> LoopsOfListing(std::string_view assembly);

/// Bits of the vectors of a line of assembly that takes a vector unit's time: it names a vector register and is no
/// load, no store, no move from register to register and no clearing of one, which have units of their own or need
/// none. 0 of any other line.
std::uint32_t VectorInstructionBits(std::string_view line);

}  // namespace boltbeam::codegen
