// What `price` shows.
#pragma once

#include <string>

#include "lab/prices.h"
#include "report/form.h"

namespace boltbeam::report {

std::string PriceReport(const lab::Price& price, Form form);
/// A page of its own: the tables and what owning and renting cost over the years.
std::string PriceHtml(const lab::Price& price);

}  // namespace boltbeam::report
