// A ladder: several models through one or more programs on one machine, in turns, so that drift meets all alike.
//
// One visit is one row. Where a ladder was stopped it goes on: rows that are there already are not measured again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "base/error.h"
#include "engine/engine.h"
#include "lab/model_facts.h"
#include "lab/row.h"

namespace boltbeam::lab {

struct VisitOptions {
  std::uint64_t depth = 0;
  model::CacheFormats cache = {};  // that the runners use
  std::uint64_t threads = 0;       // that the runners use; 0: not known
  double seconds = 2;              // of windows, at each visit
  double window_s = 0.15;          // at least, and at least one token
  std::uint32_t least_windows = 3;
};

/// What one visit measured.
struct Visit {
  std::vector<double> token_s;        // of each window
  std::vector<double> streamed_gb_s;  // beside each window, or one value for all, or none
  std::uint64_t left_out = 0;
  std::uint64_t threads = 0;
};

/// How a program runs a model: a row of other settings is another visit.
struct Settings {
  std::string isa, plan;     // empty: they are not known of the program
  std::uint64_t tokens = 0;  // of each repetition; 0: as many as the time allows
  std::string command;       // of a program that is run by one
};

/// Something that yields tokens per second of a model.
class Runner {
 public:
  virtual ~Runner() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string version() const = 0;
  /// Before a visit: asked of every model.
  virtual Result<Settings> SettingsFor(const ModelFacts& model) = 0;
  virtual Result<Visit> Run(const ModelFacts& model, const VisitOptions& options) = 0;
};

/// Windows of decoded tokens, between two readings of the memory each. A window during which the memory changed its
/// speed by more than a tenth is left out and counted; kMeasurementUnstable when all were.
Result<Visit> MeasureWindows(engine::Engine& engine, engine::Session& session, audit::BandwidthSource& bandwidth,
                             const VisitOptions& options, const std::function<bool()>& cancelled = {});

/// This program's own engine. Models stay loaded as long as the memory allows. settings tells how it would run a model.
using LoadModel =
    std::function<Result<std::unique_ptr<engine::Engine>>(const model::Model& model, std::uint64_t context)>;
using TellSettings = std::function<Result<Settings>(const ModelFacts& model)>;
std::unique_ptr<Runner> MakeEngineRunner(LoadModel load, TellSettings settings, audit::BandwidthSource& bandwidth,
                                         std::function<bool()> cancelled = {});

/// A shell command in which {} stands for the model's file; it prints llama-bench's JSON, or a rate in its last line.
struct CommandProgram {
  std::string name, version, command;
  Settings settings;  // that its rows tell
};
/// bandwidth may be nullptr.
std::unique_ptr<Runner> MakeCommandRunner(CommandProgram program, audit::BandwidthSource* bandwidth);

/// The number of a llama.cpp build in what `--version` prints, "11669" in "version: 0.7.0 (build 11669, commit ...)";
/// empty when there is none.
std::string LlamaBuild(std::string_view text);

/// The rates in what a program printed, in the order of its repetitions: samples_ts of llama-bench's JSON, or the one
/// rate that judge's rules find.
Result<std::vector<double>> RatesIn(std::string_view text);

struct LadderOptions {
  std::string alias, device;
  std::optional<double> published_gb_s;
  std::uint64_t passes = 5;
  double budget_s = 0;  // 0: no limit; else no visit begins after it
  VisitOptions visit;
};

struct LadderHooks {
  std::function<Result<void>(const Row& row)> append;
  std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)> progress;
  std::function<void(const std::string& note)> note;
  std::function<bool()> cancelled;
};

struct LadderState {
  std::uint64_t done = 0, total = 0;  // visits, those of earlier runs among them
};

/// Every runner visits every model once a pass, up the ladder and down again. A model whose experts make it no rung is
/// visited too: the fit leaves it out and shows it. `earlier` are rows that the file holds already: a visit counts as
/// done when one of them is of the same file, program and version, pass, threads, depth, instruction set, plan, tokens,
/// forms of the cache and command; of others a note says in what they differ. A visit that is refused as a measurement
/// is left out, told and tried again by the next run; where all were, the last one's code.
Result<LadderState> RunLadder(std::span<const ModelFacts> models, std::span<const std::unique_ptr<Runner>> runners,
                              std::span<const Row> earlier, const LadderOptions& options, const LadderHooks& hooks);

/// Rows of llama-bench's JSON or JSON lines: one for every generation test in it. The device is the GPU's name where
/// layers were computed on one, else the CPU's.
Result<std::vector<Row>> ImportBench(std::string_view text, const std::string& where, const LadderOptions& options);

/// The rows that are not among the earlier ones already. One that stands twice is taken once; several of one model and
/// one setting are passes.
std::vector<Row> NewRows(std::vector<Row> rows, std::span<const Row> earlier);

/// Experts by llama-bench's name of a model's kind, "llama 8x7B Q4_0": 8; kUnknownExperts for "30B.A3B" or "...moe...";
/// 0 otherwise.
std::uint64_t ExpertsInName(std::string_view model_type);

}  // namespace boltbeam::lab
