// Numbers and units as other programs print them. The decimal sign is decided for a whole table, never for one cell:
// "211,94" and "1,205" mean different things in different files.
#pragma once

#include <optional>
#include <string_view>

namespace boltbeam::imports {

enum class Decimal : unsigned char { kPoint, kComma };

/// nullopt for anything that is not a finite decimal number with at most proper thousands separators ("n/a", "",
/// "inf").
std::optional<double> ParseNumber(std::string_view text, Decimal decimal = Decimal::kPoint);

/// What a text can be: "1.5" only a point, "211,94" only a comma, "1,205" either.
struct DecimalEvidence {
  bool point = false, comma = false;

  void Add(std::string_view text);
};

/// Nanoseconds of a unit such as "ns", "us", "µs", "ms", "s", "usecond"; nullopt for no unit of time.
std::optional<double> TimeUnitNs(std::string_view unit);
/// Bytes of "B", "KB", "MB", "Kbyte", "GB" (powers of 1000, as nsys and ncu print them).
std::optional<double> ByteUnit(std::string_view unit);

/// "1m34.992010661s", "957.094334ms", "1.38544025s" as Go prints durations; nanoseconds.
std::optional<double> ParseGoDuration(std::string_view text);

std::string_view Trim(std::string_view text);
bool StartsWithNoCase(std::string_view text, std::string_view prefix);

}  // namespace boltbeam::imports
