#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/paths.h"
#include "base/pending_file.h"
#include "command.h"

namespace boltbeam::app {
namespace {

int ExitStatus(Code code) {
  switch (CodeGroup(code)) {
    case Group::kUsage:
      return kExitUsage;
    case Group::kMeasurement:
      return kExitMeasurement;
    default:
      return kExitFailed;
  }
}

}  // namespace

void AddOutputFlags(CLI::App& command, Globals& globals, const std::vector<std::string>& formats) {
  command.add_option("-o,--output", globals.format, "Output format")
      ->check(CLI::IsMember(formats))
      ->capture_default_str();
  command.add_option("--out", globals.out_file, "Write the result to FILE instead of stdout");
}

Result<void> WriteOutput(const Globals& globals, const std::string& text) {
  if (base::IsSpecialFile(globals.out_file)) return base::WriteFileAtomically(globals.out_file, text);
  if (!globals.out_file.empty()) {  // no folder is made: it might be a slip of the pen
    BOLTBEAM_ASSIGN(base::PendingFile file, base::PendingFile::Create(globals.out_file));
    BOLTBEAM_TRY(file.Write(text));
    return file.Commit();
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) return Fail(Code::kFileWrite, "stdout", std::strerror(errno), "an output that can be written to");
  return {};
}

void Finish(Globals& globals, const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "boltbeam: %s\n", result.error().Message().c_str());
  globals.exit_status = ExitStatus(result.error().code);
}

}  // namespace boltbeam::app
