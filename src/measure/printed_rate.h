// The rate that another program says it reached.
#pragma once

#include <string_view>

#include "base/error.h"

namespace boltbeam::measure {

/// The rate in what a program printed: `avg_ts` of llama-bench's JSON (of the last test), or else the last number of
/// the last line that holds one. kUsage when there is none; kMeasurementImpossible when it is not above 0.
Result<double> TokensPerSecond(std::string_view text);

}  // namespace boltbeam::measure
