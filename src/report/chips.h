// What `chip list` and `chip show` show.
#pragma once

#include <string>
#include <vector>

#include "chip/facts.h"
#include "report/form.h"

namespace boltbeam::report {

/// this_machine: the id of the row that is the machine itself.
std::string ChipListReport(const std::vector<chip::Chip>& chips, const std::string& this_machine, Form form);
std::string ChipReport(const chip::Chip& chip, Form form);

}  // namespace boltbeam::report
