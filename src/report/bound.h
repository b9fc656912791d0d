// What `bound` shows: the floor of every part, of the token, and what follows from them.
#pragma once

#include <string>

#include "chip/facts.h"
#include "model/model.h"
#include "report/form.h"
#include "roofline/bound.h"

namespace boltbeam::report {

std::string BoundReport(const model::Model& model, const chip::Chip& chip, const roofline::Bound& bound, Form form);

}  // namespace boltbeam::report
