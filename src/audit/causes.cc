#include "audit/causes.h"

#include <algorithm>
#include <cmath>

namespace boltbeam::audit {
namespace {

constexpr double kMostOfExcess = 0.5;
constexpr double kMostOfTime = 0.75;
constexpr double kSmallCallNs = 5000;   // of floor: below it, latency and start-up outweigh the stream
constexpr double kAtMemoryRate = 0.90;  // of the memory's rate: good kernels reach about as much
constexpr double kNearMemoryRate = 0.80;
constexpr double kMuchCompute = 0.5, kAsSum = 0.15, kNearlyAll = 0.8;

/// Instructions that take nearly as long as the bytes, or half as long and more and one after the other with them.
bool IsNotUnderTheBytes(const Part& part) {
  if (part.hot_ns > kNearlyAll * part.floor_ns) return true;
  const double one_after_the_other = part.hot_ns + part.floor_ns;
  return part.cold_ns > 0 && part.hot_ns > kMuchCompute * part.floor_ns &&
         std::abs(part.cold_ns - one_after_the_other) < kAsSum * part.cold_ns;
}

}  // namespace

std::string CauseOf(const Part& part, double band) {
  if (part.excess_ns < -band * part.floor_ns) return "cached";  // some of its bytes stayed in a cache
  if (part.excess_ns <= band * part.floor_ns) return "none";
  if (part.imbalance_ns > kMostOfExcess * part.excess_ns) return "imbalance";
  if (part.steps > part.calls && part.streams && part.stored_bytes > 0) return "toll";
  const bool is_at_rate = part.floor_ns > kAtMemoryRate * part.now_ns;
  if (part.hot_ns > kMostOfTime * part.now_ns || (!is_at_rate && IsNotUnderTheBytes(part))) return "compute";
  const double call_floor_ns = part.floor_ns / static_cast<double>(std::max<std::uint64_t>(1, part.calls));
  if (call_floor_ns < kSmallCallNs) return part.release_ns > part.excess_ns ? "barrier" : "small";
  if (is_at_rate) return "memory";
  if (part.hot_ns > 0 && part.cold_ns > 0) return part.cold_ns > (1 + band) * part.floor_ns ? "rate" : "memory";
  return part.floor_ns > kNearMemoryRate * part.now_ns ? "memory" : "compute";
}

}  // namespace boltbeam::audit
