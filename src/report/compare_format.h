// What `compare` shows of two accounts: regions, terms, the residual, and a sentence in plain words.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "audit/compare/comparison.h"

namespace boltbeam::report {

/// format: text, md or json. With several, JSON has the first one's fields at its top and all under `comparisons`.
std::string CompareReport(std::span<const audit::Comparison> comparisons, std::string_view format);

}  // namespace boltbeam::report
