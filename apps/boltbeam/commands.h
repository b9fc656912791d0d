// The list of commands: one line each for the declaration and for the table.
#pragma once

#include <array>

#include "command.h"

namespace boltbeam::app {

using AddCommand = void (*)(CLI::App&, Globals&);

// Read
// Bound
// Run and account
// Kernels
// Set-up

inline constexpr std::array<AddCommand, 0> kCommands = {};

}  // namespace boltbeam::app
