// The instruction sets that machine code may be held to, so that one machine runs what is generated for lesser ones.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"

namespace boltbeam::chip {

/// One level. A chip is held to it by taking away the features of all levels above.
struct InstructionSet {
  std::string_view name;
  std::span<const std::string_view> needs;  // declared features that the level is nothing without
  std::span<const std::string_view> any;    // and at least one of these
  std::span<const std::string_view> adds;   // features of this level, those that it needs among them
};

/// Least first: those of x86, then those of arm64, which all begin with `plain`.
std::span<const InstructionSet> InstructionSets();
/// The names of those that the chip has, least first; `plain` is among them.
std::vector<std::string_view> InstructionSetsOf(const Chip& chip);
/// Takes every feature above the set from the chip. kUsage when the chip lacks the set; the error names what it has.
Result<void> HoldTo(Chip& chip, std::string_view set);

}  // namespace boltbeam::chip
