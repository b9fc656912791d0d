// What is odd about a line.
#pragma once

#include "lab/fit.h"

namespace boltbeam::lab {

/// Adds the warnings of the line, the findings about its models, and the architecture that most of them have.
void AddNotes(MachineFit& fit);

}  // namespace boltbeam::lab
