// The commands below `boltbeam chip`: one line each, called by AddChip.
#pragma once

#include "command.h"

namespace boltbeam::app {

void AddChipList(CLI::App& chip, Globals& globals);
void AddChipShow(CLI::App& chip, Globals& globals);

}  // namespace boltbeam::app
