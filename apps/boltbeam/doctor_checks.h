// What doctor looks at, one row each.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/paths.h"

namespace boltbeam::app {

struct Finding {
  std::string item;
  std::string state;   // found, missing, or n/a where the machine can't have it
  std::string detail;  // what there is
  std::string fix;     // how to mend it; empty when nothing has to be done
};

std::vector<Finding> Examine(const base::Paths& paths);

}  // namespace boltbeam::app
