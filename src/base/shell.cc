#include "base/shell.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>

#include "base/printable.h"

namespace boltbeam::base {
namespace {

constexpr std::size_t kMostOutput = std::size_t{4} << 20;

}  // namespace

std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Result<std::string> RunProgram(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) return Fail(Code::kUsage, Printable(command), "can't be started", "a command for a shell");
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t bytes = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    if (output.size() < kMostOutput) output.append(buffer.data(), bytes);
  }
  const int status = pclose(pipe);
  if (status == 0) return output;
  const std::string how = WIFEXITED(status) ? fmt::format("exit status {}", WEXITSTATUS(status)) : "ended by a signal";
  return Fail(Code::kUsage, Printable(command), how, "a command that succeeds");
}

}  // namespace boltbeam::base
