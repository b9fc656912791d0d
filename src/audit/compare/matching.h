// Another program's operations against the regions of our account: by what they do and on which shapes, never by name.
// How often each runs in a token comes from our token graph, because the other program's list holds each shape once.
#pragma once

#include <string>
#include <vector>

#include "audit/compare/peer.h"
#include "model/token_graph.h"

namespace boltbeam::audit {

struct MatchedRegion {
  std::string role, format;             // format: of a table's region; empty: any
  double calls = 0, ns = 0, bytes = 0;  // of a token
  double hot_ns = 0;                    // as long as its tables stay in caches
};

struct Matching {
  std::vector<MatchedRegion> regions;
  std::vector<std::string> unmatched;  // "DUP f32[1024,1,1,1]: 0.2 µs", counted once each
  double unmatched_ns = 0;

  /// Of all operations in a token.
  [[nodiscard]] double TotalNs() const;
};

Matching MatchOperations(const std::vector<TimedOperation>& operations, const model::Model& model, std::uint64_t depth);

}  // namespace boltbeam::audit
