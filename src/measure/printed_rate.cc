#include "measure/printed_rate.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_members.h"
#include "base/printable.h"

namespace boltbeam::measure {
namespace {

std::optional<double> RateOfJson(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return base::NumberAt(json.is_array() && !json.empty() ? json.back() : json, "avg_ts");
}

std::optional<double> LastNumber(std::string_view line) {
  std::optional<double> last;
  for (std::size_t i = 0; i < line.size();) {
    const bool starts = (line[i] >= '0' && line[i] <= '9') || line[i] == '-' || line[i] == 'i' || line[i] == 'n';
    const bool inside = i > 0 && (std::isalnum(static_cast<unsigned char>(line[i - 1])) != 0 || line[i - 1] == '.');
    double value = 0;
    const auto [end, error] = std::from_chars(line.data() + i, line.data() + line.size(), value);
    if (starts && !inside && error == std::errc()) {
      last = value;
      i = static_cast<std::size_t>(end - line.data());
    } else {
      ++i;
    }
  }
  return last;
}

std::optional<double> RateOfLines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t begin = text.find_last_of('\n');
    const std::string_view line = begin == std::string_view::npos ? text : text.substr(begin + 1);
    if (const auto number = LastNumber(line)) return number;
    if (begin == std::string_view::npos) break;
    text = text.substr(0, begin);
  }
  return std::nullopt;
}

}  // namespace

Result<double> TokensPerSecond(std::string_view text) {
  std::optional<double> rate = RateOfJson(text);
  if (!rate) rate = RateOfLines(text);
  if (!rate) {
    return Fail(Code::kUsage, "its output", fmt::format("\"{}\"", base::Printable(text)),
                "a number of tokens per second on the last line, or llama-bench's JSON");
  }
  if (std::isfinite(*rate) && *rate > 0) return *rate;
  return Fail(Code::kMeasurementImpossible, "its output", fmt::format("{} tokens per second", *rate),
              "a rate that a machine can reach");
}

}  // namespace boltbeam::measure
