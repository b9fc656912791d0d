#include "engine/product_input.h"

#include <fmt/format.h>

#include "engine/routes.h"
#include "kernel/families/elementwise.h"

namespace boltbeam::engine {

void ProductInput::Set(std::vector<std::byte*> vectors, std::uint64_t elements, Owner owner, std::uint64_t granule) {
  vectors_ = std::move(vectors);
  elements_ = elements;
  owner_ = owner;
  granule_ = granule;
  if (owner != Owner::kEvery) plan_.Spread();
  quantised_.clear();
}

bool ProductInput::HasWholeBlocksForEveryThread(const kernel::ActivationLayout& layout) const {
  const auto divides = [&](std::uint64_t elements) { return elements_ % (elements * plan_.threads()) == 0; };
  return divides(layout.elements) && divides(granule_);
}

Result<std::vector<std::byte*>> ProductInput::For(const kernel::ActivationLayout& layout) {
  if (layout.is_float) return vectors_;
  for (const auto& [known, buffers] : quantised_) {
    if (known == layout) return buffers;
  }
  const std::string purpose = fmt::format("act.{}.{}.{}.{}.{}", elements_, layout.elements, layout.sum_elements,
                                          layout.bias, layout.block_bytes);
  const bool by_blocks = owner_ == Owner::kParts && plan_.Take(kQuantiseByBlocks, HasWholeBlocksForEveryThread(layout));
  if (owner_ == Owner::kParts && !by_blocks) {
    plan_.EndPhase();
    owner_ = Owner::kEvery;
  }
  const bool by_one = owner_ == Owner::kOne;
  BOLTBEAM_ASSIGN(std::vector<std::byte*> out,
                  plan_.Scratch(purpose, layout.ColumnBytes(elements_), by_blocks || by_one));
  Buffers buffers;
  for (std::uint32_t t = 0; t < plan_.threads(); ++t) buffers.push_back({vectors_[t], out[t]});
  if (by_blocks || by_one) {
    plan_.Spread();
  } else {
    plan_.BeginColumnwise();
  }
  // While decoding a block counts as a column: the work items are blocks.
  const std::uint64_t elements = plan_.decode() && !by_one ? layout.elements : elements_;
  const auto items = static_cast<std::int64_t>(elements_ / elements);
  const Work work = by_one      ? PlanAssembly::OneThread()
                    : by_blocks ? PlanAssembly::Once(items)
                                : plan_.Columnwise(items);
  plan_.AddStep(kernel::BuildQuantize({elements, elements * 4, 0, plan_.lanes()}, layout), "quantize", "F32", work,
                std::move(buffers), elements_ * 4);
  quantised_.emplace_back(layout, out);
  return out;
}

}  // namespace boltbeam::engine
