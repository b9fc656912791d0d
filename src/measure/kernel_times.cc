#include "measure/kernel_times.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "measure/clock.h"
#include "measure/environment.h"
#include "measure/statistics.h"

namespace boltbeam::measure {
namespace {

constexpr std::uint32_t kBoundTokens = 9;

/// [phase]: from the first thread's coming to its barrier to the last one's, nanoseconds.
std::vector<double> WaitsOf(const engine::Trace& trace, const Clock& clock) {
  std::vector<double> waits;
  for (std::size_t phase = 0; phase < trace.barrier_begin[0].size(); ++phase) {
    std::uint64_t first = trace.barrier_begin[0][phase], last = first;
    for (const auto& thread : trace.barrier_begin) {
      first = std::min(first, thread[phase]);
      last = std::max(last, thread[phase]);
    }
    waits.push_back(clock.ToNs(last - first));
  }
  return waits;
}

/// [token][phase] -> [phase]
std::vector<double> MediansOf(const std::vector<std::vector<double>>& tokens) {
  std::vector<double> medians;
  for (std::size_t phase = 0; phase < tokens.front().size(); ++phase) {
    std::vector<double> samples;
    for (const std::vector<double>& waits : tokens) samples.push_back(waits[phase]);
    medians.push_back(Median(samples));
  }
  return medians;
}

/// [token][phase], each as many tokens as `kBoundTokens`; what spoiled them, in words.
Result<std::vector<std::string>> TimeWaits(engine::Session& session, std::vector<std::vector<double>>& shared,
                                           std::vector<std::vector<double>>& unshared,
                                           const std::function<bool()>& cancelled) {
  BOLTBEAM_ASSIGN(const Clock clock, GetClock());
  BOLTBEAM_TRY(session.Decode(0));
  shared.clear();
  unshared.clear();
  const CounterReader counters;
  const Counters before = counters.Read();
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t token = 0; token < 2 * kBoundTokens; ++token) {
    if (cancelled && cancelled()) return Fail(Code::kInterrupted, "waits at barriers", "stopped by the user");
    const bool shares = token % 2 == 0;
    session.ShareTails(shares);
    BOLTBEAM_TRY(session.Truncate(0));
    engine::Trace trace;
    BOLTBEAM_TRY(session.Decode(0, &trace));
    (shares ? shared : unshared).push_back(WaitsOf(trace, clock));
  }
  const std::chrono::duration<double, std::nano> wall = std::chrono::steady_clock::now() - start;
  return SpoilingCauses(before, counters.Read(), wall.count());
}

}  // namespace

Result<std::map<std::string, KernelTime>> TimeKernels(engine::Engine& engine, std::uint32_t tokens) {
  BOLTBEAM_ASSIGN(const Clock clock, GetClock());
  BOLTBEAM_ASSIGN(const std::unique_ptr<engine::Session> session, engine.NewSession());
  BOLTBEAM_TRY(session->Decode(0));
  std::map<std::string, std::vector<double>> wall, busy;  // ticks of every token
  for (std::uint32_t token = 0; token < tokens; ++token) {
    engine::Trace trace;
    BOLTBEAM_TRY(session->Truncate(0));
    BOLTBEAM_TRY(session->Decode(0, &trace));
    std::map<std::string, std::pair<double, double>> sums;
    for (std::size_t step = 0; step < engine.steps().size(); ++step) {
      std::uint64_t begin = trace.step_begin[0][step], end = trace.step_end[0][step];
      auto& [own_wall, own_busy] = sums[engine.steps()[step].kernel_id];
      for (std::size_t thread = 0; thread < trace.step_begin.size(); ++thread) {
        begin = std::min(begin, trace.step_begin[thread][step]);
        end = std::max(end, trace.step_end[thread][step]);
        own_busy += static_cast<double>(trace.step_end[thread][step] - trace.step_begin[thread][step]);
      }
      own_wall += static_cast<double>(end - begin);
    }
    for (const auto& [id, sum] : sums) {
      wall[id].push_back(sum.first);
      busy[id].push_back(sum.second);
    }
  }
  std::map<std::string, KernelTime> times;
  for (auto& [id, samples] : wall) {
    times[id] = {Median(samples) * clock.ns_per_tick, base::TicksAreCounter() ? Median(busy[id]) : 0};
  }
  return times;
}

Result<RouteList> BoundRoutes(engine::Engine& engine, const chip::Chip& machine,
                              const std::function<bool()>& cancelled) {
  // One thread waits for nobody.
  std::vector<std::vector<double>> shared(1, std::vector<double>(engine.phases())), unshared = shared;
  RouteList list;
  if (engine.options().threads > 1) {
    BOLTBEAM_ASSIGN(const std::unique_ptr<engine::Session> session, engine.NewSession());
    BOLTBEAM_ASSIGN(list.spoiled, TimeWaits(*session, shared, unshared, cancelled));
  }
  BOLTBEAM_ASSIGN(list.bounds, engine::RouteBounds(engine, machine, {MediansOf(shared), MediansOf(unshared)}));
  return list;
}

}  // namespace boltbeam::measure
