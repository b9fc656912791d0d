// From the time stamps of a token to where its time went.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "audit/account.h"

namespace boltbeam::audit {
namespace {

std::unexpected<Error> BadStamp(std::size_t thread, std::string where) {
  return Fail(Code::kMeasurementImpossible, std::move(where),
              fmt::format("a time stamp of thread {} is out of order or outside its token", thread),
              "stamps in order of time: the instrument is at fault");
}

bool HasShape(const std::vector<std::vector<std::uint64_t>>& stamps, std::size_t threads, std::size_t width) {
  return stamps.size() == threads && std::ranges::all_of(stamps, [&](const auto& row) { return row.size() == width; });
}

// Walks one thread's stamps in order. Every nanosecond between token_begin and token_end is either in a span or in the
// gap before one.
class Walker {
 public:
  Walker(const engine::Trace& trace, const measure::Clock& clock)
      : clock_(clock), end_(trace.token_end), cursor_(trace.token_begin) {}

  /// Nanoseconds from begin to end; nullopt when begin lies before the last span, or end before begin or after the
  /// token.
  std::optional<double> Span(std::uint64_t begin, std::uint64_t end) {
    if (begin < cursor_ || end < begin || end > end_) return std::nullopt;
    gaps_ns_ += clock_.ToNs(begin - cursor_);
    cursor_ = end;
    return clock_.ToNs(end - begin);
  }
  /// All gaps, the one behind the last span included.
  [[nodiscard]] double GapsNs() const { return gaps_ns_ + clock_.ToNs(end_ - cursor_); }

 private:
  const measure::Clock& clock_;
  std::uint64_t end_, cursor_;
  double gaps_ns_ = 0;
};

// The true union of all kernels of all threads: never the last end less the first beginning.
std::uint64_t BusyTicks(const engine::Trace& trace) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (std::size_t thread = 0; thread < trace.step_begin.size(); ++thread) {
    for (std::size_t step = 0; step < trace.step_begin[thread].size(); ++step) {
      spans.emplace_back(trace.step_begin[thread][step], trace.step_end[thread][step]);
    }
  }
  std::ranges::sort(spans);
  std::uint64_t busy = 0, end = 0;
  for (const auto& [from, to] : spans) {
    if (to <= end) continue;
    busy += to - std::max(from, end);
    end = to;
  }
  return busy;
}

}  // namespace

Result<TokenTimes> ReadTrace(const engine::Trace& trace, std::span<const engine::StepInfo> steps, std::uint32_t phases,
                             const measure::Clock& clock) {
  const std::size_t threads = trace.step_begin.size();
  if (threads == 0 || !HasShape(trace.step_begin, threads, steps.size()) ||
      !HasShape(trace.step_end, threads, steps.size()) || !HasShape(trace.barrier_begin, threads, phases) ||
      !HasShape(trace.barrier_end, threads, phases)) {
    return Fail(Code::kAccountOpen, "time stamps", fmt::format("a trace of {} threads", threads),
                fmt::format("{} steps and {} barriers on every thread", steps.size(), phases));
  }
  if (trace.token_end < trace.token_begin) return BadStamp(0, "token");
  TokenTimes times;
  times.work.assign(steps.size(), 0);
  times.slowest.assign(steps.size(), 0);
  times.release.assign(phases, 0);
  times.by_thread.assign(steps.size() * threads, 0);
  times.total = clock.ToNs(trace.token_end - trace.token_begin);
  const double share = 1.0 / static_cast<double>(threads);
  for (std::size_t thread = 0; thread < threads; ++thread) {
    Walker walker(trace, clock);
    double own_work = 0, own_wait = 0;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const auto work = walker.Span(trace.step_begin[thread][step], trace.step_end[thread][step]);
      if (!work) return BadStamp(thread, fmt::format("step {} ({})", step, steps[step].role));
      times.work[step] += *work * share;
      times.by_thread[step * threads + thread] = *work;
      own_work += *work;
      times.slowest[step] = std::max(times.slowest[step], *work);
      const std::uint32_t phase = steps[step].phase;
      const bool last_of_phase = step + 1 == steps.size() || steps[step + 1].phase != phase;
      if (!last_of_phase || phase >= phases) continue;
      const auto wait = walker.Span(trace.barrier_begin[thread][phase], trace.barrier_end[thread][phase]);
      if (!wait) return BadStamp(thread, fmt::format("barrier {}", phase));
      times.wait += *wait * share;
      own_wait += *wait;
      times.release[phase] = thread == 0 ? *wait : std::min(times.release[phase], *wait);
    }
    times.host += walker.GapsNs() * share;
    times.thread_work.push_back(own_work);
    times.thread_wait.push_back(own_wait);
    times.thread_host.push_back(walker.GapsNs());
  }
  times.busy = clock.ToNs(BusyTicks(trace));
  return times;
}

}  // namespace boltbeam::audit
