// Floors: the least time that a pass through the model can take on a chip, part by part, and what follows from it.
//
// docs/formulas.md has every formula with a worked example. What a chip's facts do not say stays unknown here too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "model/census.h"
#include "model/model.h"
#include "model/token_graph.h"
#include "roofline/ceilings.h"
#include "roofline/in_flight.h"

namespace boltbeam::roofline {

/// The fastest that the arithmetic of one format's kernel goes on the chip; no figure where it was not measured.
struct Peak {
  std::optional<double> flop_s;
  std::string from;  // in words
};

/// What a chip can move and compute, in the units of its facts.
struct Roof {
  double bandwidth_gb_s = 0;
  bool is_stated = false;             // the bandwidth, by a person instead of the chip's facts
  std::optional<double> peak_flop_s;  // of every format, where `peaks` is empty
  std::map<std::string, Peak> peaks;  // by the format of a table, and AttentionKey: their sums differ
  std::optional<double> cache_bandwidth_gb_s;
  Latencies latencies;  // of the memory
  // The second ceiling, of a CPU that was measured, at each number of threads, and what it is applied to: a token's
  // instructions at each of the depths asked for.
  RatesByThreads threads;
  std::vector<std::vector<PartInstructions>> instructions;
  std::string instructions_missing;       // why there are none
  std::vector<std::string> uncompiled;    // kernels of which the loop program was counted, and why
  std::string bandwidth_from, peak_from;  // in words
};

/// What the chip says, or what takes its place; kBoundNoBandwidth when neither says a bandwidth.
Result<Roof> RoofOf(const chip::Chip& chip, std::optional<double> bandwidth_gb_s = {},
                    std::optional<double> peak_flop_s = {});

/// The name that the line of attention has for its cache's format.
std::string CacheKey(const model::CacheFormats& cache);
/// The name that Roof::peaks has for the sums over a cache of this name.
std::string AttentionKey(const std::string& cache_key);

/// The peak of a format's arithmetic; nullopt when it is not known.
std::optional<double> PeakFor(const Roof& roof, const std::string& format);

/// kInstructions: this program's code needs more time than the bytes, on as many threads as were measured; a floor of
/// bytes and sums stays what it is.
enum class Limit : std::uint8_t { kUnknown, kMemory, kCompute, kCache, kInstructions };
std::string_view LimitName(Limit limit);

/// One line of the bound: a part in one format.
struct Part {
  std::string role;
  std::string format;  // of its weights or of the KV cache; "f16" of activations
  std::uint64_t calls = 0;
  double bytes = 0;             // that one pass must read: weights, KV cache or activations
  double activation_bytes = 0;  // in and out, 16 bits each
  double flops = 0;
  bool streams = false;  // its bytes come from memory and are part of the pass's floor
  std::optional<double> floor_ns;
  Peak peak;                              // of its arithmetic
  std::optional<double> instructions;     // vector instructions of one token's machine code
  bool is_from_listing = true;            // where they were counted; false: in the loop program
  std::vector<Ceiling> ceilings;          // at each number of threads, ascending
  std::optional<double> unpack_floor_ns;  // on all threads
  Limit limit = Limit::kUnknown;
  std::optional<double> crossover_batch;  // M*: tables only
  double bits_per_weight = 0;             // tables only
};

/// What one pass moves and computes. A decoded token is a pass of one.
struct Pass {
  std::uint64_t depth = 0, tokens = 1, sequences = 1;
  double weight_bytes = 0, activation_bytes = 0, kv_bytes = 0;
  double kv_append_bytes = 0, row_bytes = 0;  // shown, not in the floor
  double weight_flops = 0, attention_flops = 0;
  double floor_ns = 0;        // the larger of all bytes over bandwidth and all operations over peak
  double parts_floor_ns = 0;  // sum of the parts' floors: no part overlaps another
  Limit limit = Limit::kUnknown;
  std::optional<double> instructions, attention_instructions;  // vector instructions of the whole token; of attention
  std::vector<Ceiling> ceilings;                               // of all its parts, one after another
  std::vector<Ceiling> attention_ceilings;                     // of attention alone

  [[nodiscard]] double bytes() const { return weight_bytes + activation_bytes + kv_bytes; }
  [[nodiscard]] double limit_tok_s() const { return static_cast<double>(tokens * sequences) * 1e9 / floor_ns; }
};

struct Bound {
  Roof roof;
  Pass pass;
  std::vector<Part> parts;
  std::vector<Part> code_parts;  // steps of the plan that the token graph does not have: instructions only
  std::vector<Pass> depths;      // the same pass at each depth asked for
  std::optional<double> ridge_ops_per_byte;
  double bits_per_weight = 0;             // of all tables that a token reads
  std::optional<double> crossover_batch;  // of the whole model
  InFlight in_flight;                     // by Little's law, at the bandwidth that floors divide by
};

struct BoundOptions {
  std::vector<std::uint64_t> depths{0};  // the first is the one whose parts are listed
  std::uint64_t batch = 1;               // sequences that decode together
  std::uint64_t prompt = 0;              // tokens of one prompt; 0: decoding
  model::CacheFormats cache = {};
};

/// kBoundOptions when a number is out of range.
Result<Bound> ComputeBound(const model::Model& model, const Roof& roof, const BoundOptions& options);

}  // namespace boltbeam::roofline
