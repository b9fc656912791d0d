#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <sstream>

#include "arguments.h"
#include "base/version.h"
#include "command.h"
#include "commands.h"

namespace {

/// "boltbeam chip measure", as far as the command line came.
std::string CommandName(const CLI::App& app) {
  const std::string& name = app.get_name();
  const std::vector<const CLI::App*> inner =
      app.get_subcommands([](const CLI::App* command) { return command->parsed(); });
  return inner.empty() ? name : name + " " + CommandName(*inner.front());
}

/// What is wrong with the command line. CLI11 names a missing argument before an unknown word.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining(true);
  const auto flag = std::ranges::find_if(unknown, [](const std::string& word) { return word.starts_with('-'); });
  if (flag != unknown.end()) return "there is no flag " + *flag;
  const bool no_command = app.get_subcommands().empty() && !unknown.empty();
  return no_command ? "there is no command '" + unknown.front() + "'" : error.what();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace boltbeam::app;
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is then an error of writing, as a full disk is
  Globals globals;
  CLI::App app("boltbeam audits what a token of an LLM costs the chip that computes it.", "boltbeam");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", std::string("boltbeam ") + boltbeam::base::kVersion);
  app.add_option("--home", globals.home, "Keep data, cache and settings below DIR instead of the XDG folders");
  app.require_subcommand(1);
  app.fallthrough();
  for (const AddCommand add : kCommands) add(app, globals);
  std::vector<std::string> arguments = NormaliseArguments(argc, argv);
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success& asked) {  // --help or --version
    std::ostringstream text;
    app.exit(asked, text);
    Finish(globals, WriteOutput({}, text.str()));
  } catch (const CLI::ParseError& error) {
    const std::string command = CommandName(app);
    std::fprintf(stderr, "boltbeam: %s; see %s --help\n", UsageError(app, error).c_str(), command.c_str());
    return kExitUsage;
  } catch (const std::exception& error) {  // such as no memory left for a string
    std::fprintf(stderr, "boltbeam: %s; this was not foreseen\n", error.what());
    return kExitFailed;
  }
  return globals.exit_status;
}
