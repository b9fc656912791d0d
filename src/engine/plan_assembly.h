// A plan while it is being put together: its steps and phases, the memory between them, the routes that it takes.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan.h"
#include "model/token_graph.h"

namespace boltbeam::engine {

/// The buffers of a step on every thread.
using Buffers = std::vector<std::vector<void*>>;

class PlanAssembly {
 public:
  PlanAssembly(PlanContext& context, bool decode)
      : c_(context), decode_(decode), columns_(decode ? 1 : context.workspace.max_columns) {}

  [[nodiscard]] const PlanContext& context() const { return c_; }
  [[nodiscard]] const Workspace& workspace() const { return c_.workspace; }
  [[nodiscard]] const model::HyperParameters& hyper() const { return c_.model.hyper(); }
  [[nodiscard]] bool decode() const { return decode_; }
  [[nodiscard]] std::uint32_t threads() const { return c_.threads; }
  [[nodiscard]] std::uint16_t lanes() const { return c_.facts.lanes; }

  /// Steps that are added from now on belong to this operation.
  void Begin(const model::Operation& operation) { operation_ = &operation; }
  void AddStep(kernel::Program&& program, const std::string& role, const std::string& format, Work work,
               Buffers buffers, std::uint64_t stored_bytes = 0);
  [[nodiscard]] Step& LastStep() { return plan_.steps.back(); }

  /// The step just added is a product: if a barrier follows it at once, who has finished may take over pieces of the
  /// others' shares. Its first buffer is the table.
  void MayShareTails(std::uint64_t group_bytes) { group_bytes_ = group_bytes; }

  /// A barrier, if there is anything to wait for.
  void EndPhase();
  /// While a prompt is read, columnwise steps are shared among threads: their results need a barrier before a product.
  void BeginColumnwise() { is_columnwise_ = true; }
  void EndColumnwise();
  [[nodiscard]] bool IsColumnwise() const { return is_columnwise_; }
  /// No thread has the whole input of what follows before the next barrier.
  void Spread() { is_spread_ = true; }

  /// Work of every thread for itself while decoding; columns shared among the threads while a prompt is read.
  [[nodiscard]] Work Columnwise(std::int64_t items = 1) const { return {items, true, PerChunk::kNo, decode_}; }
  /// Work of one thread while decoding, always the same one; columns shared among the threads while a prompt is read.
  [[nodiscard]] static Work OneThread() { return {1, true, PerChunk::kNo, false}; }
  /// Work items shared among the threads whatever the number of columns.
  static Work Once(std::int64_t items) { return {items, false, PerChunk::kNo, false}; }

  // Buffers that differ from thread to thread are cut anew for each; shared ones repeat.
  [[nodiscard]] Buffers Shared(const std::vector<void*>& buffers) const { return Buffers(c_.threads, buffers); }
  /// Memory for a vector that the products of a phase read, by thread: of every thread's own while decoding, unless the
  /// threads fill it together.
  Result<std::vector<std::byte*>> Scratch(const std::string& purpose, std::uint64_t column_bytes,
                                          bool together = false);
  /// Memory of each thread's own whatever the plan.
  Result<std::vector<std::byte*>> ThreadScratch(const std::string& purpose, std::uint64_t bytes);
  /// Memory of one step alone.
  Result<std::byte*> Memory(std::uint64_t bytes) { return c_.arena.Allocate(bytes); }

  /// Where a thread finds the rows of this layer's q, k or v.
  void SetHeads(model::Role role, std::vector<std::byte*> places) { heads_[role] = std::move(places); }
  [[nodiscard]] std::byte* Heads(model::Role role, std::uint32_t thread) const { return heads_.at(role)[thread]; }

  /// Whether the routes asked for include this one, in a decode plan.
  [[nodiscard]] bool IsOn(std::string_view route) const;
  /// Whether a decode plan may take a route; counts that it does.
  bool Take(std::string_view route, bool is_possible);

  /// What comes from here on is computed for one column of a pass only: the final norm and the head.
  void EndBody();
  /// The finished plan. Nothing may be added after it.
  Plan Finish();

 private:
  void ShareTails(Step& step);

  PlanContext& c_;
  const bool decode_;
  const std::uint64_t columns_;
  Plan plan_;
  const model::Operation* operation_ = nullptr;
  std::uint64_t group_bytes_ = 0;  // of the last step, when its threads may share their tails
  bool is_columnwise_ = false, is_spread_ = false;
  std::map<std::string, std::vector<std::byte*>> scratch_;
  std::map<model::Role, std::vector<std::byte*>> heads_;  // by thread, of the layer that is being planned
};

}  // namespace boltbeam::engine
