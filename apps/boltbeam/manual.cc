// boltbeam manual DIR: manual pages and shell completions, made from the same descriptions as the help texts. For the
// build; not listed in --help.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "arguments.h"
#include "base/paths.h"
#include "base/version.h"
#include "command.h"
#include "manual_page.h"

namespace boltbeam::app {
namespace {

namespace fs = std::filesystem;

Result<void> WriteManual(const CLI::App& program, const std::string& folder) {
  const fs::path root(folder);
  BOLTBEAM_TRY(base::WriteFileAtomically(root / "man1/boltbeam.1", ProgramPage(program)));
  for (const CLI::App* command : VisibleCommands(program)) {
    BOLTBEAM_TRY(base::WriteFileAtomically(root / fmt::format("man1/boltbeam-{}.1", command->get_name()),
                                           CommandPage(*command)));
  }
  BOLTBEAM_TRY(base::WriteFileAtomically(root / "completions/boltbeam", BashCompletion(program)));
  BOLTBEAM_TRY(base::WriteFileAtomically(root / "completions/_boltbeam", ZshCompletion(program)));
  return base::WriteFileAtomically(root / "completions/boltbeam.fish", FishCompletion(program));
}

}  // namespace

void AddManual(CLI::App& app, Globals& globals) {
  const auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("manual", "Write manual pages and shell completions below DIR");
  command->group("");  // for the build
  command->add_option("folder", *folder, "Where they go")->required()->type_name("DIR");
  command->callback([folder, &app, &globals] { Finish(globals, WriteManual(app, *folder)); });
}

}  // namespace boltbeam::app
