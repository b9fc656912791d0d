// Why a part is slower than its floor, in one word.
#pragma once

#include <string>

#include "audit/account.h"

namespace boltbeam::audit {

/// none: at its floor within the band. imbalance: the slowest thread explains most of the excess. barrier: the part is
/// so short that the barrier after it costs more than its own excess. small: each call is too short to fill the memory.
/// memory: near the rate of the memory, which is not reached in full. compute: the sums take longer than the bytes.
std::string CauseOf(const Part& part, double band);

}  // namespace boltbeam::audit
