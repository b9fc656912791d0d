// What `search --until propose` and `--until predict` show.
#pragma once

#include <string>

#include "chip/facts.h"
#include "model/model.h"
#include "report/form.h"
#include "search/survey.h"

namespace boltbeam::report {

/// has_prediction: the survey went on to foretell times.
std::string SurveyReport(const model::Model& model, const chip::Chip& chip, const search::Survey& survey,
                         bool has_prediction, Form form);

}  // namespace boltbeam::report
