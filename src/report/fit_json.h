// Lines of ladders as JSON: every number that `fit` shows, and the intervals of each.
#pragma once

#include <span>
#include <string>

#include "lab/fit.h"

namespace boltbeam::report {

std::string FitJson(std::span<const lab::MachineFit> fits);

}  // namespace boltbeam::report
