// A loaded model that computes tokens with generated kernels.
//
// An Engine holds the weights, rearranged for this chip, the compiled kernels and the pinned threads. A Session holds
// the state of one sequence. Errors come back as values; nothing here prints.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "engine/faults.h"
#include "engine/geometry_choice.h"
#include "kernel/program.h"
#include "model/cache_format.h"
#include "model/model.h"

namespace boltbeam::engine {

struct Options {
  std::uint32_t threads = 0;  // 0: the fewest that draw the memory's rate where it is measured, else one per core
  std::uint64_t context = 0;  // positions of the KV cache; 0: min(4096, the model's)
  model::CacheFormats cache = {};
  std::uint32_t prompt_batch = 64;         // tokens per pass over the weights while reading a prompt (at least 8)
  std::uint64_t piece_bytes = 64 << 10;    // of a share that another thread may take over (route shared-tails)
  std::string cache_folder;                // compiled kernels
  std::vector<GeometryChoice> geometry;    // of tables' kernels; the default formula's for all others
  std::vector<std::string> with, without;  // names of routes (routes.h) that plans may take, or must not
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // bytes of weights loaded
  std::function<bool()> cancelled;                                        // polled while loading
  // For the account's own tests only, not reachable from the command line: the products of this part wait for so many
  // turns of a useless loop (some 4 cycles each) before every row group, inside their generated code; of the part
  // "norm" every norm does.
  std::string slow_part;
  std::uint32_t slow_turns = 0;
  Faults faults;  // for those tests, too
};

struct MemoryUse {
  std::uint64_t weights_bytes = 0;  // rearranged copy
  std::uint64_t kv_bytes = 0;
  std::uint64_t workspace_bytes = 0;
  std::uint64_t huge_page_bytes = 0;  // of the weights, backed by huge pages
};

/// One step of the token's plan as the account sees it: which part, which kernel.
struct StepInfo {
  std::string role;    // attn_qo, ffn_down, norm, rope, attention, gate, lm_head, embed, argmax
  std::string format;  // of the weights; "f32" for a step without
  std::int32_t layer = -1;
  std::string kernel;              // Program::name
  std::string kernel_id;           // Identity
  std::string provenance;          // compiler_generated, ...
  std::uint32_t phase = 0;         // steps of a phase run without a barrier between them
  std::uint64_t stored_bytes = 0;  // bytes that the kernel reads in its rearranged form
  bool streams = false;            // reads a table or the KV cache: memory sets its pace
  // Of a step that computes tables of several parts in one format: each part's stored bytes. Else empty.
  std::vector<std::pair<std::string, std::uint64_t>> parts;
};

/// What a decoded token does beside streaming weights and KV cache: barriers, and in each phase what the thread does
/// that does most of it.
struct PlanCost {
  double barriers = 0, calls = 0, bytes = 0, instructions = 0;  // bytes and vector instructions of small vectors
  // Of the streams, the bytes of the thread that has most of each phase: with fewer barriers unequal shares even out.
  double streamed = 0;
};

/// Time stamps of one token, in ticks of the steady counter (measure::Clock gives nanoseconds). [thread][step] and
/// [thread][phase].
struct Trace {
  std::vector<std::vector<std::uint64_t>> step_begin, step_end;
  std::vector<std::vector<std::uint64_t>> barrier_begin, barrier_end;  // wait at the end of each phase
  std::uint64_t token_begin = 0, token_end = 0;                        // on the calling thread
};

/// How a step of the decode plan is run apart from its token.
struct Alone {
  std::uint32_t step = 0;
  std::uint32_t runs = 1;
  std::int64_t most_items = 0;                       // of a thread's share in a run; 0: all of it
  std::function<void(std::uint32_t thread)> before;  // on every thread before each run, untimed; may be empty
};

struct AloneTimes {
  std::vector<std::vector<std::uint64_t>> ticks;  // [run][thread]
  std::vector<double> shares;                     // [thread]: how much of its share a run computed
};

class Session;

class Engine {
 public:
  /// The model must outlive the engine.
  static Result<std::unique_ptr<Engine>> Load(const model::Model& model, const chip::Chip& machine,
                                              const Options& options);
  virtual ~Engine() = default;

  virtual const model::Model& model() const = 0;
  virtual const Options& options() const = 0;  // with every default filled in
  virtual MemoryUse memory() const = 0;
  virtual std::span<const StepInfo> steps() const = 0;  // of the decode plan, in order
  virtual std::uint32_t phases() const = 0;
  virtual const std::map<std::string, kernel::Program>& programs() const = 0;  // by identity, of all plans
  /// How often a decoded token takes each route (routes.h); one that is off or not possible is missing.
  virtual const std::map<std::string_view, std::uint32_t>& route_uses() const = 0;
  /// What the token would cost beside its streams with these routes taken and those not; both empty: as it is.
  virtual Result<PlanCost> Cost(const std::vector<std::string>& with,
                                const std::vector<std::string>& without) const = 0;
  virtual std::string plan_id() const = 0;  // SHA-256 over kernels, order and threads
  /// Only one session of an engine computes at a time. The calling thread stays pinned to the plan's first CPU until it
  /// ends the session, which no other thread may do. kOutOfMemory when its KV cache does not fit.
  virtual Result<std::unique_ptr<Session>> NewSession() = 0;
};

class Session {
 public:
  virtual ~Session() = default;
  virtual std::uint64_t depth() const = 0;  // positions in the KV cache

  /// Appends tokens in batches of at most prompt_batch per pass. The logits of the last token are in logits() then;
  /// with `each` it is called with (index, logits) for every token (perplexity).
  virtual Result<void> Prompt(std::span<const std::int32_t> tokens,
                              const std::function<void(std::size_t, std::span<const float>)>& each = {}) = 0;
  /// Appends one token through the decode plan. `trace` non-null: with time stamps.
  virtual Result<void> Decode(std::int32_t token, Trace* trace = nullptr) = 0;
  virtual std::span<const float> logits() const = 0;  // [vocab], of the last token computed
  /// Whether tokens decoded from now on leave their logits, as they do at first. Without them argmax() is all there is,
  /// and a token writes the less.
  virtual void KeepLogits(bool keep) = 0;
  /// Whether threads share tails from now on where the plan lets them, as they do at first.
  virtual void ShareTails(bool /*share*/) {}
  virtual std::int32_t argmax() const = 0;  // computed by the plan's own kernel; lowest index wins a tie

  /// Runs one step by itself, all threads at once, with what the last token left in memory; what it overwrites there
  /// the next token computes anew. No times at all from a session that can't.
  virtual Result<AloneTimes> RunAlone(const Alone& /*alone*/) { return AloneTimes{}; }

  /// Forgets all positions from `depth` on (bench restores a context so; greedy tests restart so).
  virtual Result<void> Truncate(std::uint64_t depth) = 0;
};

}  // namespace boltbeam::engine
