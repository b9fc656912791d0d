// FutureSight: what each candidate would take on a chip, before anything is timed.
//
// A person can work the model out by hand: docs/search.md has every term. It turns away what cannot be worth timing,
// with the reason, and orders the rest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "search/candidate.h"
#include "search/propose.h"

namespace boltbeam::search {

/// One product of the part's table by all threads, weights from memory.
struct Prediction {
  kernel::GemvGeometry geometry;
  double ns = 0;
  double low_ns = 0, high_ns = 0;        // nine of ten times are meant to lie in between
  double memory_ns = 0, compute_ns = 0;  // what its bytes and its instructions take by themselves
};

struct Foresight {
  std::vector<Prediction> survivors;  // fastest first; equal ones in the proposal's order
  std::vector<Rejected> rejected;
  double floor_ns = 0;  // the table's bytes at the chip's read rate
};

/// What a model of the machine needs beside declared facts: fitted on measurements of a chip, or a plain guess.
struct Coefficients {
  double cycles_per_instruction = 0.5;    // of a vector instruction whose registers are as wide as the chip's
  double overlap = 4;                     // p of (memory^p + compute^p)^(1/p): 1 adds, large takes the larger one
  double spread = 0.3;                    // relative half width of the interval that nine of ten lie in
  std::string source = "declared facts";  // or what they were fitted on
};

/// kChipFactMissing when the memory's rate is not known.
Result<Foresight> PredictProduct(const Proposal& proposal, const chip::Chip& chip, std::uint32_t threads,
                                 const Coefficients& coefficients = {});

}  // namespace boltbeam::search
