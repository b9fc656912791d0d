#include "audit/causes.h"

#include <algorithm>

namespace boltbeam::audit {
namespace {

constexpr double kMostOfExcess = 0.5;
constexpr double kSmallCallNs = 5000;     // of floor: below it, latency and start-up outweigh the stream
constexpr double kNearMemoryRate = 0.80;  // of the memory's rate

}  // namespace

std::string CauseOf(const Part& part, double band) {
  if (part.excess_ns < -band * part.floor_ns) return "cached";  // some of its bytes stayed in a cache
  if (part.excess_ns <= band * part.floor_ns) return "none";
  if (part.imbalance_ns > kMostOfExcess * part.excess_ns) return "imbalance";
  const double call_floor_ns = part.floor_ns / static_cast<double>(std::max<std::uint64_t>(1, part.calls));
  if (call_floor_ns < kSmallCallNs) return part.release_ns > part.excess_ns ? "barrier" : "small";
  return part.floor_ns > kNearMemoryRate * part.now_ns ? "memory" : "compute";
}

}  // namespace boltbeam::audit
