#include "base/ticks.h"

#include <ctime>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace boltbeam::base {
namespace {

#if defined(__x86_64__)
// CPUID 0x80000007, EDX bit 8: the counter runs at one rate in every power state.
bool HasInvariantCounter() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kPowerLeaf = 0x80000007U;
  constexpr unsigned kInvariantBit = 1U << 8;
  return __get_cpuid(kPowerLeaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantBit) != 0;
}
#else
bool HasInvariantCounter() { return false; }
#endif

}  // namespace

namespace internal {
const bool kUseCounter = HasInvariantCounter();
}

std::uint64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

bool TicksAreCounter() { return internal::kUseCounter; }

}  // namespace boltbeam::base
