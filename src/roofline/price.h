// What a token costs, one function for each formula of docs/formulas.md. A test checks the document's examples.
#pragma once

namespace boltbeam::roofline {

inline constexpr double kHoursPerYear = 8760;
inline constexpr double kSecondsPerHour = 3600;
inline constexpr double kMillion = 1e6;

/// US dollars for a million tokens of a machine that costs so much an hour and computes for `load` of it.
constexpr double UsdPerMillion(double usd_per_hour, double tok_s, double load) {
  return usd_per_hour / (kSecondsPerHour * tok_s * load) * kMillion;
}

/// Tokens a day above which the machine is cheaper than tokens at that price.
constexpr double BreakEvenTokensPerDay(double usd_per_hour, double usd_per_million) {
  return usd_per_hour * 24 / usd_per_million * kMillion;
}

/// The share of the hours that it must compute for, for tokens of its own to cost no more: above 1 it never does.
constexpr double BreakEvenLoad(double usd_per_hour, double tok_s, double usd_per_million) {
  return UsdPerMillion(usd_per_hour, tok_s, 1) / usd_per_million;
}

constexpr double UsdPerYear(double usd_per_hour) { return usd_per_hour * kHoursPerYear; }

constexpr double PowerUsdPerYear(double watts, double usd_per_kwh) {
  return watts / 1000 * kHoursPerYear * usd_per_kwh;
}

/// An hour of hardware of one's own: its price spread over its years, and its power.
constexpr double OwnedUsdPerHour(double card_usd, double years, double watts, double usd_per_kwh) {
  return card_usd / (years * kHoursPerYear) + watts / 1000 * usd_per_kwh;
}

/// Months of rent that buy the card.
constexpr double MonthsToBuy(double card_usd, double rent_usd_per_hour) {
  return card_usd / (UsdPerYear(rent_usd_per_hour) / 12);
}

/// Months until owning is cheaper: what is saved each month is the rent less one's own power.
constexpr double MonthsToOwn(double card_usd, double rent_usd_per_hour, double watts, double usd_per_kwh) {
  return card_usd / ((UsdPerYear(rent_usd_per_hour) - PowerUsdPerYear(watts, usd_per_kwh)) / 12);
}

constexpr double RentUsd(double rent_usd_per_hour, double years) { return UsdPerYear(rent_usd_per_hour) * years; }

constexpr double OwnUsd(double card_usd, double watts, double usd_per_kwh, double years) {
  return card_usd + PowerUsdPerYear(watts, usd_per_kwh) * years;
}

/// A reseller's fee is added to what the provider asks.
constexpr double WithFee(double usd_per_million, double fee_pct) { return usd_per_million * (1 + fee_pct / 100); }

/// What a microsecond more in every token costs in a year: that part of the hours computes nothing else.
constexpr double MicrosecondUsdPerYear(double usd_per_hour, double tok_s, double load) {
  return UsdPerYear(usd_per_hour) * load * tok_s * 1e-6;
}

/// Tokens a second of sequences that are decoded together: one pass serves all of them until its sums bind.
constexpr double BatchRate(double tok_s, double batch, double crossover) {
  return tok_s * (batch < crossover ? batch : crossover);
}

}  // namespace boltbeam::roofline
