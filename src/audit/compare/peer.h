// llama.cpp as the independent program, run live: its token through llama-bench, its parts through
// test-export-graph-ops and test-backend-ops.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "audit/import/imported.h"
#include "audit/import/operation.h"
#include "base/error.h"

namespace boltbeam::audit {

struct Peer {
  std::string bench;                 // path of llama-bench
  std::string exporter, operations;  // of the other two; empty: not there
};

/// where: a folder, the path of llama-bench, or empty for PATH. kPeerMissing says where was looked.
Result<Peer> FindPeer(const std::string& where);

struct PeerRun {
  std::uint32_t threads = 1;
  bool repack = true;  // its rearranged weights
  std::uint32_t tokens = 32;
  std::uint64_t depth = 0;

  /// That attention reads, the token's own among them: the mean over the run.
  [[nodiscard]] std::uint64_t Positions() const { return depth + (tokens + 1) / 2; }
};

/// One window of its tokens.
struct PeerWindow {
  double token_ns = 0;  // the mean
  // For more than a fiftieth of its process's time its one thread had no CPU; nullopt: not known, as of several
  // threads.
  std::optional<bool> disturbed = {};
};

/// One process that loads the model and times a window. kPeerFailed: what it said.
Result<PeerWindow> RunPeerWindow(const Peer& peer, const std::string& model, const PeerRun& run);

/// Nanoseconds of a token by a command of the user's that prints a rate.
Result<double> CommandTokenNs(const std::string& command);

struct TimedOperation {
  imports::ForeignOperation operation;
  double ns = 0;                      // of a run, its tables out of memory where they were timed so
  std::optional<double> hot_ns = {};  // the same tables again and again; nullopt: `ns` is of that
};

struct PartTiming {
  std::uint64_t depth = 0;       // for how long a cache the operations are exported
  std::uint64_t positions = 1;   // that attention reads, the token's own among them: the mean over a window
  std::uint64_t cold_bytes = 0;  // tables timed together, more than any cache keeps; 0: only hot ones
  // Run before each timing, at most a third as long as the timings take: windows of tokens among the parts.
  std::function<Result<void>()> between;
};

/// The operations of an import that have a time; others are left out.
std::vector<TimedOperation> TimedOperations(const imports::Imported& imported);

/// Every distinct operation of one token, timed alone: one thread, no rearranged weights. Products and attention over
/// so many tables or layers that they come out of memory as in a token, and over their own again and again; attention
/// over the positions that a token reads. kPeerMissing without the two programs, kFileWrite
/// without a temporary folder.
Result<std::vector<TimedOperation>> PeerOperations(const Peer& peer, const std::string& model,
                                                   const PartTiming& timing);

/// Of what test-export-graph-ops wrote, the lines of a pass of one token: those in which no tensor has a side of
/// `prompt`, the number of tokens of its other pass.
std::string LinesOfOneToken(std::string_view exported, std::uint64_t prompt);

}  // namespace boltbeam::audit
