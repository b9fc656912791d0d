#include "report/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace boltbeam::report {
namespace {

std::string GroupDigits(std::string digits) {
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

struct Scale {
  double factor;
  const char* unit;
};

/// The largest scale that leaves at least 1, or the last one.
template <std::size_t N>
const Scale& Fitting(double value, const std::array<Scale, N>& scales) {
  for (const Scale& scale : scales) {
    if (std::abs(value) >= scale.factor) return scale;
  }
  return scales.back();
}

}  // namespace

std::string Thousands(std::uint64_t value) { return GroupDigits(std::to_string(value)); }

std::string Decimal(double value, int places) {
  const std::string text = fmt::format("{:.{}f}", std::abs(value), places);
  const std::size_t point = text.find('.');
  const std::string whole = GroupDigits(text.substr(0, point));
  return fmt::format("{}{}{}", value < 0 ? "-" : "", whole, point == std::string::npos ? "" : text.substr(point));
}

std::string Bytes(double bytes) {
  constexpr std::array kScales = {Scale{1e12, "TB"}, Scale{1e9, "GB"}, Scale{1e6, "MB"}, Scale{1e3, "kB"},
                                  Scale{1, "B"}};
  const Scale& scale = Fitting(bytes, kScales);
  if (scale.factor == 1) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{:.4g} {}", bytes / scale.factor, scale.unit);
}

std::string Duration(double nanoseconds) {
  constexpr std::array kScales = {Scale{1e9, "s"}, Scale{1e6, "ms"}, Scale{1e3, "µs"}, Scale{1, "ns"}};
  const Scale& scale = Fitting(nanoseconds, kScales);
  return fmt::format("{:.3f} {}", nanoseconds / scale.factor, scale.unit);
}

std::string Scaled(double value) {
  constexpr std::array kScales = {Scale{1e15, "P"}, Scale{1e12, "T"}, Scale{1e9, "G"},
                                  Scale{1e6, "M"},  Scale{1e3, "k"},  Scale{1, ""}};
  const Scale& scale = Fitting(value, kScales);
  return fmt::format("{:.4g} {}", value / scale.factor, scale.unit);
}

std::string Percent(double share, int places) { return fmt::format("{:.{}f} %", 100 * share, places); }

}  // namespace boltbeam::report
