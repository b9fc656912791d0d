#include "predict_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/paths.h"
#include "ledger/ledger.h"
#include "terminal.h"

namespace boltbeam::app {

Result<std::unique_ptr<ForecastCheck>> ForecastCheck::Create(const Globals& globals, const RunnerFlags& runners,
                                                             const lab::VisitOptions& visit, std::uint32_t passes) {
  std::unique_ptr<ForecastCheck> check(new ForecastCheck(globals, runners, visit, passes));
  check->runners_.no_engine = !runners.llama.empty() || !runners.command.empty();
  BOLTBEAM_ASSIGN(check->visit_.cache, runners.engine.Cache());
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::DetectThisMachine());
  check->chip_ = machine.name;
  BOLTBEAM_ASSIGN(check->probe_, MemoryProbe::Create(globals, runners.engine.threads));
  return check;
}

Result<lab::Runner*> ForecastCheck::RunnerAt(std::uint64_t depth) {
  std::unique_ptr<lab::Runner>& runner = runner_at_[depth];
  if (!runner) {
    BOLTBEAM_ASSIGN(auto runners, runners_.Make(globals_, *probe_, depth));
    runner = std::move(runners.front());
  }
  return runner.get();
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
  BOLTBEAM_ASSIGN(const lab::Runner* const runner, RunnerAt(0));
  if (!fit.engine.empty() && runner->name() != fit.engine) {
    return Fail(Code::kUsage, "--check", fmt::format("a line of {}, to be checked by {}", fit.engine, runner->name()),
                "the program of the rows: --llama, --command with --name, or neither; or --program");
  }
  return {};
}

Result<void> ForecastCheck::RunOne(Answer& answer) {
  lab::VisitOptions visit_options = visit_;
  visit_options.depth = answer.row->forecast.depth;
  BOLTBEAM_ASSIGN(lab::Runner* const runner, RunnerAt(visit_options.depth));
  BOLTBEAM_ASSIGN(const lab::Visit visit, runner->Run(answer.subject->model, visit_options));
  lab::Visit& all = answer.visit;
  all.token_s.insert(all.token_s.end(), visit.token_s.begin(), visit.token_s.end());
  if (visit.streamed_gb_s.size() == 1) {  // one value for all of its windows
    all.streamed_gb_s.insert(all.streamed_gb_s.end(), visit.token_s.size(), visit.streamed_gb_s.front());
  } else {
    all.streamed_gb_s.insert(all.streamed_gb_s.end(), visit.streamed_gb_s.begin(), visit.streamed_gb_s.end());
  }
  all.left_out += visit.left_out;
  all.threads = visit.threads;
  return {};
}

Result<void> ForecastCheck::Record(const Answer& answer) {
  const report::ForecastSubject& subject = *answer.subject;
  report::ForecastRow& row = *answer.row;
  row.miss = lab::Compare(*subject.fit, subject.model, row.forecast, answer.visit, subject.at_gb_s);
  if (row.record.empty()) return {};
  BOLTBEAM_ASSIGN(ledger::Ledger memory, ledger::Ledger::Open(ledger::OptionsFor(base::ResolvePaths(globals_.home))));
  BOLTBEAM_TRY(memory.AppendMeasurement(
      lab::ToRecord(*subject.fit, subject.model, row.forecast, *row.miss, answer.visit, row.record)));
  return {};
}

Result<void> ForecastCheck::Run(std::span<report::ForecastSubject> subjects) {
  CatchInterrupts();
  std::vector<Answer> answers;
  for (report::ForecastSubject& subject : subjects) {
    for (report::ForecastRow& row : subject.rows) answers.push_back({&subject, &row, {}});
  }
  Error disturbed;
  for (std::uint32_t pass = 0; pass < passes_; ++pass) {
    for (Answer& answer : answers) {
      if (Interrupted()) return Fail(Code::kInterrupted, "predict", "stopped by the user");
      Result<void> run = RunOne(answer);
      if (run) continue;
      if (CodeGroup(run.error().code) != Group::kMeasurement) return run;
      disturbed = std::move(run).error();
      Note("left out: " + disturbed.Message());
    }
    std::ranges::reverse(answers);  // down again, so that drift meets all alike
  }
  std::erase_if(answers, [](const Answer& answer) { return answer.visit.token_s.empty(); });
  if (answers.empty()) return std::unexpected(std::move(disturbed));
  for (const Answer& answer : answers) BOLTBEAM_TRY(Record(answer));
  return {};
}

}  // namespace boltbeam::app
