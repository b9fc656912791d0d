// Why a part is slower than its floor, in one word.
#pragma once

#include <string>

#include "audit/account.h"

namespace boltbeam::audit {

/// none: at its floor within the band. cached: faster, some of its bytes stayed in a cache. imbalance: the slowest
/// thread explains most of the excess. toll: launched more often than it has tables. barrier: so short that the barrier
/// after it costs more than its own excess. small: each call is too short to fill the memory. memory: at nine tenths of
/// the memory's rate or more. Where its kernels were timed alone: compute, when out of the caches they take most of the
/// time; rate, when alone they are slow too; memory, when only the token slows them. Without those times: memory, near
/// the memory's rate; compute, far from it.
std::string CauseOf(const Part& part, double band);

}  // namespace boltbeam::audit
