#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>

#include "arguments.h"
#include "base/version.h"
#include "command.h"
#include "commands.h"

int main(int argc, char** argv) {
  using namespace boltbeam::app;
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is then an error of writing, as a full disk is
  Globals globals;
  CLI::App app("boltbeam audits what a token of an LLM costs the chip that computes it.", "boltbeam");
  app.set_version_flag("--version", std::string("boltbeam ") + boltbeam::base::kVersion);
  app.add_option("--home", globals.home, "Keep data, cache and settings below DIR instead of the XDG folders");
  app.require_subcommand(1);
  app.fallthrough();
  for (const AddCommand add : kCommands) add(app, globals);
  std::vector<std::string> arguments = NormaliseArguments(argc, argv);
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> unknown = app.remaining();
    const bool no_command = app.get_subcommands().empty() && !unknown.empty();
    const std::string what = no_command ? "there is no command '" + unknown.front() + "'" : error.what();
    std::fprintf(stderr, "boltbeam: %s; boltbeam --help lists the commands\n", what.c_str());
    return kExitUsage;
  } catch (const std::exception& error) {  // such as no memory left for a string
    std::fprintf(stderr, "boltbeam: %s; this was not foreseen\n", error.what());
    return kExitFailed;
  }
  return globals.exit_status;
}
