// What a listing of machine code shows without running it.
#pragma once

#include <cstdint>
#include <string_view>

namespace boltbeam::codegen {

struct ListingFacts {
  std::uint32_t vector_registers = 0;   // different ones that are used
  std::uint32_t spills = 0;             // vector registers written to the stack or read from it
  std::uint32_t loop_instructions = 0;  // of the largest loop that holds no other
};

/// Reads what EmitListing prints as assembly, of x86-64 and arm64.
ListingFacts FactsOfListing(std::string_view assembly);

/// Whether a line of assembly names a vector register: xmm, ymm, zmm; or v, q.
bool NamesVectorRegister(std::string_view line);

}  // namespace boltbeam::codegen
