// One side of a comparison as a person names it: --a and --b.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace boltbeam::judge {

/// A plan of the model, the plan of another file, another boltbeam, or any program that prints a rate.
struct SideSpec {
  std::vector<std::string> with, without;  // routes
  std::string plan;                        // a plan's file, the name of an installed one, or "default"
  std::string file;                        // another version of the model
  std::string binary;                      // a boltbeam
  std::string command;                     // of a shell; prints tokens per second

  [[nodiscard]] bool IsProgram() const { return !binary.empty() || !command.empty(); }
  /// As it was written, in one fixed order: "without=a+b"; "default" when nothing is special.
  [[nodiscard]] std::string Describe() const;
};

/// Words such as "without=gate-in-registers+norm-in-consumer", "plan=FILE", "file=PATH", "binary=PATH", "command=TEXT";
/// "default" adds nothing. kUsage names the word that makes no sense; flag is the one they came with.
Result<SideSpec> ParseSide(std::string_view flag, const std::vector<std::string>& words,
                           const std::vector<std::string>& routes);

}  // namespace boltbeam::judge
