// How many threads compute when nobody says: as few as the memory needs to give all that it can.
#pragma once

#include <cstdint>
#include <string>

#include "chip/facts.h"

namespace boltbeam::engine {

struct ThreadChoice {
  std::uint32_t threads = 1;
  std::string why;  // in words, with the figures
};

/// Within this share of the best measured reading rate a number of threads is as good as any.
inline constexpr double kEnoughBandwidth = 0.01;

/// The smallest number of threads within 1 % of the best rate that this machine was measured to read at, and never more
/// than `most`; all of `most` when it was not measured. `bound` says in words what makes it the most.
ThreadChoice ChooseThreads(const chip::Chip& machine, std::uint32_t most, const std::string& bound);

/// Of this process: what its affinity mask and the quotas of its control groups allow.
ThreadChoice ChooseThreads(const chip::Chip& machine);

}  // namespace boltbeam::engine
