#include "measure/chip_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "chip/instruction_sets.h"
#include "codegen/codegen.h"
#include "kernel/geometry.h"
#include "measure/environment.h"
#include "measure/memory_probes.h"
#include "measure/probes.h"
#include "measure/rate_sweep.h"
#include "measure/statistics.h"
#include "roofline/in_flight.h"

namespace boltbeam::measure {
namespace {

constexpr std::uint32_t kChoosingRounds = 7;
constexpr std::uint32_t kSamples = 31;                          // fresh ones, after the choice
constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 20;  // of a probe of the memory
constexpr double kLeastBand = 0.05;
constexpr double kBandSpreads = 3;
constexpr double kRateLoopNs = 3e6;
constexpr std::uint64_t kPhaseBytes = std::uint64_t{1} << 20;  // of a thread: about a product of a small model
constexpr std::uint32_t kWaits = 9;

/// One pool for every number of threads that is measured, ascending.
struct Grid {
  std::vector<std::uint32_t> threads;
  std::vector<std::unique_ptr<runtime::ThreadPool>> pools;
};

Result<Grid> GridOf(const std::vector<int>& cpus) {
  Grid grid;
  grid.threads = ThreadCounts(static_cast<std::uint32_t>(cpus.size()));
  for (const std::uint32_t threads : grid.threads) {
    BOLTBEAM_ASSIGN(auto pool, runtime::ThreadPool::Create({cpus.begin(), cpus.begin() + threads}));
    grid.pools.push_back(std::move(pool));
  }
  return grid;
}

struct Run {
  const chip::Chip& machine;
  runtime::KernelCache& kernels;
  const std::vector<int>& cpus;
  const MeasureHooks& hooks;
  std::string date = UtcNow();
  std::vector<chip::Fact> facts = {};
  std::uint32_t done = 0, total = 0;
  double dispatch_ns = 0;
  Grid grid = {};
  std::vector<std::size_t> stream_shapes = {};  // [grid]: the best of the streaming read
  std::vector<double> stream_rates = {};        // [grid]: what it read

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
  if (bytes == 0) run.stream_shapes.push_back(shape);
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
    pool.Run([&](std::uint32_t thread) { probe.ReadGrains(thread, pool.size()); });
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
  for (std::size_t i = 0; i < run.grid.threads.size(); ++i) {
    BOLTBEAM_TRY(run.Advance());
    BOLTBEAM_ASSIGN(
        const chip::Fact fact,
        MeasureStream(run, probe, *run.grid.pools[i],
                      fmt::format("read_bandwidth_gb_s.threads_{}", run.grid.threads[i]), 0, 1, "streaming read"));
    run.stream_rates.push_back(fact.value);
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
  const std::uint64_t bytes = std::min(stream.bytes(), std::max(kLeastBytes, 4 * LastLevelCacheBytes(run.machine)));
  BOLTBEAM_ASSIGN(MemoryProbe probe, MemoryProbe::Create(run.kernels, run.machine, pool, bytes));
  std::vector<double> copies, writes, idle, loaded;
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
  }
  const std::uint64_t mib = bytes >> 20;
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
  return {};
}

/// What the rate that limits divide by and the latencies ask for.
void AddInFlight(Run& run) {
  const auto value = [&](std::string_view name) {
    const auto fact = std::ranges::find(run.facts, name, &chip::Fact::name);
    return fact == run.facts.end() ? std::nullopt : std::optional(fact->value);
  };
  const roofline::InFlight in_flight = roofline::InFlightAt(
      value("read_bandwidth_gb_s").value_or(0), {value("memory_latency_ns"), value("memory_latency_loaded_ns")});
  const auto add = [&](const char* name, std::optional<double> bytes, const char* method) {
    if (!bytes) return;
    run.Add(name, std::vector{*bytes}, "B", method);
    run.facts.back().provenance = chip::Provenance::kDerived;
  };
  add("bytes_in_flight", in_flight.bytes, "Little's law: read_bandwidth_gb_s x memory_latency_ns (idle)");
  add("bytes_in_flight_loaded", in_flight.bytes_loaded, "Little's law: read_bandwidth_gb_s x memory_latency_loaded_ns");
}

/// Every number of threads reads once more, each with its best kernel, after all else was measured: what a drift in
/// between looks like.
Result<void> MeasureReadAgain(Run& run, StreamProbe& stream) {
  BOLTBEAM_TRY(run.Advance());
  constexpr std::uint32_t kPasses = 11;
  std::vector<std::vector<double>> again(run.grid.threads.size());
  for (std::uint32_t pass = 0; pass < kPasses; ++pass) {
    BOLTBEAM_TRY(run.Check());
    for (std::size_t i = 0; i < again.size(); ++i)
      again[i].push_back(stream.Pass(*run.grid.pools[i], run.stream_shapes[i]));
  }
  double drift = 0, best = 0;
  for (std::size_t i = 0; i < again.size(); ++i) {
    const double rate = run.Add(fmt::format("read_bandwidth_again_gb_s.threads_{}", run.grid.threads[i]), again[i],
                                "GB/s", "its fastest reading kernel once more, after all other probes")
                            .value;
    drift = std::max(drift, std::abs(rate / run.stream_rates[i] - 1));
    best = std::max(best, rate);
  }
  AddInFlight(run);
  run.Add("read_bandwidth_again_gb_s", std::vector{best}, "GB/s", "the fastest of the second sweep over threads");
  run.Add("read_bandwidth_drift", std::vector{drift}, "", "the second sweep over threads against the first, relative");
  return {};
}

struct RateName {
  const char *fact, *unit, *counts;
  double ops_per_lane;
};
// In the order of RateProbe::Kind.
constexpr std::array<RateName, 6> kRateNames = {
    {{"fma_f32_flop_s", "FLOP/s", "a multiply-add counts as two", 2},
     {"dot_i8_flop_s", "OP/s", "a multiply-add counts as two", 8},
     {"vector_instructions_s", "/s", "instructions, whatever their width", 1},
     {"madd_i8_flop_s", "OP/s", "a multiply-add counts as two", 8},
     {"madd_i16_flop_s", "OP/s", "a multiply-add counts as two", 4},
     {"dot_s8_flop_s", "OP/s", "a multiply-add counts as two", 8}}};

const RateName& NameOf(RateProbe::Kind kind) { return kRateNames.at(static_cast<std::size_t>(kind)); }

std::vector<std::int64_t> IterationsOf(const Run& run, const RateProbe& probe) {
  std::vector<std::int64_t> iterations;
  for (std::size_t shape = 0; shape < probe.shapes(); ++shape) {
    iterations.push_back(probe.IterationsFor(shape, std::max(kRateLoopNs, kLeastDispatches * run.dispatch_ns)));
  }
  return iterations;
}

Result<void> MeasureRate(Run& run, RateProbe::Kind kind) {
  BOLTBEAM_TRY(run.Advance());
  BOLTBEAM_ASSIGN(RateProbe probe, RateProbe::Create(run.kernels, run.machine, kind));
  const std::vector<std::int64_t> iterations = IterationsOf(run, probe);
  std::vector<std::uint32_t> accumulators;
  for (std::size_t shape = 0; shape < probe.shapes(); ++shape) accumulators.push_back(probe.Accumulators(shape));
  const RateSweep sweep = SweepRates(run.grid.threads.size(), probe.shapes(), [&](std::size_t grid, std::size_t shape) {
    return probe.Pass(*run.grid.pools[grid], shape, iterations[shape]);
  });
  const RateName& name = NameOf(kind);
  const std::string method = fmt::format("{} in registers; {}; {}", probe.Name(sweep.shape), name.counts,
                                         SweepText(sweep, run.grid.threads, accumulators));
  const chip::Fact fact = run.Add(name.fact, sweep.again[sweep.grid], name.unit, method);
  for (std::size_t i = 0; i < run.grid.threads.size(); ++i) {
    run.Add(fmt::format("{}.threads_{}", name.fact, run.grid.threads[i]), sweep.again[i], name.unit,
            "of the second sweep over threads");
  }
  run.Add(fmt::format("{}.drift", name.fact), std::vector{sweep.Drift()}, "",
          "the second sweep over threads against the first, relative");
  const std::uint32_t threads = run.grid.threads[sweep.grid];
  const double loop_ns = static_cast<double>(iterations[sweep.shape]) * probe.OperationsPerIteration(sweep.shape) *
                         threads / fact.value * 1e9;
  BOLTBEAM_TRY(RefuseShortLoop(fact.name, loop_ns, run.dispatch_ns));
  return RefuseImpossibleRate(fact.name, fact.value, threads, VectorLanes(run.machine), name.ops_per_lane);
}

/// The same with the narrower vectors of lesser instruction sets, as code that is held to them is compiled (--isa): on
/// all threads, the fastest number of accumulators.
Result<void> MeasureNarrowRates(Run& run) {
  runtime::ThreadPool& pool = *run.grid.pools.back();
  for (const std::string_view set : chip::InstructionSetsOf(run.machine)) {
    chip::Chip held = run.machine;
    BOLTBEAM_TRY(chip::HoldTo(held, set));
    const std::uint16_t lanes = VectorLanes(held);
    if (lanes == VectorLanes(run.machine)) continue;
    BOLTBEAM_TRY(run.Advance());
    runtime::KernelCache kernels(codegen::TargetFor(held), "");
    for (const RateProbe::Kind kind :
         {RateProbe::Kind::kFma, RateProbe::Kind::kSimple, RateProbe::Kind::kMaddBytes, RateProbe::Kind::kMaddHalves}) {
      BOLTBEAM_TRY(run.Check());
      BOLTBEAM_ASSIGN(RateProbe probe, RateProbe::Create(kernels, held, kind));
      const std::vector<std::int64_t> iterations = IterationsOf(run, probe);
      const auto pass = [&](std::size_t, std::size_t shape) { return probe.Pass(pool, shape, iterations[shape]); };
      const RateSweep sweep = SweepRates(1, probe.shapes(), pass, {.rounds = 5, .samples = 11});
      const RateName& name = NameOf(kind);
      const chip::Fact& fact = run.Add(fmt::format("{}.bits_{}", name.fact, lanes * 32), sweep.again.front(), name.unit,
                                       fmt::format("{} in registers, code held to {}, {} threads; drift {:.1f} %",
                                                   probe.Name(sweep.shape), set, pool.size(), sweep.Drift() * 100));
      BOLTBEAM_TRY(RefuseImpossibleRate(fact.name, fact.value, pool.size(), lanes, name.ops_per_lane));
    }
  }
  return {};
}

std::uint32_t NarrowSets(const chip::Chip& machine) {
  std::uint32_t count = 0;
  for (const std::string_view set : chip::InstructionSetsOf(machine)) {
    chip::Chip held = machine;
    if (chip::HoldTo(held, set) && VectorLanes(held) != VectorLanes(machine)) ++count;
  }
  return count;
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
  std::vector<RateProbe::Kind> kinds = {RateProbe::Kind::kFma, RateProbe::Kind::kDot, RateProbe::Kind::kSimple,
                                        RateProbe::Kind::kMaddBytes, RateProbe::Kind::kMaddHalves};
  if (kernel::VectorFactsOf(machine).has_dot4_signed) kinds.push_back(RateProbe::Kind::kSignedDot);
  // Costs, cold proof, caches, two of memory, reading again; every rate, instruction set and number of threads.
  constexpr std::uint32_t kStages = 6;
  BOLTBEAM_ASSIGN(run.grid, GridOf(cpus));
  runtime::ThreadPool* const pool = run.grid.pools.back().get();
  run.total = kStages + static_cast<std::uint32_t>(kinds.size() + run.grid.threads.size()) + NarrowSets(machine);
  BOLTBEAM_TRY(run.Advance());
  constexpr std::uint32_t kCosts = 400;
  BOLTBEAM_ASSIGN(const std::vector<double> dispatches, DispatchSamples(kernels, *pool, kCosts));
  BOLTBEAM_ASSIGN(const std::vector<double> barriers, BarrierSamples(*pool, kCosts / 4));
  run.dispatch_ns = Median(dispatches);
  BOLTBEAM_ASSIGN(StreamProbe probe,
                  StreamProbe::Create(kernels, machine, *pool, std::max(kLeastBytes, ColdBytes(machine))));
  BOLTBEAM_TRY(MeasureMemory(run, probe, *pool));
  BOLTBEAM_TRY(MeasureMoreMemory(run, probe, *pool));
  for (const RateProbe::Kind kind : kinds) BOLTBEAM_TRY(MeasureRate(run, kind));
  BOLTBEAM_TRY(MeasureNarrowRates(run));
  BOLTBEAM_TRY(MeasureReadAgain(run, probe));
  run.Add("dispatch_ns", dispatches, "ns",
          fmt::format("an empty generated kernel on {} threads and back, median of {}", cpus.size(), kCosts));
  run.Add("barrier_ns", barriers, "ns",
          fmt::format("a barrier among {} threads, median of {} means of 100", cpus.size(), kCosts / 4));
  if (cpus.size() > 1) {
    BOLTBEAM_TRY(run.Check());
    run.Add(
        "barrier_wait_ns", probe.ArrivalSpreads(*pool, run.stream_shapes.back(), kPhaseBytes, kWaits), "ns",
        fmt::format("from the first of {} threads to the last at a barrier after {} KiB that each streams, median of "
                    "{} means of 100",
                    cpus.size(), kPhaseBytes >> 10, kWaits));
  }
  return std::move(run.facts);
}

}  // namespace boltbeam::measure
