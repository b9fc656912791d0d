// The products of a token: tables times the vector before them, alone or several in one step.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/plan_assembly.h"
#include "engine/product_input.h"
#include "kernel/families/gemv.h"

namespace boltbeam::engine {

/// The shape of the kernel that a plan multiplies this table with.
kernel::GemvShape ProductShape(const model::Model& model, const model::Operation& operation, const Weights& weights,
                               const Options& options, bool decode);

/// The activation of the model's feed-forward blocks.
kernel::GateFunction GateFunctionOf(const model::Model& model);

class ProductsPart {
 public:
  ProductsPart(PlanAssembly& plan, ProductInput& input) : plan_(plan), input_(input) {}

  /// Products of one input: all its forms first, so that one barrier is enough where one is needed.
  Result<void> Add(std::span<const model::Operation> operations);

  /// Whether the products just added have put gate and up together already; that becomes their successor's input.
  [[nodiscard]] bool IsGated() const { return is_gated_; }
  /// Every thread's largest logit and its row (8 bytes each); nullptr when the head did not look for it.
  [[nodiscard]] std::byte* best() const { return best_; }

 private:
  struct Target {
    std::vector<std::byte*> output;  // by thread
    bool is_apart = false;           // a step of its own adds it to the stream
  };
  using Input = std::vector<std::byte*>;

  [[nodiscard]] kernel::GemvGeometry GeometryOf(const model::Operation& operation) const;
  Result<Target> TargetOf(const model::Operation& operation);
  Result<Target> ResidualTarget(const model::Operation& operation);
  Result<Target> GatedTarget();
  /// q, k or v side by side: tells attention where each of them lies.
  Result<Target> RowsTarget(std::span<const model::Operation> operations, const RowSpace& space);
  /// The biases of several tables as their rows lie.
  Result<std::byte*> BiasOf(std::span<const model::Operation> operations, const RowSpace& space);
  Result<void> Product(std::span<const model::Operation> operations, const RowSpace& space, const Input& input);
  Result<std::byte*> BestMemory();
  void AddToStream(const Table& table, std::byte* branch);

  PlanAssembly& plan_;
  ProductInput& input_;
  bool is_gated_ = false;
  std::byte* best_ = nullptr;
};

}  // namespace boltbeam::engine
