// The largest of many values and where it lies, the first of equals.
#pragma once

#include "kernel/builder.h"

namespace boltbeam::kernel {

struct Best {
  Value value, index;
};

inline constexpr float kLowest = -3.0e38F;  // below every logit

/// Lane by lane: the larger value, and of equals the lower index.
Best Better(Best a, Best b);
/// The best lane, as scalars.
Best ReduceBest(Best best);
/// Lane by lane `best`, or value at index where that is larger: for indices that ascend.
Best Improved(Best best, Value value, Value index);

}  // namespace boltbeam::kernel
