// Rates that were measured on several numbers of threads and several widths of vectors.
//
// NAME is what all threads of the machine reach together with its widest vectors. NAME.threads_N is what N of them
// reach together, NAME.bits_B what all of them reach with vectors of B bits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "chip/facts.h"

namespace boltbeam::chip {

/// NAME.threads_N by N, ascending; empty where it was not measured so.
std::map<std::uint32_t, double> RatesByThreads(const Chip& chip, std::string_view name);

/// The threads that NAME was measured on: all that the process could use then.
std::uint32_t ThreadsMeasured(const Chip& chip, std::string_view name);

/// What `threads` threads reach together with vectors of `bits` (0: the widest). As measured on that number; between
/// two that were measured on the line between them; where only all were measured, an equal share for each. nullopt
/// where nothing was measured, or not at that width.
std::optional<double> RateOn(const Chip& chip, std::string_view name, std::uint32_t threads, std::uint32_t bits = 0);

}  // namespace boltbeam::chip
