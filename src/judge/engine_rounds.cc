#include "judge/engine_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "base/ticks.h"
#include "judge/output_check.h"
#include "runtime/thread_pool.h"

namespace boltbeam::judge {
namespace {

constexpr double kWindowNs = 5e6;
// The limit is read around each of the first rounds, so that few rounds have readings enough; then of every fourth.
constexpr std::uint64_t kFirstProbes = 8, kRoundsPerProbe = 4;

constexpr double kFarthest = 1e9;  // also of what is no number

double Apart(float a, float b) {
  const double difference = std::abs(static_cast<double>(a) - static_cast<double>(b));
  return std::isfinite(difference) ? difference : kFarthest;
}

}  // namespace

EngineRounds::EngineRounds(Setting setting)
    : s_(std::move(setting)),
      a_(*s_.a),
      b_(*s_.b),
      random_(s_.seed ^ 0x5EEDU),
      begin_ns_(base::MonotonicNs()),
      depth_(s_.a->depth()),
      tokens_(s_.window_tokens) {
  for (Output& output : outputs_) {
    output.best.resize(tokens_.size());
    output.prints.resize(tokens_.size());
  }
}

Result<void> EngineRounds::CheckDepth(const Side& side, std::uint64_t expected) const {
  const std::uint64_t depth = side.metered.depth();
  if (depth == expected) return {};
  return Fail(Code::kMeasurementImpossible, &side == &b_ ? "B" : "A", fmt::format("a context of {} tokens", depth),
              fmt::format("{}: what it was told to compute", expected));
}

// The best token of each is read inside the timer, and so are logits: a session that puts work off until then gains
// nothing.
Result<std::span<const float>> EngineRounds::ComputeTokens(Side& side, Output& output) {
  std::span<const float> logits;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    BOLTBEAM_TRY(side.metered.Decode(tokens_[i], nullptr));
    logits = side.metered.logits();
    output.best[i] = side.metered.argmax();
    if (logits.empty()) continue;
    for (std::size_t k = 0; k < kPrints; ++k) output.prints[i][k] = logits[print_at_[k] % logits.size()];
  }
  return logits;
}

// Everything else that the side does, under whatever name, is work outside the timer: what its entry points take, and
// what its other threads go on with. Their waiting is none, so that they sleep as soon as the timer stands still.
Result<measure::TimedWindow> EngineRounds::Window(Side& side, Output& output) {
  const bool is_b = &side == &b_;
  const auto tokens = static_cast<double>(tokens_.size());
  const measure::Counters before = counters_.Read();
  const std::uint64_t window_begin = base::MonotonicNs();
  BOLTBEAM_TRY(side.metered.Truncate(depth_));
  BOLTBEAM_TRY(CheckDepth(side, depth_));
  threads_.BeginTimer(is_b);
  const std::uint64_t metered = side.metered.ticks(), begin = base::Ticks();
  BOLTBEAM_ASSIGN(const std::span<const float> logits, ComputeTokens(side, output));
  const std::uint64_t end = base::Ticks();
  const runtime::NoSpinning sleeping;
  threads_.EndTimer(is_b);
  side.charged += side.metered.ticks() - metered;
  output.logits.assign(logits.begin(), logits.end());
  output.hash = HashLogits(logits) ^ static_cast<std::uint64_t>(output.best.back());
  BOLTBEAM_TRY(CheckDepth(side, depth_ + tokens_.size()));
  measure::TimedWindow window{s_.clock.ToNs(end - begin) / tokens, CausesOf(before, counters_.Read(), window_begin), 0};
  measure::AwaitSleepingThreads();
  window.outside_ns = (s_.clock.ToNs(side.metered.ticks() - side.charged) + threads_.Outside(is_b)) / tokens;
  side.charged = side.metered.ticks();
  return window;
}

// Which threads work for which side: each computes by itself what no window will ask for, twice, because others may
// wake once. The pauses are for threads that sleep before they work.
Result<void> EngineRounds::LearnThreads() {
  const auto pause = [] {
    const runtime::NoSpinning sleeping;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    measure::AwaitSleepingThreads();
  };
  for (Side* side : {&a_, &b_, &a_, &b_}) {
    const bool is_b = side == &b_;
    if (!is_b) DrawTokens();
    pause();
    threads_.Skip();
    BOLTBEAM_TRY(side->metered.Truncate(depth_));
    BOLTBEAM_TRY(ComputeTokens(*side, outputs_[is_b ? 1 : 0]));
    pause();
    threads_.Learn(is_b);
    side->charged = side->metered.ticks();
  }
  return {};
}

double EngineRounds::Difference(const Output& a, const Output& b) {
  if (a.hash == b.hash && a.best == b.best && a.prints == b.prints) return 0;
  if (a.logits.size() != b.logits.size()) return kFarthest;
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < a.logits.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a.logits[i])));
    apart = std::max(apart, Apart(a.logits[i], b.logits[i]));
  }
  for (std::size_t i = 0; i < a.prints.size(); ++i) {
    for (std::size_t k = 0; k < kPrints; ++k) apart = std::max(apart, Apart(a.prints[i][k], b.prints[i][k]));
  }
  // Equal logits with another best token: a plan that does not look for it. Otherwise a zero of another sign.
  if (apart == 0) return a.best != b.best ? 1 : std::numeric_limits<double>::min();
  return largest == 0 ? apart : std::min(apart / largest, kFarthest);
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

// For a pair, one window of each side: no side computes the same twice, so that remembering is no use.
void EngineRounds::DrawTokens() {
  constexpr int kTries = 100;  // of a small vocabulary all may be used
  are_new_ = false;
  for (int i = 0; i < kTries && !are_new_; ++i) {
    for (std::int32_t& token : tokens_) token = static_cast<std::int32_t>(random_() % s_.vocabulary);
    are_new_ = drawn_.insert(tokens_).second;
  }
  for (std::size_t& at : print_at_) at = random_() % s_.vocabulary;
}

Result<measure::PairedRound> EngineRounds::Next(bool b_first) {
  measure::PairedRound round;
  round.b_first = b_first;
  if (rounds_ == 0) BOLTBEAM_TRY(LearnThreads());
  const bool is_probed = s_.limit && (rounds_ < kFirstProbes || rounds_ % kRoundsPerProbe == 0);
  if (is_probed) round.limit = s_.limit();
  ++rounds_;
  {
    const runtime::NoSpinning sleeping;  // the probe's workers
    measure::AwaitSleepingThreads();
    threads_.Skip();
  }
  std::array<bool, 2> repeats{};  // an output of the side's own
  for (std::size_t i = 0; i < round.windows.size(); ++i) {
    const bool is_b = round.IsB(i);
    if (i % 2 == 0) DrawTokens();
    Side& side = is_b ? b_ : a_;
    Output& output = outputs_[is_b ? 1 : 0];
    BOLTBEAM_ASSIGN(round.windows[i], Window(side, output));
    repeats[is_b ? 1 : 0] = !side.seen.insert(output.hash).second;
    if (i % 2 == 0) continue;
    // Where both repeat one, the tokens' rows are equal in the file.
    if (are_new_ && repeats[0] != repeats[1]) round.reused_output = true;
    round.output_difference = std::max(round.output_difference, Difference(outputs_[0], outputs_[1]));
  }
  // Memory's speed may change in between: the faster of the two is what the round can have met.
  if (is_probed) round.limit = std::max(round.limit, s_.limit());
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

}  // namespace boltbeam::judge
