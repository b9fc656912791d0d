#include "audit/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "audit/floors.h"
#include "measure/bench.h"
#include "measure/clock.h"

namespace boltbeam::audit {
namespace {

constexpr std::uint32_t kWarmUpTokens = 6;
constexpr std::uint32_t kMostWindowTokens = 128;
constexpr double kWindowNs = 60e6;  // a quarter of a second or less; four of them and the probe make a round
constexpr std::size_t kLeastRounds = 8;

struct DepthRun {
  engine::Engine& engine;
  engine::Session& session;
  BandwidthSource& bandwidth;
  const measure::Clock& clock;
  std::uint64_t depth = 0;
  std::vector<std::int32_t> tokens = {};   // of a window
  std::vector<engine::Trace> traces = {};  // one a token, kept so that reading them disturbs nothing
  std::vector<Round> rounds = {};
  std::size_t disturbed = 0;
};

// Nanoseconds of a token in a window without stamps.
Result<double> PlainWindow(DepthRun& run) {
  BOLTBEAM_TRY(run.session.Truncate(run.depth));
  const std::uint64_t begin = base::Ticks();
  for (const std::int32_t token : run.tokens) BOLTBEAM_TRY(run.session.Decode(token));
  return run.clock.ToNs(base::Ticks() - begin) / static_cast<double>(run.tokens.size());
}

void AddScaled(std::vector<double>& sums, const std::vector<double>& values, double scale) {
  sums.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i] * scale;
}

Result<void> TracedWindow(DepthRun& run, double weight, TokenTimes& mean) {
  BOLTBEAM_TRY(run.session.Truncate(run.depth));
  for (std::size_t i = 0; i < run.tokens.size(); ++i) {
    BOLTBEAM_TRY(run.session.Decode(run.tokens[i], &run.traces[i]));
  }
  const double scale = weight / static_cast<double>(run.tokens.size());
  for (const engine::Trace& trace : run.traces) {
    BOLTBEAM_ASSIGN(const TokenTimes times, ReadTrace(trace, run.engine.steps(), run.engine.phases(), run.clock));
    AddScaled(mean.work, times.work, scale);
    AddScaled(mean.slowest, times.slowest, scale);
    AddScaled(mean.release, times.release, scale);
    mean.wait += times.wait * scale;
    mean.host += times.host * scale;
    mean.total += times.total * scale;
  }
  return {};
}

// A B probe B A, and B A probe A B in the next round: neither kind always follows the other or the probe.
Result<void> RunRound(DepthRun& run) {
  constexpr double kHalf = 0.5;
  Round round;
  const bool traced_inside = run.rounds.size() % 2 == 0;
  const measure::Counters before = measure::ReadCounters();
  const std::uint64_t begin = base::Ticks();
  for (int half = 0; half < 2; ++half) {
    for (int window = 0; window < 2; ++window) {
      const bool outer = (half == 0) == (window == 0);
      if (outer == traced_inside) {
        BOLTBEAM_ASSIGN(const double token_ns, PlainWindow(run));
        round.token_ns += token_ns * kHalf;
      } else {
        BOLTBEAM_TRY(TracedWindow(run, kHalf, round.traced));
      }
    }
    if (half == 0) round.read_gb_s = run.bandwidth.Read();
  }
  const double wall_ns = run.clock.ToNs(base::Ticks() - begin);
  if (!measure::SpoilingCauses(before, measure::ReadCounters(), wall_ns).empty()) ++run.disturbed;
  run.rounds.push_back(std::move(round));
  return {};
}

// Warms up and chooses how many tokens make a window.
Result<void> PrepareWindow(DepthRun& run, std::uint64_t seed) {
  const std::vector<std::int32_t> tokens =
      measure::RandomTokens(run.engine.model().hyper().vocab, kMostWindowTokens, seed + 1);
  run.tokens.assign(tokens.begin(), tokens.begin() + kWarmUpTokens);
  BOLTBEAM_TRY(PlainWindow(run));
  BOLTBEAM_ASSIGN(const double token_ns, PlainWindow(run));
  const double count = std::clamp(std::round(kWindowNs / token_ns), 1.0, static_cast<double>(kMostWindowTokens));
  run.tokens.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
  run.traces.resize(run.tokens.size());
  TokenTimes discarded;
  return TracedWindow(run, 1, discarded);
}

// An impossible figure on a machine that others were using is theirs, not the instrument's.
Error Explain(const DepthRun& run, const Result<Account>& account) {
  const double share = static_cast<double>(run.disturbed) / static_cast<double>(run.rounds.size());
  Error error = account.error();
  if (share <= kDisturbedShare) return error;
  error.code = Code::kMeasurementUnstable;
  error.expected = fmt::format("a quieter machine: other programs disturbed {:.0f} % of the rounds", share * 100);
  return error;
}

Result<Account> AuditDepth(DepthRun& run, const Options& options, double seconds_before, double seconds_total,
                           const Hooks& hooks) {
  BOLTBEAM_TRY(measure::FillContext(run.engine, run.session, run.depth, options.seed));
  BOLTBEAM_TRY(PrepareWindow(run, options.seed));
  const std::uint64_t begin = base::MonotonicNs();
  for (double seconds = 0; seconds < options.seconds || run.rounds.size() < kLeastRounds;
       seconds = static_cast<double>(base::MonotonicNs() - begin) / 1e9) {
    if (hooks.cancelled && hooks.cancelled()) return Fail(Code::kInterrupted, "audit", "stopped by the user");
    if (hooks.progress) hooks.progress(seconds_before + seconds, seconds_total);
    BOLTBEAM_TRY(RunRound(run));
  }
  BOLTBEAM_TRY(run.session.Truncate(run.depth));
  // A window's tokens lie at depth, depth + 1, ...: on average half a window above.
  const std::uint64_t mean_depth = run.depth + run.tokens.size() / 2;
  const std::uint32_t kv_bytes = run.engine.options().kv == engine::KvFormat::kF32 ? 4 : 2;
  const std::vector<PartFloor> floors = PartFloors(run.engine.model(), mean_depth, kv_bytes);
  Result<Account> account = BuildAccount({.depth = run.depth,
                                          .floors = floors,
                                          .steps = run.engine.steps(),
                                          .rounds = run.rounds,
                                          .cache_gb_s = run.bandwidth.CacheGbS(),
                                          .seed = options.seed});
  if (!account && account.error().code == Code::kMeasurementImpossible) return std::unexpected(Explain(run, account));
  return account;
}

}  // namespace

std::uint64_t ContextNeeded(const Options& options) {
  return *std::ranges::max_element(options.depths) + kMostWindowTokens;
}

Result<Audit> RunAudit(engine::Engine& engine, engine::Session& session, BandwidthSource& bandwidth,
                       const Options& options, const Hooks& hooks) {
  BOLTBEAM_ASSIGN(const measure::Clock clock, measure::GetClock());
  Audit audit;
  audit.environment = measure::ReadEnvironment();
  audit.cache_gb_s = bandwidth.CacheGbS();
  audit.bandwidth_method = bandwidth.Method();
  audit.clock = clock.source;
  audit.stamp_ns = clock.read_cost_ns;
  audit.stamps = 2 * (engine.steps().size() + engine.phases() + 1);
  audit.seed = options.seed;
  const measure::Counters counters = measure::ReadCounters();
  const std::uint64_t begin = base::Ticks();
  std::size_t disturbed = 0, rounds = 0;
  std::vector<std::uint64_t> depths = options.depths;
  std::ranges::sort(depths);  // a longer context extends the shorter one
  const double total = options.seconds * static_cast<double>(depths.size());
  for (const std::uint64_t depth : depths) {
    DepthRun run{engine, session, bandwidth, clock, depth};
    const double before = options.seconds * static_cast<double>(audit.accounts.size());
    BOLTBEAM_ASSIGN(Account account, AuditDepth(run, options, before, total, hooks));
    audit.accounts.push_back(std::move(account));
    audit.window_tokens = static_cast<std::uint32_t>(run.tokens.size());
    disturbed += run.disturbed;
    rounds += run.rounds.size();
  }
  audit.disturbances = measure::SpoilingCauses(counters, measure::ReadCounters(), clock.ToNs(base::Ticks() - begin));
  audit.disturbed_share = static_cast<double>(disturbed) / static_cast<double>(rounds);
  return audit;
}

Result<void> RequireTieOut(const Audit& audit) {
  for (const Account& account : audit.accounts) {
    if (account.TiesOut()) continue;
    return Fail(
        Code::kMeasurementUnstable, fmt::format("depth {}", account.depth),
        fmt::format("{:.1f} % of the token unaccounted for", account.token.unaccounted_ns / account.token.now_ns * 100),
        fmt::format("at most {:.0f} %: a quieter machine, or more time (--seconds)", kResidualBudget * 100));
  }
  return {};
}

}  // namespace boltbeam::audit
