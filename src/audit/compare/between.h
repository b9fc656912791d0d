// What another program does between the operations of a token (its graph, its scheduler, inputs, the mask, logits),
// measured from outside: on a skeleton of the model its tables take little time and the rest is the same.
#pragma once

#include <cstdint>
#include <functional>

#include "audit/compare/peer.h"
#include "base/error.h"
#include "model/model.h"

namespace boltbeam::audit {

struct Between {
  double token_ns = 0;  // of the skeleton: the median of its windows
  double parts_ns = 0;  // its operations, each alone

  /// Signed: what its parts cost more alone than in a token is in it, too.
  [[nodiscard]] double Ns() const { return token_ns - parts_ns; }
};

struct BetweenOptions {
  PeerRun run;                   // as the windows of the whole model
  std::uint64_t cold_bytes = 0;  // as its parts were timed
  std::uint32_t scale = 1;       // of the skeleton's widths
  std::uint64_t seed = 1;
  std::function<bool()> cancelled;
};

/// Writes the skeleton into the system's temporary folder, times its token and its parts in turns, and removes it.
/// kFileWrite, kDiskSpace, kPeerMissing, kPeerFailed or kInterrupted.
Result<Between> MeasureBetween(const Peer& peer, const model::Model& model, const BetweenOptions& options);

}  // namespace boltbeam::audit
