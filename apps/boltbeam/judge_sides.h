// The sides of `boltbeam judge`: loaded engines or programs, and the comparison of them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "judge/judge.h"
#include "judge/side.h"
#include "loading.h"

namespace boltbeam::app {

struct JudgeArguments {
  std::string model;
  std::vector<std::string> a_words, b_words;
  judge::SideSpec a, b;  // from the words
  std::string depths = "0,256,1024";
  EngineFlags engine;
  std::string budget = "30s";
  std::uint64_t seed = 1;
  std::uint32_t tokens = 32;  // of a program's window
  std::string reference;      // logits of a full-precision model
  std::string prediction;     // "0.95..1.0"
  std::uint32_t confirm = 2;  // fresh processes that must repeat a gain
  bool swap_load = false, no_record = false;
  std::uint32_t placement = 0;  // of the kernels' code
  judge::Request request;       // from depths, budget and seed
};

/// What a side is, whatever it was called: "plan 0123456789abcdef", "program 0123456789abcdef --without x", by hashes
/// of what it consists of, so that another thing at the same place is another candidate and the same thing at another
/// place the same.
struct SideIdentity {
  std::string name;
  nlohmann::json parts;  // the whole hashes, by name
};

/// What is compared, in the ledger's words.
struct JudgedSubject {
  std::string chip;     // id
  std::string machine;  // for people
  std::string model_hash;
  SideIdentity a, b;
  std::string b_plan, off_switch;
  std::uint32_t threads = 0;  // of B; 0: a program's own affair
};

struct JudgedRun {
  judge::Run run;
  JudgedSubject subject;
  nlohmann::json processes;  // fresh ones that repeated it: how each was set up, and what it found
};

/// Called when it is known what is compared, and before anything of it is run.
using BeforeJudging = std::function<Result<void>(const JudgedSubject&)>;

/// Loads what the sides name, compares, and frees it again.
Result<JudgedRun> RunJudgedSides(const Globals& globals, const JudgeArguments& arguments,
                                 const judge::Thresholds& thresholds, const BeforeJudging& before);

/// SHA-256 of the file's header: all but the weights. Empty for a file that can't be read.
std::string HeaderHash(const std::string& path);

/// These flags as a shell takes them, a space before each.
std::string ForShell(const EngineFlags& flags);

/// This program's own path, for a shell.
std::string OwnProgram();

/// The names of all routes.
std::vector<std::string> RouteNames();

}  // namespace boltbeam::app
