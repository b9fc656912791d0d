#include <cstdio>

#include "command.h"
#include "commands.h"

int main(int argc, char** argv) {
  using namespace boltbeam::app;
  Globals globals;
  CLI::App app("boltbeam audits what a token of an LLM costs the chip that computes it.", "boltbeam");
  app.set_version_flag("--version", "boltbeam 0.1.0");
  app.add_option("--home", globals.home, "Keep data, cache and settings below DIR instead of the XDG folders");
  app.require_subcommand(1);
  app.fallthrough();
  for (const AddCommand add : kCommands) add(app, globals);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "boltbeam: %s; boltbeam --help lists the commands\n", error.what());
    return kExitUsage;
  }
  return globals.exit_status;
}
