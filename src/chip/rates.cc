#include "chip/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

namespace boltbeam::chip {
namespace {

double Between(const std::map<std::uint32_t, double>& rates, std::uint32_t threads) {
  const auto above = rates.lower_bound(threads);
  if (above == rates.end()) return rates.rbegin()->second;  // no more CPUs than were measured
  if (above->first == threads) return above->second;
  const auto [low, low_rate] =
      above == rates.begin() ? std::pair<const std::uint32_t, double>{0, 0} : *std::prev(above);
  return low_rate + (above->second - low_rate) * (threads - low) / (above->first - low);
}

}  // namespace

std::map<std::uint32_t, double> RatesByThreads(const Chip& chip, std::string_view name) {
  const std::string prefix = fmt::format("{}.threads_", name);
  std::map<std::uint32_t, double> rates;
  for (const Fact& fact : chip.facts) {
    if (!fact.name.starts_with(prefix) || fact.provenance == Provenance::kUnknown) continue;
    const char* const end = fact.name.data() + fact.name.size();
    std::uint32_t threads = 0;
    const auto read = std::from_chars(fact.name.data() + prefix.size(), end, threads);
    if (read.ptr == end && threads > 0) rates.emplace(threads, fact.value);
  }
  return rates;
}

std::uint32_t ThreadsMeasured(const Chip& chip, std::string_view name) {
  for (const std::string_view curve : {name, std::string_view("read_bandwidth_gb_s")}) {
    const auto rates = RatesByThreads(chip, curve);
    if (!rates.empty()) return rates.rbegin()->first;
  }
  for (const std::string_view count : {"usable_cpus", "threads", "cores"}) {
    if (const auto value = chip.Get(count); value && *value >= 1) return static_cast<std::uint32_t>(*value);
  }
  return 1;
}

std::optional<double> RateOn(const Chip& chip, std::string_view name, std::uint32_t threads, std::uint32_t bits) {
  const std::optional<double> all = chip.Get(name);
  if (!all) return std::nullopt;
  const std::uint32_t measured = ThreadsMeasured(chip, name);
  const auto rates = RatesByThreads(chip, name);
  const double rate =
      rates.empty() ? *all * std::min(1.0, static_cast<double>(threads) / measured) : Between(rates, threads);
  const double widest = chip.Get("vector_bits").value_or(bits);
  if (bits == 0 || bits >= widest) return rate;
  const std::optional<double> narrow = chip.Get(fmt::format("{}.bits_{}", name, bits));
  if (!narrow) return std::nullopt;
  return rate * *narrow / *all;
}

}  // namespace boltbeam::chip
