#include "predict_check.h"

#include <fmt/format.h>

#include "base/paths.h"
#include "ledger/ledger.h"
#include "terminal.h"

namespace boltbeam::app {

Result<std::unique_ptr<ForecastCheck>> ForecastCheck::Create(const Globals& globals, const RunnerFlags& runners,
                                                             const lab::VisitOptions& visit) {
  std::unique_ptr<ForecastCheck> check(new ForecastCheck(globals, runners, visit));
  check->runners_.no_engine = !runners.llama.empty() || !runners.command.empty();
  BOLTBEAM_ASSIGN(check->visit_.cache, runners.engine.Cache());
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::DetectThisMachine());
  check->chip_ = machine.name;
  BOLTBEAM_ASSIGN(check->probe_, MemoryProbe::Create(globals, runners.engine.threads));
  return check;
}

Result<std::unique_ptr<lab::Runner>> ForecastCheck::RunnerAt(std::uint64_t depth) {
  BOLTBEAM_ASSIGN(auto runners, runners_.Make(globals_, *probe_, depth));
  return std::move(runners.front());
}

Result<void> ForecastCheck::Accept(const report::ForecastSubject& subject) {
  if (!subject.fit) return Fail(Code::kUsage, "--check", "a line that was stated", "a ladder's line");
  const lab::MachineFit& fit = *subject.fit;
  if (subject.model.path.empty()) {
    return Fail(Code::kUsage, "--check", subject.model.name,
                "a model's file; `boltbeam synth` writes one of a known shape");
  }
  if (!fit.device.empty() && fit.device != chip_) {
    return Fail(Code::kUsage, "--check", fmt::format("a line of {}, and this is {}", fit.device, chip_),
                "rows of this machine (--alias, --ladder)");
  }
  const auto differs = [](const char* flag, const std::string& line, const std::string& here) {
    return Fail(Code::kUsage, flag, fmt::format("a line of {}, to be checked with {}", line, here),
                "the ladder's own setting, or a ladder of this one");
  };
  const std::string isa = runners_.engine.isa.empty() ? "native" : runners_.engine.isa;
  if (fit.threads != 0 && fit.threads != probe_->threads) {
    return differs("--threads", fmt::format("{} threads", fit.threads), std::to_string(probe_->threads));
  }
  if (fit.isa != isa) return differs("--isa", fit.isa, isa);
  BOLTBEAM_ASSIGN(const auto runner, RunnerAt(0));
  if (!fit.engine.empty() && runner->name() != fit.engine) {
    return Fail(Code::kUsage, "--check", fmt::format("a line of {}, to be checked by {}", fit.engine, runner->name()),
                "the program of the rows: --llama, --command with --name, or neither; or --program");
  }
  return {};
}

Result<void> ForecastCheck::RunOne(const report::ForecastSubject& subject, report::ForecastRow& row) {
  lab::VisitOptions visit_options = visit_;
  visit_options.depth = row.forecast.depth;
  BOLTBEAM_ASSIGN(const auto runner, RunnerAt(row.forecast.depth));
  BOLTBEAM_ASSIGN(const lab::Visit visit, runner->Run(subject.model, visit_options));
  row.miss = lab::Compare(*subject.fit, subject.model, row.forecast, visit, subject.at_gb_s);
  if (row.record.empty()) return {};
  BOLTBEAM_ASSIGN(ledger::Ledger memory, ledger::Ledger::Open(ledger::OptionsFor(base::ResolvePaths(globals_.home))));
  BOLTBEAM_TRY(
      memory.AppendMeasurement(lab::ToRecord(*subject.fit, subject.model, row.forecast, *row.miss, visit, row.record)));
  return {};
}

Result<void> ForecastCheck::Run(std::span<report::ForecastSubject> subjects) {
  CatchInterrupts();
  std::optional<Error> disturbed;
  bool is_measured = false;
  for (report::ForecastSubject& subject : subjects) {
    for (report::ForecastRow& row : subject.rows) {
      if (Interrupted()) return Fail(Code::kInterrupted, "predict", "stopped by the user");
      Result<void> run = RunOne(subject, row);
      if (!run && CodeGroup(run.error().code) != Group::kMeasurement) return run;
      is_measured = is_measured || run;
      if (run) continue;
      Note("left out: " + run.error().Message());
      disturbed = std::move(run).error();
    }
  }
  if (disturbed && !is_measured) return std::unexpected(std::move(*disturbed));
  return {};
}

}  // namespace boltbeam::app
