#include "base/shell.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "base/printable.h"

namespace boltbeam::base {
namespace {

constexpr std::size_t kMostOutput = std::size_t{4} << 20;

/// A file without a name in any folder, which is gone when it is closed.
class ErrorFile {
 public:
  ErrorFile() : file_(std::tmpfile()) {}
  ~ErrorFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  ErrorFile(const ErrorFile&) = delete;
  ErrorFile& operator=(const ErrorFile&) = delete;

  /// As a shell of this process's child opens it; nothing where there is no temporary folder.
  [[nodiscard]] std::string Path() const {
    return file_ == nullptr ? "/dev/null" : fmt::format("/proc/{}/fd/{}", getpid(), fileno(file_));
  }
  [[nodiscard]] std::string LastLine() const {
    std::string text;
    if (file_ == nullptr) return text;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    while (text.ends_with('\n')) text.pop_back();
    return text.substr(text.rfind('\n') + 1);
  }

 private:
  std::FILE* file_;
};

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

Result<std::string> RunQuietly(const std::string& command) {
  const ErrorFile errors;
  Result<std::string> output = RunProgram(fmt::format("exec 2>{}\n{}", errors.Path(), command));
  if (output) return output;
  Error error = std::move(output).error();
  error.where = Printable(command);
  if (const std::string line = errors.LastLine(); !line.empty()) error.found += ": " + Printable(line, 300);
  return std::unexpected(std::move(error));
}

}  // namespace boltbeam::base
