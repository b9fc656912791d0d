// What `fit`, `predict` and `card` show.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "lab/card.h"
#include "lab/fit.h"
#include "lab/predict.h"
#include "report/form.h"

namespace boltbeam::report {

std::string FitReport(std::span<const lab::MachineFit> fits, Form form);

/// A forecast with what was measured afterwards, if anything was.
struct ForecastRow {
  lab::Forecast forecast;
  std::optional<lab::Miss> miss;
  std::string record;  // hash in the ledger, or empty
};
struct ForecastSubject {
  const lab::MachineFit* fit = nullptr;  // nullptr: the line was stated, not fitted
  const lab::ModelFacts* model = nullptr;
  double fixed_ms = 0, bandwidth_gb_s = 0, worst_residual_ms = 0;
  double confidence = 0.95;
  std::optional<double> at_gb_s;
  std::optional<lab::RateCheck> rate;  // of a rate that somebody states
};
std::string ForecastReport(const ForecastSubject& subject, std::span<const ForecastRow> rows, Form form);

/// Cards beside each other.
std::string CardReport(std::span<const lab::Card> cards, Form form);
/// One drawing of all of them, with the ladders' points and lines.
std::string CardSvg(std::span<const lab::Card> cards);

}  // namespace boltbeam::report
