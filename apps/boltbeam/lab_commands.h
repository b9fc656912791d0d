// What the commands of the lab share: the ladder's file, the choice of a line, and what runs a model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "audit/probe_bandwidth.h"
#include "command.h"
#include "lab/fit.h"
#include "lab/ladder.h"
#include "loading.h"
#include "runtime/code.h"

namespace boltbeam::app {

/// GB/s that a flag may state.
inline constexpr double kLeastGbS = 1e-3, kMostGbS = 1e7;

/// Which rows make a line, and how it is drawn through them.
struct LineFlags {
  std::vector<std::string> files;  // of rows; none: the ladder's own file
  std::string alias, program, line, scale = "auto", noise = "auto";
  lab::FitOptions options;

  void Add(CLI::App& command);
  /// Of the files: those of the machine and the program that are asked for.
  [[nodiscard]] Result<std::vector<lab::Row>> Rows(const Globals& globals) const;
  /// Every line of the rows that --line leaves.
  [[nodiscard]] Result<std::vector<lab::MachineFit>> Fits(std::span<const lab::Row> rows) const;
  /// The only one of them, of several releases of a program the newest, which is a warning; kUsage lists what to choose
  /// from.
  [[nodiscard]] Result<lab::MachineFit> OneFit(std::span<const lab::Row> rows) const;
};

/// The file that `ladder` adds to when none is named.
std::string LadderFile(const Globals& globals);

/// The bandwidth beside a ladder's windows, and what its kernels live in.
struct MemoryProbe {
  runtime::KernelCache kernels;
  std::uint32_t threads = 0;
  std::unique_ptr<audit::ProbeBandwidth> bandwidth;

  static Result<std::unique_ptr<MemoryProbe>> Create(const Globals& globals, std::uint32_t threads);
};

/// What yields tokens per second: this engine, llama-bench, a command.
struct RunnerFlags {
  EngineFlags engine;
  bool no_engine = false;
  std::string llama, command, program = "command";
  std::uint32_t llama_tokens = 16, llama_repetitions = 3;

  void Add(CLI::App& app);
  [[nodiscard]] Result<std::vector<std::unique_ptr<lab::Runner>>> Make(const Globals& globals, MemoryProbe& probe,
                                                                       std::uint64_t depth) const;
};

/// Of a flag: a number from least to most. CLI11's own Range lets nan through, which no comparison refuses.
CLI::Validator NumberFrom(double least, double most);

/// This host's name: the alias of a machine that nobody named.
std::string HostName();

}  // namespace boltbeam::app
