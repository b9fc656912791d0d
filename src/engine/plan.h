// Which kernel runs which part, with which buffers, in which phase: what a pass over the model is.
//
// A phase is a list of steps that run one after another without a barrier between them; a barrier ends it. A step
// either shares its work items among the threads or, when it is local, is done by every thread for itself in memory of
// its own: for the small vectors between two products that costs less than a barrier.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/weights.h"
#include "kernel/families/attention.h"
#include "kernel/geometry.h"
#include "runtime/thread_pool.h"

namespace boltbeam::engine {

/// What changes from pass to pass.
struct PassSizes {
  std::int64_t columns = 1;        // tokens
  std::int64_t chunks = 1;         // of the KV cache that hold positions
  std::int64_t window_chunks = 1;  // of those, the ones that layers with a sliding window see
};

enum class PerChunk : std::uint8_t { kNo, kAll, kWindow };

/// The number of work items: a product of what is fixed and what changes with the pass.
struct Work {
  std::int64_t items = 1;
  bool times_columns = false;
  PerChunk per_chunk = PerChunk::kNo;
  bool local = false;

  [[nodiscard]] std::int64_t Count(const PassSizes& pass) const {
    const std::int64_t chunks = per_chunk == PerChunk::kNo    ? 1
                                : per_chunk == PerChunk::kAll ? pass.chunks
                                                              : pass.window_chunks;
    return items * (times_columns ? pass.columns : 1) * chunks;
  }
  /// Of so many items, those of one thread.
  [[nodiscard]] runtime::Range RangeOf(std::int64_t count, std::uint32_t thread, std::uint32_t threads) const {
    return local ? runtime::Range{0, count} : runtime::Share(count, thread, threads);
  }
};

struct Step {
  StepInfo info;
  const kernel::Program* program = nullptr;
  runtime::KernelFunction function = nullptr;
  Work work;
  std::int64_t piece_items = 0;             // of a piece of the shares' ends that any thread may take; 0: none
  std::vector<runtime::Range> shares;       // [thread]: its work items; empty: equal shares of the work
  std::vector<std::vector<void*>> buffers;  // [thread]
};

/// What a thread needs to run a step, and nothing else. Steps lie one after another in memory: between two kernels that
/// stream weights through the caches, every pointer that is followed is a miss.
struct Call {
  runtime::KernelFunction function = nullptr;
  void* const* buffers = nullptr;
  std::uint32_t buffer_count = 0;
  Work work;
  std::int64_t piece_items = 0;
  bool has_share = false;  // else equal shares of the work
  runtime::Range share;
  StepFault fault;  // none, but in tests

  [[nodiscard]] runtime::Range RangeOf(const PassSizes& pass, std::uint32_t thread, std::uint32_t threads) const {
    return has_share ? share : work.RangeOf(work.Count(pass), thread, threads);
  }
};

/// Of a thread's share of a product, this part of it (the last quarter) may be taken over by other threads.
inline constexpr std::int64_t kSharedPart = 4;
inline constexpr std::size_t kMostSharedBuffers = 8;

struct Plan {
  std::vector<Step> steps;
  std::vector<std::uint32_t> phase_end;  // one past the last step of each phase
  std::uint32_t body_steps = 0;          // the steps before the final norm
  std::uint32_t body_phases = 0;
  std::map<std::string_view, std::uint32_t> route_uses;  // how often a pass takes each route
  std::vector<std::vector<Call>> calls;                  // [thread][step]
  std::vector<std::vector<void*>> pointers;              // [thread]: the buffers of all its calls

  /// Fills in calls from steps whose functions are known.
  void Flatten(std::uint32_t threads, const Faults& faults = {});
};

/// Buffers that all plans of an engine share.
struct Workspace {
  std::uint32_t max_columns = 1;
  std::byte *rows = nullptr, *x = nullptr, *query = nullptr, *query_codes = nullptr, *key = nullptr, *value = nullptr,
            *gate = nullptr, *up = nullptr;
  // The stream that the decode plan reads and writes: of each thread's own when norms add to it, else x for all.
  std::vector<std::byte*> streams;
  std::byte* branch = nullptr;  // what a block adds to the stream, before its norm
  std::byte *partial = nullptr, *logits = nullptr, *argmax_partial = nullptr, *argmax = nullptr, *state = nullptr;
  std::byte* rope_table = nullptr;
  std::byte* local_rope_table = nullptr;  // of layers with a sliding window; rope_table when there are none
  std::byte* cache = nullptr;             // of keys and values, layer after layer
  std::uint64_t row_bytes = 0;            // of one embedding row as kernels read it
};

/// Everything that plans are built from.
struct PlanContext {
  const model::Model& model;
  const Weights& weights;
  const Options& options;
  kernel::VectorFacts facts;
  kernel::AttentionShape attention;  // of layers that see all positions
  Workspace workspace;
  std::uint32_t threads = 1;
  Arena& arena;
  std::map<std::string, kernel::Program>& programs;  // by identity: one of each
};

/// The decode plan (one column; with the argmax) or the prompt plan (max_columns; without).
Result<Plan> BuildPlan(PlanContext& context, bool decode);

/// What the plan of a decoded token costs beside the streams of weights and KV cache.
PlanCost CostOf(const Plan& plan, std::uint32_t threads);

/// kKernelProvenance when a step's kernel carries a label that may not ship in a default plan.
Result<void> CheckProvenance(const Plan& plan);

}  // namespace boltbeam::engine
