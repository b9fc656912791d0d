// FutureSight: what each candidate would take on a chip, before anything is timed.
//
// A person can work the model out by hand: docs/search.md has every term. It turns away what cannot be worth timing,
// with the reason, and orders the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "codegen/listing_facts.h"
#include "search/candidate.h"
#include "search/propose.h"

namespace boltbeam::search {

/// One product of the part's table by all threads, weights from memory.
struct Prediction {
  kernel::GemvGeometry geometry;
  double ns = 0;
  double low_ns = 0, high_ns = 0;                      // nine of ten times are meant to lie in between
  double memory_ns = 0, compute_ns = 0, waits_ns = 0;  // what each takes by itself
};

struct Foresight {
  std::vector<Prediction> survivors;  // fastest first; equal ones in the proposal's order
  std::vector<Rejected> rejected;
  double floor_ns = 0;  // the table's bytes in the file at the chip's read rate
};

/// What a model of the machine needs beside declared facts: fitted on measurements of a chip, or what was fitted on one
/// CPU. Costs are in simple instructions on the chip's widest registers, whose rate is a measured fact.
struct Coefficients {
  double arithmetic = 0.7;  // a vector instruction that is no product
  double product = 0.3;     // of bytes or floats
  double halves = 0.14;     // a product of pairs of halves
  double load = 1.0;        // of a vector register
  double prefetch = 1.35;   // a line asked for ahead
  double narrow = 0.6;      // exponent of the registers' width over the widest: on half of it an instruction is cheaper
  double chain = 6.7;       // a sum that waits for the one before
  double size = 0.09;       // more for each doubling of a turn's code beyond 256 instructions
  double disorder =
      0.09;              // more of the memory's time for each doubling of 1 + pairs of lines read out of order, a line
  double uneven = 0.11;  // the same for each doubling of how unevenly a turn's reads lie among its instructions
  double pressure = 0.22;  // more for registers: times the square of those needed over those there
  double far = 0.024;      // more for each KiB that is fetched ahead: it pushes others out of the first cache
  double streams = 0.035;  // more of the memory's time for each doubling of a group's rows beyond four
  double late = 0.3;       // more of the memory's time for what is not fetched ahead: half of it with the first KiB
  double kept = 0.03;      // more of the memory's time for lines that every cache keeps and so has to put elsewhere
  double window = 150;     // instructions that a core itself looks ahead: what they read counts as fetched so far ahead
  double follow = 4;       // KiB that its prefetcher is ahead where it can follow the turns' stride
  double overlap = 3.7;    // p of (memory^p + compute^p + waits^p)^(1/p): 1 adds, a large one takes the largest
  double spread = 0.3;     // relative half width of the interval that nine of ten lie in
  std::string source = "another CPU's fit";  // or what they were fitted on
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
  double arithmetic = 0, products = 0, halves = 0, loads = 0, prefetches = 0;
  double turns = 0, groups = 0;
  double waits = 0;              // sums that each wait for the one before
  double width = 1;              // of the registers over the widest
  double rows = 0;               // of a group
  double turn_size = 0;          // vector instructions and loads of a turn
  double pressure = 0.22;        // registers needed at the least over those there
  double ahead_kib = 0;          // fetched ahead; 0: nothing
  double asked = 1;              // of the lines, those that are
  double kept = 1;               // of the lines, those that are not fetched for one use
  double kib_each = 0;           // of the table for one instruction
  bool has_long_stride = false;  // from one turn's reads to the next turn's: no prefetcher follows
  double disorder = 0;           // log2(1 + codegen::StreamFacts::disorder): of the compiled code, or a guess
  double uneven = 0;             // log2(codegen::StreamFacts::unevenness), likewise
  double bandwidth_gb_s = 0;     // of all threads
  double busiest = 1;            // share of the thread with most rows, times the threads
  double instructions_s = 0;     // of a thread
};

/// Counts candidates for one part. Candidates whose code is the same are counted once.
class Counter {
 public:
  Counter(const Part& part, const chip::Chip& chip, std::uint32_t threads);
  /// stream: how the compiled code reads the table, where it was compiled.
  Result<Work> Count(const kernel::GemvGeometry& geometry, const std::optional<codegen::StreamFacts>& stream = {});

 private:
  struct Turn {
    double arithmetic = 0, products = 0, halves = 0, loads = 0, elements = 1;
  };
  Result<Turn> CountTurn(const kernel::GemvGeometry& geometry) const;

  Part part_;
  std::uint32_t threads_;
  double bandwidth_gb_s_ = 0, instructions_s_ = 0, lanes_ = 16, registers_ = 32;
  std::map<std::string, Turn> turns_;  // by what changes the code
};

/// As the ledger keeps it. method: who foretold it.
ledger::Prediction ToRecord(const Part& part, const Prediction& prediction, const std::string& chip,
                            std::string_view method);

/// Nanoseconds, and their parts; no interval.
Prediction TimeOf(const Work& work, const Coefficients& coefficients);

/// The same with its interval.
Prediction Foretell(const kernel::GemvGeometry& geometry, const Work& work, const Coefficients& coefficients);

/// kBoundNoBandwidth when the memory's rate is not known.
Result<Foresight> PredictProduct(const Proposal& proposal, const chip::Chip& chip, std::uint32_t threads,
                                 const Coefficients& coefficients = {});

}  // namespace boltbeam::search
