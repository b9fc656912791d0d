// Which geometries of attention a chip can run, and why the others not: what space.h is for a product.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/families/attention.h"
#include "kernel/space.h"

namespace boltbeam::kernel {

struct AttentionReason {
  std::string_view knob;  // that it is against: "lanes", "chunk" (positions), "dot"; by its value alone
  Refusal refusal;
  std::string evidence;  // in numbers
};

/// Every reason against the knobs of a shape whose head_dim, key and value are set; none: it runs and is no other
/// point. What has no meaning (Refusal::kNoMeaning) runs, as the point with another value of that knob does.
std::vector<AttentionReason> AttentionRefusals(const AttentionShape& shape, const SpaceFacts& facts);

}  // namespace boltbeam::kernel
