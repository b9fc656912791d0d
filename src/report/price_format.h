// What `price` shows.
#pragma once

#include <string>

#include "lab/prices.h"
#include "report/form.h"

namespace boltbeam::report {

std::string PriceReport(const lab::Price& price, Form form);
/// For a page: prices as bars, what owning and renting cost over the years, the tables and what was taken for granted,
/// under headings of that level.
std::string PriceSections(const lab::Price& price, int level);
/// A page of its own.
std::string PriceHtml(const lab::Price& price);

}  // namespace boltbeam::report
