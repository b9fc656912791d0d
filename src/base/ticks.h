// The steady counter that every time stamp is taken from: cheap enough to read around each kernel of a token.
//
// On x86-64 it is the time stamp counter where the processor declares it invariant; elsewhere the system's monotonic
// clock in nanoseconds. Stamps of different threads are comparable. measure/clock.h turns ticks into nanoseconds.
#pragma once

#include <cstdint>

namespace boltbeam::base {

/// Nanoseconds of the system's monotonic clock.
std::uint64_t MonotonicNs();

/// Seconds since a reading of it.
inline double SecondsSince(std::uint64_t begin_ns) { return static_cast<double>(MonotonicNs() - begin_ns) / 1e9; }

/// Whether Ticks() reads the processor's own counter; otherwise a tick is a nanosecond.
bool TicksAreCounter();

namespace internal {
extern const bool kUseCounter;
}

inline std::uint64_t Ticks() {
#if defined(__x86_64__)
  if (internal::kUseCounter) [[likely]] {
    return __builtin_ia32_rdtsc();
  }
#endif
  return MonotonicNs();
}

}  // namespace boltbeam::base
