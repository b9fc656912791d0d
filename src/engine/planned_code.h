// What a decoded token costs the vector units, part by part, before anything is loaded: the plan is built as an engine
// would build it, and the instructions of its kernels' machine code are counted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "chip/vector_counts.h"
#include "model/cache_format.h"
#include "model/model.h"

namespace boltbeam::engine {

struct PartCode {
  std::string role;    // of the token graph, or of a step that the graph does not have: quantize, residual
  std::string format;  // of the table; of what reads none, empty
  chip::VectorCounts vector_instructions = {};  // of one token, all threads together
  double stored_bytes = 0;                      // of the table, rearranged
  bool is_from_listing = true;                  // false: of some kernel the loop program was counted
};

struct TokenCode {
  std::vector<std::vector<PartCode>> depths;  // [depth asked for]
  std::vector<std::string> uncompiled;        // kernels whose loop program was counted, and why
};

/// The default plan on one thread at each depth. kKernelIllegal and kModelUnsupportedType as Engine::Load gives them;
/// kUsage for a chip that no code is generated for.
Result<TokenCode> CodeOfToken(const model::Model& model, const chip::Chip& chip, const model::CacheFormats& cache,
                              std::span<const std::uint64_t> depths);

}  // namespace boltbeam::engine
