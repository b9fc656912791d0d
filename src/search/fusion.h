// Which steps of a token could be one kernel, what that could save at most, and what it would cost: a boundary between
// two kernels is often where their parallelism comes from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "model/model.h"

namespace boltbeam::search {

/// What a piece of a step needs of another step's result.
enum class Need : std::uint8_t {
  kPiece,   // the piece of the same rows
  kPieces,  // several pieces, which the step sums up: merged, they become one piece
  kAll,     // every piece
};

struct FusionEdge {
  std::size_t from = 0;  // the step that is read
  Need need = Need::kPiece;
};

/// A step of a layer: so many pieces that nothing connects.
struct FusionNode {
  std::string name;
  double pieces = 1;
  double streamed_bytes = 0;  // weights or KV cache
  double output_bytes = 0;
  std::vector<FusionEdge> reads;
};

/// One layer, at this many cached positions; attention is cut into parts of the context and their combination.
std::vector<FusionNode> LayerGraph(const model::Model& model, std::uint64_t depth, std::uint64_t splits);

/// Connected groups of two to `most` steps whose result is read from outside in one place only: indices, ascending.
std::vector<std::vector<std::size_t>> FusionGroups(const std::vector<FusionNode>& nodes, std::size_t most = 4);

struct FusionIdea {
  std::vector<std::string> steps;
  double bound_ns = 0;      // of the token: what the boundaries cost that vanish, and the bytes between them
  double predicted_ns = 0;  // of the token, saved; negative: lost
  double pieces_before = 0, pieces_after = 0;  // that the widest step had, and that the merged kernel has
  double gb_s_before = 0, gb_s_after = 0;      // that so many draw
  std::string closed;                          // why it is not worth timing; empty: it is
};

/// What decides whether pieces keep the memory busy.
struct FusionMachine {
  double bandwidth_gb_s = 0;
  double boundary_ns = 0;            // between two kernels: a barrier, or a launch
  double latency_ns = 0;             // of the memory
  double bytes_under_way = 0;        // of one piece at work
  double pieces_at_once = 0;         // most that are at work together; 0: as many as there are
  double stream_gb_s = 0;            // that one piece draws at most; 0: not known
  std::vector<std::string> unknown;  // facts that were guessed

  [[nodiscard]] double Drawn(double pieces) const;
};

/// kBoundNoBandwidth when no rate of the memory is known.
Result<FusionMachine> FusionMachineOf(const chip::Chip& chip, std::uint32_t threads);

/// Every group, the one that is foretold to save most first. token_ns: what the least claim is a part of.
std::vector<FusionIdea> FusionIdeas(const std::vector<FusionNode>& nodes, const FusionMachine& machine,
                                    std::uint32_t layers, double token_ns, double smallest_claim);

}  // namespace boltbeam::search
