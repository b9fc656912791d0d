// Other programs, run by a shell.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace boltbeam::base {

/// The text in single quotes, for a shell.
std::string ShellQuoted(std::string_view text);

/// What the command printed on stdout, at most 4 MiB of it. kUsage with its exit status; its stderr goes where ours
/// goes.
Result<std::string> RunProgram(const std::string& command);

/// The same without its stderr, of which the last line is told when it fails: for commands that are run over and over.
Result<std::string> RunQuietly(const std::string& command);

}  // namespace boltbeam::base
