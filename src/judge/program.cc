#include "judge/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/shell.h"
#include "base/ticks.h"
#include "measure/printed_rate.h"

namespace boltbeam::judge {
namespace {

// Of the counters only those of the whole machine speak of another process. A window is long here: a hypervisor that
// always takes a little spoils none.
measure::Causes CausesOf(const measure::Counters& before, const measure::Counters& after, double wall_ns) {
  constexpr double kTickNs = 1e7, kStealShare = 0.05;
  measure::Causes causes = measure::CausesBetween(before, after, wall_ns);
  for (const measure::Cause own : {measure::Cause::kInterrupted, measure::Cause::kDiskReads,
                                   measure::Cause::kPageFaults, measure::Cause::kMigrated}) {
    causes.reset(static_cast<std::size_t>(own));
  }
  const double stolen_ns = static_cast<double>(after.steal_ticks - before.steal_ticks) * kTickNs;
  if (stolen_ns <= kStealShare * wall_ns) causes.reset(static_cast<std::size_t>(measure::Cause::kSteal));
  return causes;
}

constexpr std::string_view kDepth = "{depth}";

bool TakesDepth(const ProgramSide& side) { return side.command.contains(kDepth); }

std::string CommandAt(const ProgramSide& side, std::uint64_t depth) {
  std::string command = side.command;
  for (std::size_t at = 0; (at = command.find(kDepth, at)) != std::string::npos;) {
    command.replace(at, kDepth.size(), std::to_string(depth));
  }
  return command;
}

class ProgramRounds final : public measure::RoundSource {
 public:
  ProgramRounds(std::string a, std::string b, const Hooks& hooks) : a_(std::move(a)), b_(std::move(b)), hooks_(hooks) {}

  Result<measure::PairedRound> Next(bool b_first) override {
    measure::PairedRound round;
    round.b_first = b_first;
    for (std::size_t i = 0; i < round.windows.size(); ++i) {
      if (hooks_.cancelled && hooks_.cancelled()) return Fail(Code::kInterrupted, "judge", "stopped by the user");
      const measure::Counters before = counters_.Read();
      const std::uint64_t begin = base::MonotonicNs();
      BOLTBEAM_ASSIGN(const std::string text, base::RunQuietly(round.IsB(i) ? b_ : a_));
      BOLTBEAM_ASSIGN(const double rate, measure::TokensPerSecond(text));
      round.windows[i].ns = 1e9 / rate;
      round.windows[i].causes = CausesOf(before, counters_.Read(), static_cast<double>(base::MonotonicNs() - begin));
    }
    round.at_s = base::SecondsSince(begin_ns_);
    return round;
  }

 private:
  const std::string a_, b_;
  const Hooks& hooks_;
  measure::CounterReader counters_;
  std::uint64_t begin_ns_ = base::MonotonicNs();
};

Result<Condition> ComparedOutput(const ProgramSide& a, const ProgramSide& b) {
  if (a.output.empty() || b.output.empty()) {
    return Condition{std::string(kOutput), State::kUnknown, "a program's output can't be compared"};
  }
  BOLTBEAM_ASSIGN(const std::string text_a, base::RunQuietly(a.output));
  BOLTBEAM_ASSIGN(const std::string text_b, base::RunQuietly(b.output));
  const bool same = text_a == text_b && !text_a.empty();
  return Condition{std::string(kOutput), same ? State::kPass : State::kFail,
                   same ? fmt::format("the same {} bytes of generated text", text_a.size()) : "other generated text"};
}

Result<void> TimeDepth(const ProgramSide& a, const ProgramSide& b, std::uint64_t depth,
                       const measure::PairedRules& rules, const Hooks& hooks, Run& run) {
  for (const ProgramSide* side : {&a, &b}) {  // warms files and caches
    BOLTBEAM_ASSIGN(const std::string text, base::RunQuietly(CommandAt(*side, depth)));
    BOLTBEAM_TRY(measure::TokensPerSecond(text));
  }
  ProgramRounds rounds(CommandAt(a, depth), CommandAt(b, depth), hooks);
  measure::PairedHooks inner;
  inner.cancelled = hooks.cancelled;
  if (hooks.progress) inner.progress = [&](double done, double total) { hooks.progress("programs", done, total); };
  BOLTBEAM_ASSIGN(measure::PairedSession session, measure::RunPaired(rounds, rules, inner));
  run.findings.depths.push_back({depth, std::move(session.result)});
  run.samples.push_back({.depth = depth, .rules = rules, .rounds = std::move(session.rounds)});
  return {};
}

}  // namespace

Result<Run> ComparePrograms(const ProgramSide& a, const ProgramSide& b, const ProgramContext& context,
                            const Request& request, const Thresholds& thresholds, const Hooks& hooks) {
  Run run;
  run.environment = measure::ReadEnvironment();
  const measure::Counters before = measure::ReadCounters();
  const std::uint64_t begin = base::MonotonicNs();
  run.findings.sides_seen = a.is_boltbeam && b.is_boltbeam;
  if (hooks.progress) hooks.progress("comparing outputs", 0, 1);
  BOLTBEAM_ASSIGN(Condition output, ComparedOutput(a, b));
  const bool may_be_timed = output.state != State::kFail;
  run.findings.conditions.push_back(std::move(output));
  run.findings.conditions.push_back({std::string(kRoute), context.route.empty() ? State::kUnknown : State::kPass,
                                     context.route.empty() ? "a program's route can't be seen" : context.route});
  run.findings.conditions.push_back(OffSwitch(context.off_switch, context.off_switch_gives_a));
  run.findings.conditions.push_back({std::string(kRepeated), State::kPass, "every window is a process of its own"});
  if (may_be_timed) {
    std::vector<std::uint64_t> depths = request.depths;
    std::ranges::sort(depths);
    if (!TakesDepth(a) || !TakesDepth(b)) depths.resize(1);
    const measure::PairedRules rules = thresholds.Rules(depths.size(), request.budget_s, request.seed);
    for (const std::uint64_t depth : depths) BOLTBEAM_TRY(TimeDepth(a, b, depth, rules, hooks, run));
  }
  const std::uint64_t wall_ns = base::MonotonicNs() - begin;
  run.seconds = static_cast<double>(wall_ns) / 1e9;
  run.disturbances = measure::SpoilingCauses(before, measure::ReadCounters(), static_cast<double>(wall_ns));
  return run;
}

}  // namespace boltbeam::judge
