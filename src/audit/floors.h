// The floors of a token's parts, summed from the token graph by role and format.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "audit/account.h"
#include "model/token_graph.h"

namespace boltbeam::audit {

/// Of one token at this depth. In the graph's order.
std::vector<PartFloor> PartFloors(const model::Model& model, std::uint64_t depth, const model::CacheFormats& cache);

/// Bytes of memory that one token reads: weights and KV cache.
std::uint64_t MemoryBytes(std::span<const PartFloor> floors);

}  // namespace boltbeam::audit
