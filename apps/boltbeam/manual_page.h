// Manual pages (man(7)) and completions of shells from the description of a command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace boltbeam::app {

/// Commands that help lists, in its order.
std::vector<const CLI::App*> VisibleCommands(const CLI::App& app);

std::string ProgramPage(const CLI::App& program);
/// Of one command, those inside it included.
std::string CommandPage(const CLI::App& command);

std::string BashCompletion(const CLI::App& program);
std::string ZshCompletion(const CLI::App& program);
std::string FishCompletion(const CLI::App& program);

}  // namespace boltbeam::app
