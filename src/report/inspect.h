// What `inspect` shows: a model's parts and the census of its bytes.
#pragma once

#include <string>

#include "model/census.h"
#include "model/model.h"
#include "report/form.h"

namespace boltbeam::report {

std::string InspectReport(const model::Model& model, const model::Census& census, Form form);

}  // namespace boltbeam::report
