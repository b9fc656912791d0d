// What `chip list` and `chip show` show.
#pragma once

#include <string>
#include <vector>

#include "chip/facts.h"
#include "report/form.h"

namespace boltbeam::report {

std::string ChipListReport(const std::vector<chip::Chip>& chips, Form form);
std::string ChipReport(const chip::Chip& chip, Form form);

}  // namespace boltbeam::report
