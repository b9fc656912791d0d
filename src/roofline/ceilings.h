// The second ceiling of a CPU: what its vector units can issue, beside what its memory delivers, at each number of
// threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chip/vector_counts.h"

namespace boltbeam::roofline {

/// What N threads together can move and issue.
struct ThreadRates {
  double memory_gb_s = 0;
  std::optional<double> cache_gb_s;
  std::map<std::uint32_t, double> vector_instructions_s;  // by the bits of their vectors, of VectorCounts::kBits
};

using RatesByThreads = std::map<std::uint32_t, ThreadRates>;

/// What a token's machine code spends in one part, all threads together.
struct PartInstructions {
  std::string role, format;     // format: of tables; else empty
  chip::VectorCounts count;     // vector instructions
  double stored_bytes = 0;      // of tables: what the code reads of them, rearranged; 0: as many bytes as the file has
  bool is_from_listing = true;  // of the machine code; false: of the loop program
};

/// What sets the pace on so many threads: bytes, or instructions.
struct Ceiling {
  std::uint32_t threads = 0;
  std::optional<double> bytes_floor_ns;  // over the memory's rate, or the caches' for what does not stream
  double unpack_floor_ns = 0;            // vector instructions over the rate at which they are issued
  [[nodiscard]] bool BindsInstructions() const { return unpack_floor_ns > bytes_floor_ns.value_or(0); }
};

/// At each number of threads, ascending. streamed, cached: bytes.
std::vector<Ceiling> CeilingsOf(const RatesByThreads& rates, double streamed, double cached,
                                const chip::VectorCounts& instructions);

/// Whether instructions bind on as many threads as were measured.
bool BindsInstructions(const std::vector<Ceiling>& ceilings);

}  // namespace boltbeam::roofline
