// BubbleBeam: what could be tried for every part of a model on a chip, from the chip's declared facts alone.
//
// Nothing is measured here and the chip need not be at hand. A fact that is not declared turns away whatever needs it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "search/candidate.h"

namespace boltbeam::search {

/// Whether the ledger says that a candidate was refuted on this chip and shape; nothing when nobody asks it.
using IsRefuted = std::function<bool(const ledger::Subject& subject)>;

/// The candidates for one part on a CPU.
struct Proposal {
  Part part;
  std::uint64_t free_product = 0;            // of all knobs' values
  std::uint64_t refuted = 0;                 // legal, but turned away by the ledger
  std::vector<kernel::GemvGeometry> points;  // legal and not refuted, always in the same order
  std::vector<Rejected> rejected;            // most points first; with points and refuted they are the free product

  [[nodiscard]] std::uint64_t legal() const { return points.size() + refuted; }
};

Proposal ProposeProduct(const Part& part, const chip::Chip& chip, const IsRefuted& is_refuted = {});

}  // namespace boltbeam::search
