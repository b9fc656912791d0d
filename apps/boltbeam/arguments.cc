#include "arguments.h"

#include <algorithm>
#include <array>
#include <string_view>

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

}  // namespace boltbeam::app
