// What foretold models really take: each is run as the ladder of its line ran, in passes up and down over all of them.
#pragma once

#include <map>
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
                                                       const lab::VisitOptions& visit, std::uint32_t passes);

  /// kUsage when this machine with these flags can't answer for the model's line: asked before anything is written
  /// down.
  Result<void> Accept(const report::ForecastSubject& subject);
  /// Runs every model at every depth, once a pass, and records the misses of forecasts that were recorded. A visit that
  /// the memory disturbed is left out and told; it is the error when nothing was measured.
  Result<void> Run(std::span<report::ForecastSubject> subjects);

 private:
  /// One forecast, and what its visits measured so far.
  struct Answer {
    report::ForecastSubject* subject;
    report::ForecastRow* row;
    lab::Visit visit;
  };

  ForecastCheck(const Globals& globals, const RunnerFlags& runners, const lab::VisitOptions& visit,
                std::uint32_t passes)
      : globals_(globals), runners_(runners), visit_(visit), passes_(passes) {}

  /// The one program that answers.
  Result<lab::Runner*> RunnerAt(std::uint64_t depth);
  Result<void> RunOne(Answer& answer);
  Result<void> Record(const Answer& answer);

  const Globals& globals_;
  RunnerFlags runners_;
  lab::VisitOptions visit_;
  std::uint32_t passes_;
  std::string chip_;
  std::unique_ptr<MemoryProbe> probe_;
  std::map<std::uint64_t, std::unique_ptr<lab::Runner>> runner_at_;  // by depth: they keep models loaded
};

}  // namespace boltbeam::app
