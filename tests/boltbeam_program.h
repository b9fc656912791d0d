// Test support: runs the real program and catches what it prints.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace boltbeam {

struct ProgramOutcome {
  int status = -1;     // -1: ended by a signal
  std::string output;  // stdout and stderr, or what the redirections in `arguments` leave
};

inline ProgramOutcome RunBoltbeam(const std::string& arguments) {
  ProgramOutcome outcome;
  FILE* pipe = popen(("(" BOLTBEAM_PROGRAM " " + arguments + ") 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  while (const std::size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.output.append(buffer.data(), bytes);
  }
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace boltbeam
