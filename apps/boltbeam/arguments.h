// Spellings of flags that CLI11 does not know by itself but users of llama.cpp write.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace boltbeam::app {

/// argv without the program's name: a long name after one dash gets its second one ("-ctk" is "--ctk"), and an
/// underscore in a flag's name is a dash ("--n_prompt" is "--n-prompt").
std::vector<std::string> NormaliseArguments(int argc, const char* const* argv);

/// Seconds of a --budget such as "60s", "2m" or "90", up to a day. kUsage below `least_s` and for anything else.
Result<double> ParseBudget(const std::string& text, double least_s);

/// Help texts that show those names as they are written, with one dash.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace boltbeam::app
