#include "audit/import/numbers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace boltbeam::imports {
namespace {

constexpr std::size_t kLongestNumber = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Digits with a separator before every group of three, or digits alone.
bool ProperInteger(std::string_view digits, char separator) {
  const std::size_t first = digits.find(separator);
  if (first == std::string_view::npos) return std::ranges::all_of(digits, IsDigit);
  if (first == 0 || first > 3) return false;
  std::size_t in_group = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (digits[i] == separator) {
      if (i != first && in_group != 3) return false;
      in_group = 0;
    } else {
      if (!IsDigit(digits[i])) return false;
      ++in_group;
    }
  }
  return in_group == 3;
}

struct Pieces {
  bool negative = false;
  std::string_view whole, fraction, exponent;
};

std::optional<Pieces> Split(std::string_view text, Decimal decimal) {
  const char point = decimal == Decimal::kPoint ? '.' : ',', separator = decimal == Decimal::kPoint ? ',' : '.';
  Pieces pieces;
  if (text.starts_with('-') || text.starts_with('+')) {
    pieces.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (const std::size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    pieces.exponent = text.substr(e + 1);
    text = text.substr(0, e);
    std::string_view digits = pieces.exponent;
    if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
    if (digits.empty() || digits.size() > 4 || !std::ranges::all_of(digits, IsDigit)) return std::nullopt;
  }
  const std::size_t at = text.find(point);
  pieces.whole = text.substr(0, at);
  if (at != std::string_view::npos) pieces.fraction = text.substr(at + 1);
  if (pieces.whole.empty() && pieces.fraction.empty()) return std::nullopt;
  if (!ProperInteger(pieces.whole, separator)) return std::nullopt;
  if (!std::ranges::all_of(pieces.fraction, IsDigit)) return std::nullopt;
  return pieces;
}

}  // namespace

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

bool StartsWithNoCase(std::string_view text, std::string_view prefix) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  return text.size() >= prefix.size() && std::ranges::equal(text.substr(0, prefix.size()), prefix, same);
}

std::optional<double> ParseNumber(std::string_view text, Decimal decimal) {
  text = Trim(text);
  if (text.empty() || text.size() > kLongestNumber) return std::nullopt;
  const auto pieces = Split(text, decimal);
  if (!pieces) return std::nullopt;
  std::string plain = pieces->negative ? "-" : "";
  for (const char c : pieces->whole) {
    if (IsDigit(c)) plain += c;
  }
  if (pieces->whole.empty()) plain += '0';
  if (!pieces->fraction.empty()) plain.append(".").append(pieces->fraction);
  if (!pieces->exponent.empty()) plain.append("e").append(pieces->exponent);
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc() || end != plain.data() + plain.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

void DecimalEvidence::Add(std::string_view text) {
  text = Trim(text);
  const bool as_point = ParseNumber(text, Decimal::kPoint).has_value();
  const bool as_comma = ParseNumber(text, Decimal::kComma).has_value();
  point = point || (as_point && !as_comma);
  comma = comma || (as_comma && !as_point);
}

std::optional<double> TimeUnitNs(std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, double>, 18> kUnits{{{"ns", 1},
                                                                               {"nsec", 1},
                                                                               {"nsecond", 1},
                                                                               {"nanoseconds", 1},
                                                                               {"us", 1e3},
                                                                               {"usec", 1e3},
                                                                               {"µs", 1e3},
                                                                               {"μs", 1e3},
                                                                               {"usecond", 1e3},
                                                                               {"microseconds", 1e3},
                                                                               {"ms", 1e6},
                                                                               {"msec", 1e6},
                                                                               {"msecond", 1e6},
                                                                               {"milliseconds", 1e6},
                                                                               {"s", 1e9},
                                                                               {"sec", 1e9},
                                                                               {"second", 1e9},
                                                                               {"seconds", 1e9}}};
  const auto found = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
  return found == kUnits.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> ByteUnit(std::string_view unit) {
  constexpr std::string_view kPrefixes = "kmgt";
  std::string lower;
  for (const unsigned char c : unit) lower += static_cast<char>(std::tolower(c));
  double scale = 1;
  if (const std::size_t power = lower.empty() ? std::string_view::npos : kPrefixes.find(lower.front());
      power != std::string_view::npos) {
    scale = std::pow(1000, static_cast<double>(power + 1));
    lower.erase(0, 1);
  }
  if (lower != "b" && lower != "byte" && lower != "bytes") return std::nullopt;
  return scale;
}

std::optional<double> ParseGoDuration(std::string_view text) {
  text = Trim(text);
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto value = ParseNumber(text.substr(0, digits));
    if (!value) return std::nullopt;
    text.remove_prefix(digits);
    const std::size_t letters = std::min(text.find_first_of("0123456789"), text.size());
    const std::string_view unit = text.substr(0, letters);
    constexpr double kMinute = 60e9, kHour = 3600e9;
    std::optional<double> ns = TimeUnitNs(unit);
    if (unit == "m") ns = kMinute;
    if (unit == "h") ns = kHour;
    if (!ns) return std::nullopt;
    total += *value * *ns;
    text.remove_prefix(letters);
  }
  return total;
}

}  // namespace boltbeam::imports
