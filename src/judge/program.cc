#include "judge/program.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/printable.h"
#include "base/ticks.h"

namespace boltbeam::judge {
namespace {

constexpr std::size_t kMostOutput = std::size_t{4} << 20;

std::optional<double> RateOfJson(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  const nlohmann::json* last = json.is_array() && !json.empty() ? &json.back() : &json;
  if (!last->is_object() || !last->contains("avg_ts") || !last->at("avg_ts").is_number()) return std::nullopt;
  return last->at("avg_ts").get<double>();
}

std::optional<double> LastNumber(std::string_view line) {
  std::optional<double> last;
  for (std::size_t i = 0; i < line.size();) {
    const bool starts = (line[i] >= '0' && line[i] <= '9') || line[i] == '-' || line[i] == 'i' || line[i] == 'n';
    const bool inside = i > 0 && (std::isalnum(static_cast<unsigned char>(line[i - 1])) != 0 || line[i - 1] == '.');
    double value = 0;
    const auto [end, error] = std::from_chars(line.data() + i, line.data() + line.size(), value);
    if (starts && !inside && error == std::errc()) {
      last = value;
      i = static_cast<std::size_t>(end - line.data());
    } else {
      ++i;
    }
  }
  return last;
}

std::optional<double> RateOfLines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t begin = text.find_last_of('\n');
    const std::string_view line = begin == std::string_view::npos ? text : text.substr(begin + 1);
    if (const auto number = LastNumber(line)) return number;
    if (begin == std::string_view::npos) break;
    text = text.substr(0, begin);
  }
  return std::nullopt;
}

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

class ProgramRounds final : public measure::RoundSource {
 public:
  ProgramRounds(const ProgramSide& a, const ProgramSide& b, const Hooks& hooks) : a_(a), b_(b), hooks_(hooks) {}

  Result<measure::PairedRound> Next(bool b_first) override {
    measure::PairedRound round;
    round.b_first = b_first;
    for (std::size_t i = 0; i < round.windows.size(); ++i) {
      if (hooks_.cancelled && hooks_.cancelled()) return Fail(Code::kInterrupted, "judge", "stopped by the user");
      const measure::Counters before = counters_.Read();
      const std::uint64_t begin = base::MonotonicNs();
      BOLTBEAM_ASSIGN(const std::string text, RunProgram(round.IsB(i) ? b_.command : a_.command));
      BOLTBEAM_ASSIGN(const double rate, TokensPerSecond(text));
      round.windows[i].ns = 1e9 / rate;
      round.windows[i].causes = CausesOf(before, counters_.Read(), static_cast<double>(base::MonotonicNs() - begin));
    }
    round.at_s = static_cast<double>(base::MonotonicNs() - begin_ns_) / 1e9;
    return round;
  }

 private:
  const ProgramSide &a_, &b_;
  const Hooks& hooks_;
  measure::CounterReader counters_;
  std::uint64_t begin_ns_ = base::MonotonicNs();
};

Result<Condition> ComparedOutput(const ProgramSide& a, const ProgramSide& b) {
  if (a.output.empty() || b.output.empty()) {
    return Condition{std::string(kOutput), State::kUnknown, "a program's output can't be compared"};
  }
  BOLTBEAM_ASSIGN(const std::string text_a, RunProgram(a.output));
  BOLTBEAM_ASSIGN(const std::string text_b, RunProgram(b.output));
  const bool same = text_a == text_b && !text_a.empty();
  return Condition{std::string(kOutput), same ? State::kPass : State::kFail,
                   same ? fmt::format("the same {} bytes of generated text", text_a.size()) : "other generated text"};
}

}  // namespace

std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Result<std::string> RunProgram(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) {
    return Fail(Code::kUsage, base::Printable(command), "can't be started", "a command that a shell can run");
  }
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t bytes = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    if (output.size() < kMostOutput) output.append(buffer.data(), bytes);
  }
  const int status = pclose(pipe);
  if (status == 0) return output;
  const std::string how = WIFEXITED(status) ? fmt::format("exit status {}", WEXITSTATUS(status)) : "ended by a signal";
  return Fail(Code::kUsage, base::Printable(command), how, "a command that succeeds and prints tokens per second");
}

Result<double> TokensPerSecond(std::string_view text) {
  std::optional<double> rate = RateOfJson(text);
  if (!rate) rate = RateOfLines(text);
  if (!rate) {
    return Fail(Code::kUsage, "its output", fmt::format("\"{}\"", base::Printable(text)),
                "a number of tokens per second on the last line, or llama-bench's JSON");
  }
  if (std::isfinite(*rate) && *rate > 0) return *rate;
  return Fail(Code::kMeasurementImpossible, "its output", fmt::format("{} tokens per second", *rate),
              "a rate that a machine can reach");
}

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
  run.findings.conditions.push_back(
      {std::string(kOffSwitch), context.off_switch.empty() ? State::kUnknown : State::kPass, context.off_switch});
  run.findings.conditions.push_back({std::string(kRepeated), State::kPass, "every window is a process of its own"});
  if (may_be_timed) {
    for (const ProgramSide* side : {&a, &b}) {  // warms files and caches
      BOLTBEAM_ASSIGN(const std::string text, RunProgram(side->command));
      BOLTBEAM_TRY(TokensPerSecond(text));
    }
    const measure::PairedRules rules = thresholds.Rules(1, request.budget_s, request.seed);
    ProgramRounds rounds(a, b, hooks);
    measure::PairedHooks inner;
    inner.cancelled = hooks.cancelled;
    if (hooks.progress) inner.progress = [&](double done, double total) { hooks.progress("programs", done, total); };
    BOLTBEAM_ASSIGN(measure::PairedSession session, measure::RunPaired(rounds, rules, inner));
    run.findings.depths.push_back({0, std::move(session.result)});
    run.samples.push_back({0, rules, std::move(session.rounds)});
  }
  const std::uint64_t wall_ns = base::MonotonicNs() - begin;
  run.seconds = static_cast<double>(wall_ns) / 1e9;
  run.disturbances = measure::SpoilingCauses(before, measure::ReadCounters(), static_cast<double>(wall_ns));
  return run;
}

}  // namespace boltbeam::judge
