// The state of one sequence: its KV cache and how deep it is.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/plan.h"
#include "runtime/memory.h"
#include "runtime/shared_tails.h"
#include "runtime/thread_pool.h"

namespace boltbeam::engine {

/// What sessions share: the plans, the threads and the buffers. One session computes at a time.
struct Machine {
  const model::Model* model = nullptr;
  Options options;
  kernel::AttentionShape attention;
  Workspace workspace;
  Plan decode, prompt;
  std::uint16_t prompt_tile = 1;  // columns of a tile of the prompt plan's products
  runtime::ThreadPool* pool = nullptr;
  std::vector<double> rope_frequencies;        // radians per position of each pair
  std::vector<double> local_rope_frequencies;  // of layers with a sliding window; empty when there are none
  std::uint64_t rope_positions = 0;            // rows of the tables that are filled in
  runtime::HugeBuffer cache;                   // of keys and values
  bool has_session = false;
};

class MachineSession final : public Session {
 public:
  explicit MachineSession(Machine& machine)
      : m_(machine), pin_(machine.pool->first_cpu()), tails_(machine.pool->size()) {
    m_.has_session = true;
  }
  ~MachineSession() override { m_.has_session = false; }

  std::uint64_t depth() const override { return depth_; }
  Result<void> Prompt(std::span<const std::int32_t> tokens,
                      const std::function<void(std::size_t, std::span<const float>)>& each) override;
  Result<void> Decode(std::int32_t token, Trace* trace) override;
  std::span<const float> logits() const override;
  std::int32_t argmax() const override;
  void KeepLogits(bool keep) override { keep_logits_ = keep; }
  void ShareTails(bool share) override { shares_tails_ = share; }
  Result<void> Truncate(std::uint64_t depth) override;
  Result<AloneTimes> RunAlone(const Alone& alone) override;

 private:
  Result<void> Check(std::span<const std::int32_t> tokens) const;
  Result<void> ReadRows(std::span<const std::int32_t> tokens);
  void SetState(std::uint64_t columns);
  void FillRopeTable(std::uint64_t positions);
  void RunSteps(const Plan& plan, std::uint32_t first_phase, std::uint32_t last_phase, Trace* trace);
  /// Norm, head and argmax of one column of the stream, through the decode plan.
  void FinishColumn(std::uint64_t column);

  /// Work items of a step, with the faults that a test has put into it.
  static void RunRange(const Call& call, const runtime::Range& range);
  /// A thread's part of a step.
  void RunCall(const Plan& plan, std::uint32_t step, std::uint32_t thread);
  /// A thread's part of a step whose threads take pieces of each other's shares.
  void RunShared(const Plan& plan, std::uint32_t step, std::uint32_t thread);

  Machine& m_;
  runtime::Pin pin_;  // of the thread that made the session, and runs it
  runtime::SharedTails tails_;
  std::uint32_t first_turn_ = 0;  // of the steps of a pass: no two steps of a session have the same turn
  std::uint64_t depth_ = 0;
  PassSizes pass_;
  bool keep_logits_ = true, shares_tails_ = true;
};

}  // namespace boltbeam::engine
