#include "judge/engine_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/ticks.h"
#include "judge/output_check.h"

namespace boltbeam::judge {
namespace {

constexpr double kWindowNs = 5e6;
constexpr std::uint64_t kRoundsPerProbe = 4;

}  // namespace

EngineRounds::EngineRounds(Setting setting)
    : s_(std::move(setting)),
      random_(s_.seed ^ 0x5EEDU),
      begin_ns_(base::MonotonicNs()),
      depth_(s_.a->depth()),
      tokens_(s_.window_tokens) {}

// The best token is read inside the timer, and so are the logits: a session that puts work off until then gains
// nothing.
Result<EngineRounds::Timed> EngineRounds::Window(engine::Session& session) {
  Timed timed;
  const std::uint64_t before = base::Ticks();
  BOLTBEAM_TRY(session.Truncate(depth_));
  const std::uint64_t begin = base::Ticks();
  for (const std::int32_t token : tokens_) BOLTBEAM_TRY(session.Decode(token));
  const std::span<const float> logits = session.logits();
  const std::int32_t best = session.argmax();
  const std::uint64_t end = base::Ticks();
  timed.hash = HashLogits(logits) ^ static_cast<std::uint64_t>(best);
  timed.ns = s_.clock.ToNs(end - begin) / static_cast<double>(tokens_.size());
  timed.untimed_ns = s_.clock.ToNs(begin - before) / static_cast<double>(tokens_.size());
  return timed;
}

measure::Causes EngineRounds::CausesOf(const measure::Counters& before, const measure::Counters& after,
                                       std::uint64_t begin_ns) {
  const std::uint64_t now_ns = base::MonotonicNs();
  const auto wall_ns = static_cast<double>(now_ns - begin_ns);
  measure::Causes causes = measure::CausesBetween(before, after, wall_ns);
  if (steal_.Took(after, static_cast<double>(now_ns))) causes.set(static_cast<std::size_t>(measure::Cause::kSteal));
  checks_.counters += after - before;
  checks_.wall_ns += wall_ns;
  return causes;
}

Result<measure::PairedRound> EngineRounds::Next(bool b_first) {
  measure::PairedRound round;
  round.b_first = b_first;
  for (std::int32_t& token : tokens_) token = static_cast<std::int32_t>(random_() % s_.vocabulary);
  if (s_.limit && rounds_++ % kRoundsPerProbe == 0) round.limit = s_.limit();
  std::array<std::uint64_t, 4> hashes{};
  for (std::size_t i = 0; i < round.windows.size(); ++i) {
    const bool is_b = round.IsB(i);
    // The threads of the other side, and of the probe, spin for a while after their work, on the same CPUs.
    measure::AwaitSleepingThreads();
    const measure::Counters before = counters_.Read();
    const std::uint64_t begin = base::MonotonicNs();
    BOLTBEAM_ASSIGN(const Timed timed, Window(is_b ? *s_.b : *s_.a));
    const measure::Counters after = counters_.Read();
    round.windows[i].ns = timed.ns;
    round.windows[i].causes = CausesOf(before, after, begin);
    hashes[i] = timed.hash;
    (is_b ? checks_.untimed_b : checks_.untimed_a).push_back(timed.ns > 0 ? timed.untimed_ns / timed.ns : INFINITY);
    ++checks_.windows;
  }
  if (s_.bitwise && !std::ranges::all_of(hashes, [&](std::uint64_t hash) { return hash == hashes[0]; })) {
    ++checks_.differing;
  }
  const std::uint64_t b_hash = hashes[b_first ? 0 : 1];
  if (b_hash == last_b_hash_) ++checks_.reused;
  last_b_hash_ = b_hash;
  round.at_s = base::SecondsSince(begin_ns_);
  return round;
}

Result<std::uint32_t> ChooseWindow(engine::Session& a, engine::Session& b, std::uint32_t vocabulary,
                                   const measure::Clock& clock) {
  constexpr std::uint32_t kWarmUp = 6, kReadings = 5;
  std::vector<double> slower;
  for (engine::Session* session : {&a, &b}) {
    const std::uint64_t depth = session->depth();
    std::vector<double> times;
    for (std::uint32_t i = 0; i < kWarmUp + kReadings; ++i) {
      const std::uint64_t begin = base::Ticks();
      BOLTBEAM_TRY(session->Decode(static_cast<std::int32_t>((7 * i + 1) % vocabulary)));
      if (i >= kWarmUp) times.push_back(clock.ToNs(base::Ticks() - begin));
    }
    BOLTBEAM_TRY(session->Truncate(depth));
    slower.push_back(measure::Median(times));
  }
  const double ns = std::max(1.0, std::ranges::max(slower));
  return static_cast<std::uint32_t>(std::clamp(std::ceil(kWindowNs / ns), 1.0, double{kMostWindowTokens}));
}

Condition TimedWork(const std::vector<WindowChecks>& checks, const Thresholds& thresholds) {
  Condition condition{std::string(kTimedWork), checks.empty() ? State::kUnknown : State::kPass, ""};
  for (const WindowChecks& one : checks) {
    for (const auto& [side, untimed] : {std::pair("A", &one.untimed_a), std::pair("B", &one.untimed_b)}) {
      const double share = measure::Median(*untimed);
      if (!(share > thresholds.untimed_share)) continue;
      condition.state = State::kFail;
      condition.detail = fmt::format("{} works outside the timer: {:.0f} % of a window's time", side, share * 100);
    }
  }
  return condition;
}

Condition AboveFloor(const std::vector<FloorFinding>& findings, const Thresholds& thresholds) {
  Condition condition{std::string(kAboveFloor), State::kUnknown, "the chip's limit was not probed"};
  for (const FloorFinding& finding : findings) {
    if (!(finding.a_floor_ns > 0)) continue;
    if (!(finding.a_ns > 0 && finding.b_ns > 0)) {
      condition.detail = "every round was spoiled";
      continue;
    }
    if (condition.state == State::kUnknown) condition = {std::string(kAboveFloor), State::kPass, ""};
    for (const auto& [side, floor, ns] :
         {std::tuple("A", finding.a_floor_ns, finding.a_ns), std::tuple("B", finding.b_floor_ns, finding.b_ns)}) {
      if (ns >= floor * (1 - thresholds.floor_band)) continue;
      condition.state = State::kFail;
      condition.detail = fmt::format("depth {}: {} took {:.0f} us, its bytes alone {:.0f} us: not read from memory",
                                     finding.depth, side, ns / 1e3, floor / 1e3);
    }
  }
  return condition;
}

}  // namespace boltbeam::judge
