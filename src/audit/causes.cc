#include "audit/causes.h"

#include <algorithm>

namespace boltbeam::audit {
namespace {

constexpr double kMostOfExcess = 0.5;
constexpr double kMostOfTime = 0.75;
constexpr double kSmallCallNs = 5000;   // of floor: below it, latency and start-up outweigh the stream
constexpr double kAtMemoryRate = 0.90;  // of the memory's rate: good kernels reach about as much
constexpr double kNearMemoryRate = 0.80;

}  // namespace

std::string CauseOf(const Part& part, double band) {
  if (part.excess_ns < -band * part.floor_ns) return "cached";  // some of its bytes stayed in a cache
  if (part.excess_ns <= band * part.floor_ns) return "none";
  if (part.imbalance_ns > kMostOfExcess * part.excess_ns) return "imbalance";
  if (part.steps > part.calls && part.streams && part.stored_bytes > 0) return "toll";
  if (part.hot_ns > kMostOfTime * part.now_ns) return "compute";
  const double call_floor_ns = part.floor_ns / static_cast<double>(std::max<std::uint64_t>(1, part.calls));
  if (call_floor_ns < kSmallCallNs) return part.release_ns > part.excess_ns ? "barrier" : "small";
  if (part.floor_ns > kAtMemoryRate * part.now_ns) return "memory";
  if (part.hot_ns > 0 && part.cold_ns > 0) return part.cold_ns > (1 + band) * part.floor_ns ? "rate" : "memory";
  return part.floor_ns > kNearMemoryRate * part.now_ns ? "memory" : "compute";
}

}  // namespace boltbeam::audit
