// What every command shares: the global flags and how a command is added to the program.
//
// A command is one small file with one function Add...(CLI::App&, Globals&), named in the list in main.cc. Its callback
// returns nothing; it stores its exit status with Finish(). Only files in this folder print.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"

namespace boltbeam::app {

// Exit statuses: docs/architecture.md.
inline constexpr int kExitFine = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitMeasurement = 3;
inline constexpr int kExitWorse = 4;

struct Globals {
  std::string home;             // --home
  std::string format = "text";  // -o: text, json, jsonl, csv or md
  std::string out_file;         // --out
  int exit_status = kExitFine;
};

/// Adds -o/--output and --out to a command; formats are those that it can write.
void AddOutputFlags(CLI::App& command, Globals& globals, const std::vector<std::string>& formats);

/// Writes a result to stdout, or to --out as a whole file or not at all.
Result<void> WriteOutput(const Globals& globals, const std::string& text);

/// Prints the error on one line of stderr and sets the exit status that its group asks for.
void Finish(Globals& globals, const Result<void>& result);

}  // namespace boltbeam::app
