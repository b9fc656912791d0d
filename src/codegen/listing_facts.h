// What a listing of machine code shows without running it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace boltbeam::codegen {

/// How a loop reads the memory that it streams through, line of 64 bytes by line. What is read there: whole vector
/// registers from the address that most of them come from, the stack and constants aside.
struct StreamFacts {
  double disorder = 0;    // pairs of lines of a turn of which the later one is read first, over the lines
  double unevenness = 1;  // instructions from one line's first read to the next one's: root mean square over mean
  friend bool operator==(const StreamFacts&, const StreamFacts&) = default;
};

struct ListingFacts {
  std::uint32_t vector_registers = 0;   // different ones that are used
  std::uint32_t spills = 0;             // vector registers written to the stack or read from it
  std::uint32_t loop_instructions = 0;  // of the largest loop that holds no other
  std::optional<StreamFacts> stream;    // of that loop; nothing where it reads none, or on another machine than x86-64
};

/// Reads what EmitListing prints as assembly, of x86-64 and arm64.
ListingFacts FactsOfListing(std::string_view assembly);

/// Bits of the widest vector register that a line of assembly names: xmm, ymm, zmm; or v, q. 0: it names none.
std::uint32_t VectorBits(std::string_view line);

}  // namespace boltbeam::codegen
