// What `fit`, `predict` and `card` show.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

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
/// One model's forecasts.
struct ForecastSubject {
  lab::ModelFacts model;
  std::optional<lab::MachineFit> fit;  // nullopt: the line was stated, not fitted
  double fixed_ms = 0, bandwidth_gb_s = 0, worst_residual_ms = 0;
  double confidence = 0.95;
  std::optional<double> at_gb_s = {};
  std::optional<lab::RateCheck> rate = {};       // of a rate that somebody states
  std::optional<std::size_t> own_rows_out = {};  // rows of this very model that the line was to do without
  std::vector<ForecastRow> rows = {};            // a depth each
};
/// Of one model every number; of several one table.
std::string ForecastReport(std::span<const ForecastSubject> subjects, Form form);

/// What is said of each of several things, by their names: what is said of all of them once, what of some with the
/// name before it.
struct Said {
  std::string name;
  std::vector<std::string> texts;
};
std::vector<std::string> SaidTogether(std::span<const Said> said);

/// Cards beside each other.
std::string CardReport(std::span<const lab::Card> cards, Form form);
/// One drawing of all of them, with the ladders' points and lines.
std::string CardSvg(std::span<const lab::Card> cards);

}  // namespace boltbeam::report
