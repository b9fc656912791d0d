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

namespace boltbeam::roofline {

/// What a chip can move and compute, in the units of its facts.
struct Roof {
  double bandwidth_gb_s = 0;
  std::optional<double> peak_flop_s;
  std::optional<double> cache_bandwidth_gb_s;
  std::optional<double> latency_ns;  // of a memory access
  // The second ceiling, of a CPU that was measured: vector instructions a second on all threads, and how many of them
  // this program's product spends on a weight of each format.
  std::optional<double> vector_instructions_s;
  std::map<std::string, double> instructions_per_weight;
  std::string bandwidth_from, peak_from;  // in words
};

/// What the chip says, or what takes its place; kBoundNoBandwidth when neither says a bandwidth.
Result<Roof> RoofOf(const chip::Chip& chip, std::optional<double> bandwidth_gb_s = {},
                    std::optional<double> peak_flop_s = {});

enum class Limit : std::uint8_t { kUnknown, kMemory, kCompute, kCache };
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
  std::optional<double> unpack_floor_ns;  // tables, one column: what the instructions take at least
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

  [[nodiscard]] double bytes() const { return weight_bytes + activation_bytes + kv_bytes; }
  [[nodiscard]] double limit_tok_s() const { return static_cast<double>(tokens * sequences) * 1e9 / floor_ns; }
};

struct Bound {
  Roof roof;
  Pass pass;
  std::vector<Part> parts;
  std::vector<Pass> depths;  // the same pass at each depth asked for
  std::optional<double> ridge_ops_per_byte;
  double bits_per_weight = 0;             // of all tables that a token reads
  std::optional<double> crossover_batch;  // of the whole model
  std::optional<double> bytes_in_flight;  // Little's law
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
