#include "audit/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "audit/alone.h"
#include "audit/floors.h"
#include "measure/bench.h"
#include "measure/clock.h"

namespace boltbeam::audit {
namespace {

constexpr std::uint32_t kWarmUpTokens = 6;
constexpr std::uint32_t kMostWindowTokens = 32;
constexpr double kWindowNs = 4e6;  // short, so that both kinds see the same machine; at least one token
constexpr std::size_t kPairs = 4;  // of windows in a round
constexpr std::size_t kLeastRounds = 8;
// Rounds go on until what is left over is known this well, but not for longer than so many times what was asked for.
constexpr double kResidualError = kResidualBudget / 4;
constexpr double kMostTime = 4;

struct DepthRun {
  engine::Engine& engine;
  engine::Session& session;
  BandwidthSource& bandwidth;
  const measure::Clock& clock;
  std::uint64_t depth = 0;
  std::vector<std::int32_t> tokens = {};   // of a window
  std::vector<engine::Trace> traces = {};  // one a token, kept so that reading them disturbs nothing
  std::vector<Pair> pairs = {};
  std::vector<double> read_gb_s = {};  // the latest reading: what ends a round begins the next
  std::size_t round_count = 0;
  std::size_t disturbed = 0;
  measure::Counters counters = {};  // what happened while windows were timed, over all rounds
  double wall_ns = 0;
  std::uint64_t begin_ticks = 0, end_ticks = 0;  // of all rounds, and what was counted then
  measure::Counters first = {}, last = {};
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

// The stamps are kept and read when the round is over, so that reading them disturbs no window.
Result<void> TracedWindow(DepthRun& run, std::size_t window) {
  BOLTBEAM_TRY(run.session.Truncate(run.depth));
  for (std::size_t i = 0; i < run.tokens.size(); ++i) {
    BOLTBEAM_TRY(run.session.Decode(run.tokens[i], &run.traces[window * run.tokens.size() + i]));
  }
  return {};
}

// The mean of one stamped window's tokens.
Result<TokenTimes> ReadTraces(const DepthRun& run, std::size_t window) {
  TokenTimes mean;
  const double scale = 1.0 / static_cast<double>(run.tokens.size());
  for (std::size_t i = 0; i < run.tokens.size(); ++i) {
    BOLTBEAM_ASSIGN(const TokenTimes times, ReadTrace(run.traces[window * run.tokens.size() + i], run.engine.steps(),
                                                      run.engine.phases(), run.clock));
    AddScaled(mean.work, times.work, scale);
    AddScaled(mean.slowest, times.slowest, scale);
    AddScaled(mean.release, times.release, scale);
    AddScaled(mean.thread_work, times.thread_work, scale);
    AddScaled(mean.thread_wait, times.thread_wait, scale);
    AddScaled(mean.thread_host, times.thread_host, scale);
    AddScaled(mean.by_thread, times.by_thread, scale);
    mean.busy += times.busy * scale;
    mean.wait += times.wait * scale;
    mean.host += times.host * scale;
    mean.total += times.total * scale;
  }
  return mean;
}

double Fastest(const std::vector<double>& read_gb_s) { return *std::ranges::max_element(read_gb_s); }

// Two readings with the same number of bytes: their rate together.
std::vector<double> Together(const std::vector<double>& before, const std::vector<double>& after) {
  std::vector<double> both;
  for (std::size_t shape = 0; shape < before.size(); ++shape) {
    both.push_back(2 / (1 / before[shape] + 1 / after[shape]));
  }
  return both;
}

// Between two readings of the probe: one window that is thrown away because it wakes the threads, then four pairs of
// windows without and with stamps, A B, B A, B A, A B, the next round with the two exchanged: a drift, linear or not,
// treats both kinds alike.
Result<void> RunRound(DepthRun& run) {
  constexpr std::array kStampedFirst = {false, true, true, false};
  static_assert(kStampedFirst.size() == kPairs);
  const bool exchange = run.round_count++ % 2 == 1;
  if (run.read_gb_s.empty()) run.read_gb_s = run.bandwidth.Read();
  measure::AwaitSleepingThreads();  // the probe's spin for a while, on the engine's CPUs
  const measure::Counters before = measure::ReadCounters();
  const std::uint64_t begin = base::Ticks();
  BOLTBEAM_TRY(PlainWindow(run));
  std::array<double, kPairs> plain_ns{};
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    const bool stamped_first = kStampedFirst[pair] != exchange;
    if (stamped_first) BOLTBEAM_TRY(TracedWindow(run, pair));
    BOLTBEAM_ASSIGN(plain_ns[pair], PlainWindow(run));
    if (!stamped_first) BOLTBEAM_TRY(TracedWindow(run, pair));
  }
  const double wall_ns = run.clock.ToNs(base::Ticks() - begin);
  const measure::Counters between = measure::ReadCounters() - before;
  run.counters += between;
  run.wall_ns += wall_ns;
  const std::vector<double> read_before = std::exchange(run.read_gb_s, run.bandwidth.Read());
  const double ratio = Fastest(run.read_gb_s) / Fastest(read_before);
  const bool memory_moved = std::abs(std::log(ratio)) > kMovedShare;
  if (memory_moved || measure::CausesBetween({}, between, wall_ns).any()) ++run.disturbed;
  if (run.begin_ticks == 0) {
    run.begin_ticks = begin;
    run.first = before;
  }
  run.end_ticks = base::Ticks();
  run.last = measure::ReadCounters();
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    BOLTBEAM_ASSIGN(TokenTimes traced, ReadTraces(run, pair));
    run.pairs.push_back({plain_ns[pair], std::move(traced), Together(read_before, run.read_gb_s), memory_moved});
  }
  return {};
}

// Of the last round's traced tokens the one whose time is their median.
Timeline TimelineOf(const DepthRun& run) {
  std::vector<const engine::Trace*> traces;
  for (const engine::Trace& trace : run.traces) traces.push_back(&trace);
  const auto ticks = [](const engine::Trace* trace) { return trace->token_end - trace->token_begin; };
  const auto middle = traces.begin() + static_cast<std::ptrdiff_t>(traces.size() / 2);
  std::ranges::nth_element(traces, middle, {}, ticks);
  const engine::Trace& trace = **middle;
  Timeline timeline{.depth = run.depth, .token_ns = run.clock.ToNs(ticks(&trace)), .spans = {}};
  const auto add = [&](std::uint32_t thread, std::int32_t step, std::uint32_t phase, std::uint64_t begin,
                       std::uint64_t end) {
    timeline.spans.push_back(
        {thread, step, phase, run.clock.ToNs(begin - trace.token_begin), run.clock.ToNs(end - trace.token_begin)});
  };
  for (std::uint32_t thread = 0; thread < trace.step_begin.size(); ++thread) {
    for (std::size_t step = 0; step < trace.step_begin[thread].size(); ++step) {
      add(thread, static_cast<std::int32_t>(step), run.engine.steps()[step].phase, trace.step_begin[thread][step],
          trace.step_end[thread][step]);
    }
    for (std::uint32_t phase = 0; phase < trace.barrier_begin[thread].size(); ++phase) {
      add(thread, -1, phase, trace.barrier_begin[thread][phase], trace.barrier_end[thread][phase]);
    }
  }
  return timeline;
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
  run.traces.resize(kPairs * run.tokens.size());
  return TracedWindow(run, 0);  // makes room for the stamps
}

// An impossible figure on a machine that others were using is theirs, not the instrument's.
Error Explain(const DepthRun& run, const Result<Account>& account) {
  const double share = static_cast<double>(run.disturbed) / static_cast<double>(run.round_count);
  Error error = account.error();
  if (share <= kDisturbedShare) return error;
  error.code = Code::kMeasurementUnstable;
  error.expected = fmt::format("a quieter machine: other programs disturbed {:.0f} % of the rounds", share * 100);
  return error;
}

Result<void> RunAlone(DepthRun& run, Account& account) {
  AloneOptions alone;
  if (run.bandwidth.SweepCaches(0, run.engine.options().threads)) {
    alone.sweep = [&](std::uint32_t thread, std::uint32_t threads) { run.bandwidth.SweepCaches(thread, threads); };
  }
  account.alone_before_gb_s = Fastest(run.bandwidth.Read());
  BOLTBEAM_TRY(TimeAlone(run.engine, run.session, run.clock, alone, account));
  // The memory may have another speed by now: cold times are told at the speed of the rounds.
  account.alone_after_gb_s = Fastest(run.bandwidth.Read());
  const double gb_s = (account.alone_before_gb_s + account.alone_after_gb_s) / 2;
  for (Part& part : account.parts) part.cold_ns *= gb_s / account.read_bandwidth_gb_s;
  return {};
}

// What the counters of all rounds say, beside what was known before.
SessionFacts FactsOf(const DepthRun& run, const Options& options) {
  SessionFacts facts = options.facts;
  facts.barrier_ns = run.bandwidth.BarrierNs();
  const double wall_ns = run.clock.ToNs(run.end_ticks - run.begin_ticks);
  const double throttled_ns = 1e3 * static_cast<double>(run.last.throttled_us - run.first.throttled_us);
  facts.throttled_share = throttled_ns / wall_ns / std::max<std::uint32_t>(1, run.engine.options().threads);
  facts.other_cpus = measure::OtherCpus(run.first, run.last, wall_ns);
  return facts;
}

Result<Account> AuditDepth(DepthRun& run, const Options& options, double seconds_before, double seconds_total,
                           const Hooks& hooks) {
  BOLTBEAM_TRY(measure::FillContext(run.engine, run.session, run.depth, options.seed, {{}, hooks.cancelled}));
  BOLTBEAM_TRY(PrepareWindow(run, options.seed));
  const std::uint64_t begin = base::MonotonicNs();
  const auto is_done = [&](double seconds) {
    if (seconds < options.seconds || run.round_count < kLeastRounds) return false;
    return seconds > kMostTime * options.seconds || ResidualError(run.pairs) <= kResidualError;
  };
  for (double seconds = 0; !is_done(seconds); seconds = base::SecondsSince(begin)) {
    if (hooks.cancelled && hooks.cancelled()) return Fail(Code::kInterrupted, "audit", "stopped by the user");
    if (hooks.progress) hooks.progress(std::min(seconds_before + seconds, seconds_total), seconds_total);
    BOLTBEAM_TRY(RunRound(run));
  }
  BOLTBEAM_TRY(run.session.Truncate(run.depth));
  // A window's tokens lie at depth, depth + 1, ...: on average half a window above.
  const std::uint64_t mean_depth = run.depth + run.tokens.size() / 2;
  const std::vector<PartFloor> floors = PartFloors(run.engine.model(), mean_depth, run.engine.options().cache);
  Result<Account> account = BuildAccount({.depth = run.depth,
                                          .floors = floors,
                                          .steps = run.engine.steps(),
                                          .pairs = run.pairs,
                                          .cache_gb_s = run.bandwidth.CacheGbS(),
                                          .cache_bytes = options.cache_bytes,
                                          .seed = options.seed});
  if (!account && account.error().code == Code::kMeasurementImpossible) return std::unexpected(Explain(run, account));
  if (!account) return account;
  if (options.alone) BOLTBEAM_TRY(RunAlone(run, *account));
  account->causes = CausesOf(*account, options.plans, FactsOf(run, options));
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
  audit.steps.assign(engine.steps().begin(), engine.steps().end());
  measure::Counters counters;
  double wall_ns = 0;
  std::size_t disturbed = 0, rounds = 0;
  std::vector<std::uint64_t> depths = options.depths;
  std::ranges::sort(depths);  // a longer context extends the shorter one
  const double total = options.seconds * static_cast<double>(depths.size());
  for (const std::uint64_t depth : depths) {
    DepthRun run{engine, session, bandwidth, clock, depth};
    const double before = options.seconds * static_cast<double>(audit.accounts.size());
    BOLTBEAM_ASSIGN(Account account, AuditDepth(run, options, before, total, hooks));
    audit.accounts.push_back(std::move(account));
    audit.timelines.push_back(TimelineOf(run));
    audit.facts = FactsOf(run, options);
    audit.window_tokens = static_cast<std::uint32_t>(run.tokens.size());
    disturbed += run.disturbed;
    rounds += run.round_count;
    counters += run.counters;
    wall_ns += run.wall_ns;
  }
  audit.disturbances = measure::SpoilingCauses({}, counters, wall_ns);
  audit.disturbed_share = static_cast<double>(disturbed) / static_cast<double>(rounds);
  return audit;
}

Result<void> RequireTieOut(const Audit& audit) {
  for (const Account& account : audit.accounts) {
    if (account.band > kWidestBand) {
      return Fail(Code::kMeasurementUnstable, fmt::format("depth {}", account.depth),
                  fmt::format("a read bandwidth that varied by {:.0f} % from round to round, {:.1f} % of the token "
                              "unaccounted for",
                              account.band * 100, account.token.unaccounted_ns / account.token.now_ns * 100),
                  fmt::format("at most {:.0f} %: a quieter machine", kWidestBand * 100));
    }
    if (account.TiesOut()) continue;
    return Fail(
        Code::kMeasurementUnstable, fmt::format("depth {}", account.depth),
        fmt::format("{:.1f} % of the token unaccounted for", account.token.unaccounted_ns / account.token.now_ns * 100),
        fmt::format("at most {:.0f} %: a quieter machine, or more time (--seconds)", kResidualBudget * 100));
  }
  return {};
}

}  // namespace boltbeam::audit
