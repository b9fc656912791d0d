// What is odd about a line.
#pragma once

#include <string>

#include "lab/fit.h"

namespace boltbeam::lab {

/// Adds the warnings of the line, the findings about its models, and the architecture that most of them have.
void AddNotes(MachineFit& fit);

/// What a fixed cost below zero means; empty for any other.
std::string NegativeFixedCost(const MachineFit& fit);

}  // namespace boltbeam::lab
