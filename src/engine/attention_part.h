// The steps between the products of q, k and v and the output's: RoPE, the KV cache, attention.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/plan_assembly.h"
#include "engine/product_input.h"

namespace boltbeam::engine {

class AttentionPart {
 public:
  AttentionPart(PlanAssembly& plan, ProductInput& input) : plan_(plan), input_(input) {}

  Result<void> AddRope(const model::Operation& operation);
  /// Attention and the sum over its chunks, which becomes the input of the next product.
  Result<void> AddAttention(const model::Operation& operation);

 private:
  /// Keys into the cache as codes, and the queries that meet them as codes.
  void AddCodes(const model::Operation& operation);
  [[nodiscard]] bool IsLocal(const model::Operation& operation) const;
  [[nodiscard]] kernel::AttentionShape ShapeOf(const model::Operation& operation) const;
  [[nodiscard]] std::byte* KeyCache(const model::Operation& operation) const;
  [[nodiscard]] std::byte* ValueCache(const model::Operation& operation) const;

  PlanAssembly& plan_;
  ProductInput& input_;
  bool by_heads_ = false;  // in this layer
};

}  // namespace boltbeam::engine
