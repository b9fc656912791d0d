// FutureSight: what each candidate would take on a chip, before anything is timed.
//
// A person can work the model out by hand: docs/search.md has every term. It turns away what cannot be worth timing,
// with the reason, and orders the rest.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
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
  double floor_ns = 0;  // the table's bytes in the file at the chip's read rate
};

/// What a model of the machine needs beside declared facts: fitted on measurements of a chip, or a plain guess. Costs
/// are in simple instructions on the chip's widest registers, whose rate is a measured fact.
struct Coefficients {
  double arithmetic = 1;   // a vector instruction that is no product
  double product = 1;      // of bytes, halves or floats
  double load = 0.5;       // of a vector register
  double broadcast = 0.5;  // of one value to all lanes
  double scalar = 0.25;    // an address or a counter
  double prefetch = 1;     // a line asked for ahead
  double turn = 4;         // of the loop
  double group = 60;       // of rows: its beginning, its end and its results
  double narrow = 0.7;     // exponent of the registers' width over the widest: an instruction on half of it is cheaper
  double chain = 1;        // cycles that a dependent addition waits, where too few sums are under way
  double ahead = 1;        // the memory's rate with prefetching, over that without
  double once = 1;         // over it again, when what is fetched need not stay
  double ordered = 1;      // over it again, when weights are loaded in the order of their addresses
  double streams = 1;      // the memory's time for each doubling of the rows of a group
  double overlap = 4;      // p of (memory^p + compute^p)^(1/p): 1 adds, a large one takes the larger
  double spread = 0.3;     // relative half width of the interval that nine of ten lie in
  std::string source = "declared facts";  // or what they were fitted on
};

struct CoefficientName {
  std::string_view name, what;
  double Coefficients::* member;
};
/// Those that are fitted, in order.
std::span<const CoefficientName> CoefficientNames();

/// What a candidate does, counted in the loop program that would be compiled; for one thread, which has its share.
struct Work {
  double bytes = 0;  // of the table as it is laid out
  double arithmetic = 0, products = 0, loads = 0, broadcasts = 0, scalars = 0, prefetches = 0;
  double turns = 0, groups = 0;
  double width = 1;  // of the registers over the widest
  double rows = 0;   // of a group
  double sums = 1;   // independent ones: registers of rows times chains
  double depth = 0;  // dependent additions, one after another
  bool has_prefetch = false, is_once = false, is_ordered = false;
  double bandwidth_gb_s = 0;  // of all threads
  double thread_share = 1;    // of the bytes, of the thread with most
  double instructions_s = 0;  // of a thread; 0: not known
};

/// Counts candidates for one part. Candidates whose code is the same are counted once.
class Counter {
 public:
  Counter(const Part& part, const chip::Chip& chip, std::uint32_t threads);
  Result<Work> Count(const kernel::GemvGeometry& geometry);

 private:
  struct Turn {
    double arithmetic = 0, products = 0, loads = 0, broadcasts = 0, scalars = 0, prefetches = 0, elements = 1;
  };
  Result<Turn> CountTurn(const kernel::GemvGeometry& geometry) const;

  Part part_;
  std::uint32_t threads_;
  double bandwidth_gb_s_ = 0, instructions_s_ = 0, lanes_ = 16;
  std::map<std::string, Turn> turns_;  // by what changes the code
};

/// Nanoseconds, and their parts; no interval.
Prediction TimeOf(const Work& work, const Coefficients& coefficients);

/// kBoundNoBandwidth when the memory's rate is not known.
Result<Foresight> PredictProduct(const Proposal& proposal, const chip::Chip& chip, std::uint32_t threads,
                                 const Coefficients& coefficients = {});

}  // namespace boltbeam::search
