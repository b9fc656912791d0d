#include "measure/kernel_times.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "measure/clock.h"
#include "measure/statistics.h"

namespace boltbeam::measure {
namespace {

constexpr std::uint32_t kBoundTokens = 9;

}  // namespace

Result<std::map<std::string, KernelTime>> TimeKernels(engine::Engine& engine, std::uint32_t tokens) {
  BOLTBEAM_ASSIGN(const Clock clock, GetClock());
  BOLTBEAM_ASSIGN(const std::unique_ptr<engine::Session> session, engine.NewSession());
  BOLTBEAM_TRY(session->Decode(0));
  std::map<std::string, std::vector<double>> wall, busy;  // ticks of every token
  for (std::uint32_t token = 0; token < tokens; ++token) {
    engine::Trace trace;
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

Result<std::vector<double>> TimeBarrierWaits(engine::Engine& engine, std::uint32_t tokens) {
  if (engine.options().threads < 2) return std::vector<double>(engine.phases());
  BOLTBEAM_ASSIGN(const Clock clock, GetClock());
  BOLTBEAM_ASSIGN(const std::unique_ptr<engine::Session> session, engine.NewSession());
  BOLTBEAM_TRY(session->Decode(0));
  std::vector<std::vector<double>> waits(engine.phases());
  for (std::uint32_t token = 0; token < tokens; ++token) {
    engine::Trace trace;
    BOLTBEAM_TRY(session->Decode(0, &trace));
    for (std::size_t phase = 0; phase < waits.size(); ++phase) {
      std::uint64_t first = trace.barrier_begin[0][phase], last = first;
      for (const auto& thread : trace.barrier_begin) {
        first = std::min(first, thread[phase]);
        last = std::max(last, thread[phase]);
      }
      waits[phase].push_back(clock.ToNs(last - first));
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& samples : waits) medians.push_back(Median(samples));
  return medians;
}

Result<std::vector<engine::RouteBound>> BoundRoutes(engine::Engine& engine, const chip::Chip& machine) {
  BOLTBEAM_ASSIGN(std::vector<double> waits, TimeBarrierWaits(engine, kBoundTokens));
  return engine::RouteBounds(engine, machine, {std::move(waits)});
}

}  // namespace boltbeam::measure
