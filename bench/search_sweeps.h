// Candidates timed in turns, cold, on a machine whose memory changes its rate.
#pragma once

#include <cstddef>
#include <vector>

#include "search/workshop.h"

namespace boltbeam::search {

struct Swept {
  std::vector<double> ns;  // median of each
  double read_gb_s = 0;    // the memory's median rate
  double repeat = 0;       // rank correlation of one half of the sweeps with the other
};

/// Sweeps of all, in an order by lot. Those count during which the memory read at about its median rate, unless that
/// are too few.
Swept SweepAll(TimingBench& bench, const std::vector<Contender>& contenders, std::size_t sweeps);

}  // namespace boltbeam::search
