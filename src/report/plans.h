// Installed plans, as `boltbeam plan` shows them.
#pragma once

#include <string>
#include <vector>

#include "report/form.h"
#include "search/plan_file.h"

namespace boltbeam::report {

/// here: the id of this machine's chip; only its plans are taken here.
std::string PlanListReport(const std::vector<search::PlanFile>& plans, const std::string& here, Form form);

/// One plan with its tables. Its own JSON is that of the file.
std::string PlanReport(const search::PlanFile& plan, Form form);

}  // namespace boltbeam::report
