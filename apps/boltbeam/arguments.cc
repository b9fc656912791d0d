#include "arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string_view>

#include "report/table.h"

namespace boltbeam::app {
namespace {

// llama.cpp's names of more than one letter after a single dash. Only these: "-ojson" is -o with its value.
constexpr std::array<std::string_view, 21> kLongNames = {"ctk", "ctv",  "pg",   "oe", "ub",   "ngl", "ncmoe",
                                                         "sm",  "mg",   "nkvo", "fa", "dev",  "lm",  "lzm",
                                                         "mmp", "embd", "ts",   "ot", "nopo", "hf",  "rpc"};

std::string Normalise(std::string_view argument) {
  if (argument.size() > 1 && argument[0] == '-' &&
      std::ranges::find(kLongNames, argument.substr(1)) != kLongNames.end()) {
    return std::string("-").append(argument);
  }
  std::string text(argument);
  if (argument.starts_with("--")) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(text.find('='), text.size()));
    std::replace(text.begin(), end, '_', '-');
  }
  return text;
}

}  // namespace

std::vector<std::string> NormaliseArguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) arguments.push_back(Normalise(argv[i]));
  return arguments;
}

Result<double> ParseBudget(const std::string& text, double least_s) {
  constexpr double kMost_s = 86400;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size());
  const double seconds = unit == "m" ? 60 * value : value;
  const bool is_known = error == std::errc() && (unit.empty() || unit == "s" || unit == "m");
  if (is_known && seconds >= least_s && seconds <= kMost_s) return seconds;
  return Fail(Code::kUsage, "--budget", text, fmt::format("{}s to 24 hours, such as 60s or 2m", least_s));
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  std::string names = CLI::Formatter::make_option_name(option, is_positional);
  for (const std::string_view name : kLongNames) {
    const std::string two_dashes = "--" + std::string(name);
    const std::size_t at = names.find(two_dashes);
    if (at == std::string::npos) continue;
    const std::size_t end = at + two_dashes.size();
    if (end == names.size() || names[end] == ',') names.erase(at, 1);
  }
  return names;
}

namespace {

/// A line of at most 80 columns and what follows it, under the column where its description begins.
std::string WrapLine(std::string_view line) {
  constexpr std::size_t kWidth = 80, kDescription = 30;
  const bool is_row = line.starts_with("  ") && line.size() > kDescription && line[kDescription - 1] == ' ';
  const std::size_t indent = is_row ? kDescription : 2;
  const std::string_view head = line.substr(0, is_row ? kDescription : 0);
  return std::string(head) + report::Wrap(line.substr(head.size()), indent, kWidth, head.size());
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::istringstream help(CLI::Formatter::make_help(app, std::move(name), mode));
  std::string text;
  for (std::string line; std::getline(help, line);) {
    text += (report::DisplayWidth(line) > 80 ? WrapLine(line) : line) + "\n";
  }
  return text;
}

}  // namespace boltbeam::app
