#include "roofline/price.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "lab/prices.h"

namespace boltbeam::lab {
namespace {

/// What an input may be: a price of a million dollars an hour is a slip of the pen.
struct Range {
  std::string_view name;
  double least;
  double most;
  bool may_be_least;
};
constexpr std::array<Range, 8> kRanges = {{{"rent_usd_per_hour", 0, 1e6, false},
                                           {"card_usd", 0, 1e9, true},
                                           {"power_w", 0, 1e7, true},
                                           {"usd_per_kwh", 0, 100, true},
                                           {"amortisation_years", 0, 100, false},
                                           {"hosted_usd_per_million", 0, 1e6, false},
                                           {"reseller_fee_pct", 0, 100, true},
                                           {"load", 1e-6, 1, true}}};
constexpr double kLeastTokS = 1e-6, kMostTokS = 1e9;
constexpr double kMostBatch = 1e6;

Result<void> CheckRange(std::string_view name, double value, const Range& range) {
  const bool is_fine =
      std::isfinite(value) && value <= range.most && (range.may_be_least ? value >= range.least : value > range.least);
  if (is_fine) return {};
  return Fail(Code::kPriceInput, std::string(name), fmt::format("{}", value),
              fmt::format("a number {} {} and at most {}", range.may_be_least ? "of at least" : "above", range.least,
                          range.most));
}

Result<void> CheckQuestion(const PriceQuestion& question, const PriceList& list) {
  for (const Range& range : kRanges) BOLTBEAM_TRY(CheckRange(range.name, list.Get(range.name), range));
  const Range rate{"", kLeastTokS, kMostTokS, true}, count{"", 0, kMostTokS, true};
  BOLTBEAM_TRY(CheckRange("rate", question.tok_s, rate));
  if (question.floor_tok_s) BOLTBEAM_TRY(CheckRange("floor rate", *question.floor_tok_s, rate));
  if (question.prompt_tok_s) BOLTBEAM_TRY(CheckRange("prompt rate", *question.prompt_tok_s, rate));
  BOLTBEAM_TRY(CheckRange("batch", question.batch, {"", 1, kMostBatch, true}));
  if (question.batch != std::floor(question.batch)) {
    return Fail(Code::kPriceInput, "batch", fmt::format("{}", question.batch), "a whole number of sequences");
  }
  if (question.crossover) BOLTBEAM_TRY(CheckRange("crossover", *question.crossover, {"", 1, kMostBatch, true}));
  BOLTBEAM_TRY(CheckRange("prompt tokens", question.prompt_tokens, count));
  BOLTBEAM_TRY(CheckRange("generated tokens", question.generated_tokens, count));
  if (question.prompt_tokens > 0 && !question.prompt_tok_s) {
    return Fail(Code::kPriceInput, "prompt tokens", "no rate at which a prompt is read", "a prompt rate beside them");
  }
  if (question.floor_tok_s && *question.floor_tok_s < question.tok_s) {
    return Fail(
        Code::kPriceInput, "rate", fmt::format("{:.6g} tok/s", question.tok_s),
        fmt::format("at most the floor's {:.6g}: a token can't be faster than its bytes", *question.floor_tok_s));
  }
  return {};
}

PaidRate Paid(double usd_per_hour, const Price& price) {
  const double load = price.list.Get("load");
  PaidRate paid;
  paid.usd_per_hour = usd_per_hour;
  paid.usd_per_million = roofline::UsdPerMillion(usd_per_hour, price.tok_s, load);
  if (price.floor_tok_s)
    paid.usd_per_million_at_floor = roofline::UsdPerMillion(usd_per_hour, *price.floor_tok_s, load);
  if (price.question.prompt_tok_s) {
    paid.prompt_usd_per_million = roofline::UsdPerMillion(usd_per_hour, *price.question.prompt_tok_s, load);
  }
  if (price.question.prompt_tokens + price.question.generated_tokens > 0) {
    paid.request_usd = (paid.prompt_usd_per_million.value_or(0) * price.question.prompt_tokens +
                        paid.usd_per_million * price.question.generated_tokens) /
                       roofline::kMillion;
  }
  // A microsecond more in every pass, whatever the number of sequences that it serves.
  paid.microsecond_usd_per_year =
      roofline::MicrosecondUsdPerYear(usd_per_hour, price.tok_s / price.question.batch, load);
  return paid;
}

Price::BreakEven AgainstHosted(double usd_per_hour, const Price& price) {
  return {roofline::BreakEvenTokensPerDay(usd_per_hour, price.hosted_usd_per_million),
          roofline::BreakEvenLoad(usd_per_hour, price.tok_s, price.hosted_usd_per_million)};
}

/// Rate and floor of all sequences together. The floor of a batch is bound's own where a model is known: it has every
/// sequence's cache in it, and the sums; the rate keeps its share of the floor. Without one both grow with the batch up
/// to M*.
void AddRates(const PriceQuestion& question, Price& price) {
  const double crossover = question.crossover.value_or(std::numeric_limits<double>::infinity());
  price.tok_s = roofline::BatchRate(question.tok_s, question.batch, crossover);
  if (!question.floor_tok_s) return;
  price.floor_tok_s = roofline::BatchRate(*question.floor_tok_s, question.batch, crossover);
  if (!question.batch_floor_tok_s) return;
  price.floor_tok_s = question.batch_floor_tok_s;
  price.tok_s = question.tok_s / *question.floor_tok_s * *price.floor_tok_s;
}

}  // namespace

Result<Price> ComputePrice(const PriceQuestion& question, const PriceList& list) {
  BOLTBEAM_TRY(CheckQuestion(question, list));
  Price price;
  price.question = question;
  price.list = list;
  AddRates(question, price);

  const double rent = list.Get("rent_usd_per_hour"), card = list.Get("card_usd"), watts = list.Get("power_w");
  const double kwh = list.Get("usd_per_kwh"), paid_off = list.Get("amortisation_years");
  price.rented = Paid(rent, price);
  price.owned = Paid(roofline::OwnedUsdPerHour(card, paid_off, watts, kwh), price);
  price.hosted_usd_per_million = list.Get("hosted_usd_per_million");
  price.hosted_with_fee = roofline::WithFee(price.hosted_usd_per_million, list.Get("reseller_fee_pct"));
  price.rented_against_hosted = AgainstHosted(rent, price);
  price.owned_against_hosted = AgainstHosted(price.owned.usd_per_hour, price);
  price.tokens_per_day = price.tok_s * list.Get("load") * 24 * roofline::kSecondsPerHour;
  price.months_to_buy = roofline::MonthsToBuy(card, rent);
  const double months = roofline::MonthsToOwn(card, rent, watts, kwh);
  if (months > 0 && std::isfinite(months)) price.months_to_own = months;
  if (card == 0 && roofline::OwnedUsdPerHour(card, paid_off, watts, kwh) < rent) price.months_to_own = 0;
  std::vector<double> years{1, 2, 3};
  if (paid_off > years.back()) years.push_back(paid_off);
  for (const double span : years) {
    price.years.push_back({span, roofline::RentUsd(rent, span), roofline::OwnUsd(card, watts, kwh, span)});
  }
  return price;
}

}  // namespace boltbeam::lab
