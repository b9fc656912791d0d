// What a token costs: prices from a small file that people edit, each with its source, and a rate.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace boltbeam::lab {

/// One figure that somebody stated.
struct PriceInput {
  std::string name;  // "rent_usd_per_hour"
  double value = 0;
  std::string unit, source, date, what;
};

/// A worked example: formula names a function of roofline/price.h.
struct PriceExample {
  std::string what, formula;
  std::vector<double> arguments;
  double printed = 0;
  int places = 0;
};

struct PriceList {
  std::vector<PriceInput> inputs;
  std::vector<PriceExample> examples;

  /// The value of an input that every list has.
  [[nodiscard]] double Get(std::string_view name) const;
  /// A flag takes the place of what the file says.
  void Set(std::string_view name, double value);
  [[nodiscard]] const PriceInput* Find(std::string_view name) const;
};

/// The embedded list, its values replaced by those of prices.json in the config folder and then of `file` (empty:
/// none). kLabRow names a value that is missing, unknown or out of range.
Result<PriceList> LoadPrices(const std::string& config_folder, const std::string& file);
/// text is JSON; where names it in errors.
Result<PriceList> ParsePrices(std::string_view text, const std::string& where);

/// What is asked: only the rate has to be known.
struct PriceQuestion {
  double tok_s = 0;                                // of one sequence
  std::optional<double> floor_tok_s;               // the limit of the memory
  std::optional<double> prompt_tok_s;              // while a prompt is read
  double batch = 1;                                // sequences that are decoded together, a whole number
  std::optional<double> batch_floor_tok_s;         // of all of them: bound's own limit of that batch
  std::optional<double> crossover;                 // M*: tokens together at which sums begin to bind
  double prompt_tokens = 0, generated_tokens = 0;  // of one request; both 0: no request
};

/// One way to pay, in US dollars.
struct PaidRate {
  double usd_per_hour = 0;
  double usd_per_million = 0;                      // at the measured rate
  std::optional<double> usd_per_million_at_floor;  // and at the floor's
  std::optional<double> prompt_usd_per_million;
  std::optional<double> request_usd;
  double microsecond_usd_per_year = 0;  // of every token
};

struct YearCost {
  double years = 0, rent_usd = 0, own_usd = 0;
};

struct Price {
  PriceQuestion question;
  PriceList list;
  double tok_s = 0;  // of all sequences together
  std::optional<double> floor_tok_s;
  PaidRate rented, owned;
  double hosted_usd_per_million = 0, hosted_with_fee = 0;
  struct BreakEven {
    double tokens_per_day = 0;
    double load = 0;  // above 1: hosted is always cheaper
  };
  BreakEven rented_against_hosted, owned_against_hosted;
  double tokens_per_day = 0;            // at the load that is stated
  double months_to_buy = 0;             // of rent
  std::optional<double> months_to_own;  // its power included; nullopt: never
  std::vector<YearCost> years;          // 1, 2, 3 and as many as the card is paid off in
};

/// kPriceInput names the rate, load or price that makes no sense.
Result<Price> ComputePrice(const PriceQuestion& question, const PriceList& list);

}  // namespace boltbeam::lab
