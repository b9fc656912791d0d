// What foretold models really take: each is run as the ladder of its line ran, once at each depth.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "command.h"
#include "lab/ladder.h"
#include "lab_commands.h"
#include "report/lab_format.h"

namespace boltbeam::app {

class ForecastCheck {
 public:
  static Result<std::unique_ptr<ForecastCheck>> Create(const Globals& globals, const RunnerFlags& runners,
                                                       const lab::VisitOptions& visit);

  /// kUsage when this machine with these flags can't answer for the model's line: asked before anything is written
  /// down.
  Result<void> Accept(const report::ForecastSubject& subject);
  /// Runs every model at every depth, and records the misses of forecasts that were recorded. A visit that the memory
  /// disturbed is left out and told; it is the error when nothing was measured.
  Result<void> Run(std::span<report::ForecastSubject> subjects);

 private:
  ForecastCheck(const Globals& globals, const RunnerFlags& runners, const lab::VisitOptions& visit)
      : globals_(globals), runners_(runners), visit_(visit) {}

  /// The one program that answers.
  Result<std::unique_ptr<lab::Runner>> RunnerAt(std::uint64_t depth);
  Result<void> RunOne(const report::ForecastSubject& subject, report::ForecastRow& row);

  const Globals& globals_;
  RunnerFlags runners_;
  lab::VisitOptions visit_;
  std::string chip_;
  std::unique_ptr<MemoryProbe> probe_;
};

}  // namespace boltbeam::app
