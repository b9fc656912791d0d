// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace boltbeam::report {

/// 4,670,533,632
std::string Thousands(std::uint64_t value);
/// 1234.5678 with two places: 1,234.57
std::string Decimal(double value, int places);
/// "4.671 GB": 1 GB = 1e9 bytes, four digits.
std::string Bytes(double bytes);
/// "300.297 µs": ns, µs, ms or s, three places.
std::string Duration(double nanoseconds);
/// "255.4 T": k, M, G, T, P, four digits; with a unit after it: Scaled(x) + "FLOP/s".
std::string Scaled(double value);
/// 0.1234 is "12.3 %".
std::string Percent(double share, int places = 1);

}  // namespace boltbeam::report
