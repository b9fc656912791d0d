// Where kernels' code lies, so that a measurement can be repeated with the code elsewhere.
#pragma once

#include <cstdint>

namespace boltbeam::runtime {

/// Of all code that this process loads from now on. 0, as at first, lays every kernel at the beginning of a page; any
/// other number gives each kernel a place of its own within its page.
void SetCodePlacement(std::uint32_t placement);
std::uint32_t CodePlacement();

/// Code is shifted by multiples of a cache line.
inline constexpr std::uint64_t kCodeShift = 64;

}  // namespace boltbeam::runtime
