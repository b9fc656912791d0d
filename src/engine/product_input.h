// The vector that the next products read, and the quantised forms that they read it in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/plan_assembly.h"
#include "kernel/weight_layout.h"

namespace boltbeam::engine {

class ProductInput {
 public:
  explicit ProductInput(PlanAssembly& plan) : plan_(plan) {}

  /// Who has computed the vector when the products are planned.
  enum class Owner : std::uint8_t {
    kEvery,  // every thread has all of it
    kParts,  // every thread has a part, and no barrier came since
    kOne,    // one thread has all of it, and no barrier came since
  };
  /// Parts are equal shares of so many `granules`.
  void Set(std::vector<std::byte*> vectors, std::uint64_t elements, Owner owner, std::uint64_t granule = 1);
  /// The input in the form that a table's products read: quantised at most once per form, by a step of the plan.
  Result<std::vector<std::byte*>> For(const kernel::ActivationLayout& layout);

 private:
  [[nodiscard]] bool HasWholeBlocksForEveryThread(const kernel::ActivationLayout& layout) const;

  PlanAssembly& plan_;
  std::vector<std::byte*> vectors_;
  std::uint64_t elements_ = 0;
  std::uint64_t granule_ = 1;
  Owner owner_ = Owner::kEvery;
  std::vector<std::pair<kernel::ActivationLayout, std::vector<std::byte*>>> quantised_;
};

}  // namespace boltbeam::engine
