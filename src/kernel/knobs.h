// The knobs of a product's geometry by name: what a search enumerates, what --geometry takes and what plans store.
//
//   lanes=16,scales=packed,vectors=2,dot=dot4,unroll=1,chains=1,depth=1,order=ascending,prefetch=0,hint=near,every=1
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

struct Knob {
  std::string_view name;
  std::string_view what;                // for a person, one line
  std::vector<std::uint32_t> values;    // candidates for a search, ascending
  std::vector<std::string_view> words;  // what values are called that are no numbers: words[value]
  std::uint32_t (*get)(const GemvGeometry& geometry);
  void (*set)(GemvGeometry& geometry, std::uint32_t value);
  bool changes_table;  // the layout of the rearranged weights depends on it

  [[nodiscard]] std::string ValueText(std::uint32_t value) const;
};

/// All knobs of one column's product, always in the same order: a value's legality never hangs on a later knob, but for
/// what it needs at the least.
std::span<const Knob> GemvKnobs();

/// Every knob as name=value, separated by commas.
std::string GeometryText(const GemvGeometry& geometry);
/// `base` with the knobs that the text names turned. kUsage names what isn't known and what there is; whether the point
/// is legal, Refusals says.
Result<GemvGeometry> ParseGeometry(std::string_view text, const GemvGeometry& base);

}  // namespace boltbeam::kernel
