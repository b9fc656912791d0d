// Who is the fastest of those that a slow memory makes equal.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/error.h"
#include "search/workshop.h"

namespace boltbeam::search {

/// Which of them takes least of a memory twice as fast, as this one may be at another time: half of what each takes now
/// (`now_ns`, its weights from memory), and what it computes, which is timed with weights from a cache. kInterrupted
/// when `cancelled` says so.
Result<std::size_t> FastestOfEven(const std::vector<const Contender*>& even, const std::vector<double>& now_ns,
                                  TimingBench& bench, const std::function<bool()>& cancelled);

}  // namespace boltbeam::search
