#include "measure/chip_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "measure/environment.h"
#include "measure/memory_probes.h"
#include "measure/probes.h"
#include "measure/statistics.h"
#include "roofline/formulas.h"

namespace boltbeam::measure {
namespace {

constexpr std::uint32_t kChoosingRounds = 7;
constexpr std::uint32_t kSamples = 31;  // fresh ones, after the choice
constexpr double kLeastBand = 0.05;
constexpr double kBandSpreads = 3;
constexpr double kRateLoopNs = 3e6;

struct Run {
  const chip::Chip& machine;
  runtime::KernelCache& kernels;
  const std::vector<int>& cpus;
  const MeasureHooks& hooks;
  std::string date = UtcNow();
  std::vector<chip::Fact> facts = {};
  std::uint32_t done = 0, total = 0;
  double dispatch_ns = 0;
  std::size_t best_shape = 0;  // of the streaming read

  [[nodiscard]] Result<void> Check() const {
    if (hooks.cancelled && hooks.cancelled()) return Fail(Code::kInterrupted, "chip measure", "stopped by the user");
    return {};
  }
  Result<void> Advance() {
    BOLTBEAM_TRY(Check());
    if (hooks.progress) hooks.progress(++done, total);
    return {};
  }
  const chip::Fact& Add(std::string name, std::span<const double> samples, const char* unit, std::string method) {
    const Summary summary = Summarise(samples);
    chip::Fact fact;
    fact.name = std::move(name);
    fact.value = summary.median;
    fact.unit = unit;
    fact.provenance = chip::Provenance::kMeasured;
    fact.method = std::move(method);
    fact.date = date;
    fact.spread = summary.RelativeSpread();
    facts.push_back(std::move(fact));
    return facts.back();
  }
};

double Band(const chip::Fact& fact) { return std::max(kLeastBand, kBandSpreads * fact.spread); }

std::string ShapeText(const StreamShape& shape) {
  return fmt::format(
      "{}-bit loads x {}, {} sums, {}", shape.lanes * 32, shape.loads, shape.accumulators,
      shape.prefetch_bytes == 0 ? "no prefetch" : fmt::format("prefetch {} B ahead", shape.prefetch_bytes));
}

// The fastest shape, then fresh passes of it: the choice itself flatters the winner.
Result<chip::Fact> MeasureStream(Run& run, StreamProbe& probe, runtime::ThreadPool& pool, const std::string& name,
                                 std::uint64_t bytes, std::uint32_t repeats, const char* what) {
  const std::size_t shape = probe.FastestShapes(pool, kChoosingRounds, bytes, repeats).front();
  if (bytes == 0) run.best_shape = shape;  // the last of these has all threads
  std::vector<double> samples;
  for (std::uint32_t i = 0; i < kSamples; ++i) {
    BOLTBEAM_TRY(run.Check());
    samples.push_back(probe.Pass(pool, shape, bytes, repeats));
  }
  const std::uint64_t length = bytes == 0 ? probe.bytes() : bytes;
  return run.Add(
      name, samples, "GB/s",
      fmt::format("{} of {} MiB incompressible data, {} threads; fastest of {} generated kernels: {}; median "
                  "of {} passes",
                  what, length >> 20, pool.size(), probe.shapes().size(), ShapeText(probe.shapes()[shape]), kSamples));
}

// Read a set that fits in the cache, sweep the cache by reading far more than it holds, read the set again: if that is
// faster than the memory, the sweep evicted nothing and no cold figure can be believed.
Result<void> ProveCold(Run& run, StreamProbe& probe, runtime::ThreadPool& pool, const chip::Fact& memory) {
  const std::uint64_t set = LastLevelCacheBytes(run.machine) / 2;
  constexpr std::uint32_t kRereads = 7;
  std::vector<double> rereads;
  for (std::uint32_t i = 0; i < kRereads; ++i) {
    probe.Pass(pool, 0, set);
    probe.Pass(pool, 0);
    rereads.push_back(probe.Pass(pool, 0, set));
  }
  const chip::Fact& reread =
      run.Add("cold_reread_gb_s", rereads, "GB/s",
              fmt::format("{} MiB read again after a sweep that read {} MiB", set >> 20, probe.bytes() >> 20));
  return RefuseAbove("re-read after the cache sweep", reread.value, "the memory's streaming rate", memory.value,
                     Band(memory), "GB/s");
}

Result<void> MeasureMemory(Run& run, StreamProbe& probe, runtime::ThreadPool& all) {
  chip::Fact best;
  for (const std::uint32_t threads : ThreadCounts(static_cast<std::uint32_t>(run.cpus.size()))) {
    BOLTBEAM_TRY(run.Advance());
    const std::vector<int> cpus(run.cpus.begin(), run.cpus.begin() + threads);
    BOLTBEAM_ASSIGN(const auto pool, runtime::ThreadPool::Create(cpus));
    BOLTBEAM_ASSIGN(const chip::Fact fact,
                    MeasureStream(run, probe, *pool, fmt::format("read_bandwidth_gb_s.threads_{}", threads), 0, 1,
                                  "streaming read"));
    if (fact.value > best.value) best = fact;
  }
  best.name = "read_bandwidth_gb_s";
  run.facts.insert(run.facts.begin(), best);
  BOLTBEAM_TRY(run.Advance());
  BOLTBEAM_TRY(ProveCold(run, probe, all, best));
  if (const auto published = run.machine.Get("published_bandwidth_gb_s")) {
    BOLTBEAM_TRY(RefuseAbove("read bandwidth", best.value, "the published bandwidth", *published, Band(best), "GB/s"));
  }
  BOLTBEAM_TRY(run.Advance());
  // Half of every core's second-level cache: where activations live between two kernels.
  const auto level2 = static_cast<std::uint64_t>(run.machine.Get("l2_bytes").value_or(512.0 * 1024));
  const std::uint64_t set = std::min(level2 / 2 * all.size(), probe.bytes());
  const double pass_ns = static_cast<double>(set) / best.value;
  const auto repeats = static_cast<std::uint32_t>(kLeastDispatches * run.dispatch_ns * 4 / pass_ns) + 8;
  BOLTBEAM_ASSIGN(const chip::Fact cache,
                  MeasureStream(run, probe, all, "cache_bandwidth_gb_s", set, repeats, "repeated read in the caches"));
  return RefuseAbove("read bandwidth", best.value, "the caches' bandwidth", cache.value, Band(best), "GB/s");
}

// What else memory does, and the reading rate once more: what a drift in between looks like.
Result<void> MeasureMoreMemory(Run& run, StreamProbe& stream, runtime::ThreadPool& pool) {
  BOLTBEAM_TRY(run.Advance());
  constexpr std::uint32_t kPasses = 11;
  BOLTBEAM_ASSIGN(MemoryProbe probe, MemoryProbe::Create(run.kernels, run.machine, pool, stream.bytes()));
  std::vector<double> copies, writes, idle, loaded, again;
  for (std::uint32_t i = 0; i < kPasses; ++i) {
    BOLTBEAM_TRY(run.Check());
    copies.push_back(probe.Copy(pool));
    writes.push_back(probe.Write(pool));
  }
  BOLTBEAM_TRY(run.Advance());
  probe.PrepareChase(kPasses);
  for (std::uint32_t i = 0; i < kPasses; ++i) {
    BOLTBEAM_TRY(run.Check());
    idle.push_back(probe.Latency(pool));
    if (pool.size() > 1) loaded.push_back(probe.Latency(pool, &stream));
    again.push_back(stream.Pass(pool, run.best_shape));
  }
  const std::uint64_t mib = stream.bytes() >> 20;
  run.Add("copy_bandwidth_gb_s", copies, "GB/s",
          fmt::format("{} MiB to as many others on {} threads; bytes read plus bytes written", mib / 2, pool.size()));
  run.Add("write_bandwidth_gb_s", writes, "GB/s",
          fmt::format("{} MiB overwritten through the caches on {} threads", mib, pool.size()));
  const double latency_ns =
      run.Add("memory_latency_ns", idle, "ns", fmt::format("a load of a random cycle through {} MiB, huge pages", mib))
          .value;
  BOLTBEAM_TRY(RefuseCachedLatency(latency_ns));
  if (!loaded.empty()) {
    run.Add("memory_latency_loaded_ns", loaded, "ns",
            fmt::format("the same while {} other thread(s) stream", pool.size() - 1));
  }
  const double bandwidth = run.Add("read_bandwidth_again_gb_s", again, "GB/s",
                                   "the fastest reading kernel once more, after the other probes")
                               .value;
  const std::vector<double> in_flight{roofline::BytesInFlight(bandwidth, latency_ns)};
  run.Add("bytes_in_flight", in_flight, "B", "Little's law: reading bandwidth x idle latency");
  return {};
}

struct RateName {
  const char *fact, *unit, *counts;
  double ops_per_lane;
};
// In the order of RateProbe::Kind.
constexpr std::array<RateName, 3> kRateNames = {
    {{"fma_f32_flop_s", "FLOP/s", "a multiply-add counts as two", 2},
     {"dot_i8_flop_s", "OP/s", "a multiply-add counts as two", 8},
     {"vector_instructions_s", "/s", "instructions, whatever their width", 1}}};

Result<void> MeasureRate(Run& run, runtime::ThreadPool& pool, RateProbe::Kind kind) {
  BOLTBEAM_TRY(run.Advance());
  BOLTBEAM_ASSIGN(RateProbe probe, RateProbe::Create(run.kernels, run.machine, kind));
  std::vector<std::int64_t> iterations;
  std::vector<std::vector<double>> rates(probe.shapes());
  for (std::size_t shape = 0; shape < probe.shapes(); ++shape) {
    iterations.push_back(probe.IterationsFor(shape, std::max(kRateLoopNs, kLeastDispatches * run.dispatch_ns)));
  }
  for (std::uint32_t round = 0; round < kChoosingRounds; ++round) {
    for (std::size_t shape = 0; shape < probe.shapes(); ++shape) {
      rates[shape].push_back(probe.Pass(pool, shape, iterations[shape]));
    }
  }
  const auto best = static_cast<std::size_t>(
      std::ranges::max_element(rates, {}, [](const auto& samples) { return Median(samples); }) - rates.begin());
  std::vector<double> samples;
  for (std::uint32_t i = 0; i < kSamples; ++i) samples.push_back(probe.Pass(pool, best, iterations[best]));
  const RateName& name = kRateNames.at(static_cast<std::size_t>(kind));
  const chip::Fact& fact = run.Add(name.fact, samples, name.unit,
                                   fmt::format("{} in registers, {} threads; {}; fastest of {} generated kernels",
                                               probe.Name(best), pool.size(), name.counts, probe.shapes()));
  const double operations = fact.value;
  const double loop_ns =
      static_cast<double>(iterations[best]) * probe.OperationsPerIteration(best) * pool.size() / operations * 1e9;
  BOLTBEAM_TRY(RefuseShortLoop(fact.name, loop_ns, run.dispatch_ns));
  return RefuseImpossibleRate(fact.name, operations, pool.size(), VectorLanes(run.machine), name.ops_per_lane);
}

}  // namespace

std::vector<std::uint32_t> ThreadCounts(std::uint32_t usable) {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t count = 1; count < usable; count *= 2) counts.push_back(count);
  counts.push_back(usable);
  return counts;
}

Result<void> RefuseAbove(std::string_view what, double rate, std::string_view bound_name, double bound, double band,
                         std::string_view unit) {
  if (rate <= bound * (1 + band)) return {};
  return Fail(Code::kMeasurementImpossible, std::string(what),
              fmt::format("{:.2f} {}, above {} of {:.2f} {} by more than {:.1f} %", rate, unit, bound_name, bound, unit,
                          band * 100),
              "a figure that the machine can reach: data were served from a cache, or the clock is wrong");
}

Result<void> RefuseImpossibleRate(std::string_view what, double ops_per_s, std::uint32_t threads, std::uint16_t lanes,
                                  double ops_per_lane) {
  constexpr double kHighestHz = 7e9, kMostUnits = 4;
  const double most = kHighestHz * kMostUnits * lanes * ops_per_lane * threads;
  if (ops_per_s > 0 && ops_per_s <= most) return {};
  return Fail(
      Code::kMeasurementImpossible, std::string(what), fmt::format("{:.3g} operations per second", ops_per_s),
      fmt::format("at most {:.3g} on {} threads: the loop was optimised away, or the clock is wrong", most, threads));
}

Result<void> RefuseCachedLatency(double latency_ns) {
  constexpr double kLeastNs = 20;  // no memory answers sooner, and every last-level cache does
  if (latency_ns >= kLeastNs) return {};
  return Fail(Code::kMeasurementImpossible, "memory latency", fmt::format("{:.1f} ns", latency_ns),
              fmt::format("at least {} ns: the chain stayed in a cache", kLeastNs));
}

Result<void> RefuseShortLoop(std::string_view what, double loop_ns, double dispatch_ns) {
  if (loop_ns >= kLeastDispatches * dispatch_ns) return {};
  return Fail(Code::kMeasurementImpossible, std::string(what),
              fmt::format("a loop of {:.0f} ns against a dispatch of {:.0f} ns", loop_ns, dispatch_ns),
              fmt::format("a loop of at least {} dispatches", kLeastDispatches));
}

Result<std::vector<chip::Fact>> MeasureChip(const chip::Chip& machine, runtime::KernelCache& kernels,
                                            const std::vector<int>& cpus, const MeasureHooks& hooks) {
  Run run{machine, kernels, cpus, hooks};
  constexpr std::uint32_t kStages = 8;  // costs, cold proof, caches, two of memory, three rates; and every thread count
  run.total = kStages + static_cast<std::uint32_t>(ThreadCounts(static_cast<std::uint32_t>(cpus.size())).size());
  BOLTBEAM_ASSIGN(const auto pool, runtime::ThreadPool::Create(cpus));
  BOLTBEAM_TRY(run.Advance());
  constexpr std::uint32_t kCosts = 400;
  BOLTBEAM_ASSIGN(const std::vector<double> dispatches, DispatchSamples(kernels, *pool, kCosts));
  BOLTBEAM_ASSIGN(const std::vector<double> barriers, BarrierSamples(*pool, kCosts / 4));
  run.dispatch_ns = Median(dispatches);
  constexpr std::uint64_t kCaches = 4, kLeastBytes = std::uint64_t{64} << 20;
  BOLTBEAM_ASSIGN(
      StreamProbe probe,
      StreamProbe::Create(kernels, machine, *pool, std::max(kLeastBytes, kCaches * LastLevelCacheBytes(machine))));
  BOLTBEAM_TRY(MeasureMemory(run, probe, *pool));
  BOLTBEAM_TRY(MeasureMoreMemory(run, probe, *pool));
  BOLTBEAM_TRY(MeasureRate(run, *pool, RateProbe::Kind::kFma));
  BOLTBEAM_TRY(MeasureRate(run, *pool, RateProbe::Kind::kDot));
  BOLTBEAM_TRY(MeasureRate(run, *pool, RateProbe::Kind::kSimple));
  run.Add("dispatch_ns", dispatches, "ns",
          fmt::format("an empty generated kernel on {} threads and back, median of {}", cpus.size(), kCosts));
  run.Add("barrier_ns", barriers, "ns",
          fmt::format("a barrier among {} threads, median of {} means of 100", cpus.size(), kCosts / 4));
  return std::move(run.facts);
}

}  // namespace boltbeam::measure
