// The default product of every weight format, one column: GB/s of the stored weights, and their share of what a probe
// of the memory reads in the same rounds. Cold: copies of the table in turn, together sixteen times the
// last-level cache; hot: one table again and again. Run with nothing else on the machine:
//   gemv_bench --benchmark_filter='cold/2/' --benchmark_counters_tabular=true
// --without=PREFIX runs as on a chip that lacks the instruction sets whose names begin so: avx512, avx_vnni.
// --geometry=KNOB=VALUE,... turns knobs of the default geometry: unroll=2,vectors=2,prefetch=4096.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "chip/facts.h"
#include "codegen/codegen.h"
#include "formats/format.h"
#include "kernel/families/gemv.h"
#include "kernel/geometry.h"
#include "kernel/knobs.h"
#include "kernel/space.h"
#include "measure/clock.h"
#include "measure/probes.h"
#include "measure/statistics.h"
#include "runtime/code.h"
#include "runtime/memory.h"
#include "runtime/thread_pool.h"

namespace boltbeam {
namespace {

constexpr int kRounds = 45;  // of some 16 ms: the memory's rate drifts
constexpr std::uint64_t kLargestTable = std::uint64_t{4096} * 14336 * 4;

struct Shape {
  std::uint64_t rows, cols;
};
constexpr Shape kShapes[] = {{4096, 4096}, {4096, 14336}};

struct Options {
  std::vector<std::string> without;
  std::string geometry;  // knobs that differ from the default geometry's
};

/// The value of --name=value.
bool Take(std::string_view argument, std::string_view name, std::string& value) {
  if (!argument.starts_with(name)) return false;
  value = argument.substr(name.size());
  return true;
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string value;
    if (Take(argv[i], "--without=", value)) options.without.push_back(value);
    if (Take(argv[i], "--geometry=", value)) options.geometry = value;
  }
  return options;
}

/// Threads of one count, and the shapes of the probe that are fastest with them.
struct Team {
  std::unique_ptr<runtime::ThreadPool> pool;
  std::unique_ptr<measure::StreamProbe> probe;
  std::vector<std::size_t> fastest;
};

class Machine {
 public:
  static Result<std::unique_ptr<Machine>> Create(const Options& options) {
    BOLTBEAM_ASSIGN(chip::Chip chip, chip::DetectThisMachine());
    for (const std::string& prefix : options.without) {
      std::erase_if(chip.features, [&](const std::string& feature) { return feature.starts_with(prefix); });
    }
    auto machine = std::unique_ptr<Machine>(new Machine(std::move(chip), options));
    BOLTBEAM_ASSIGN(machine->clock_, measure::GetClock());
    const std::uint64_t cold = machine->ColdBytes();
    BOLTBEAM_ASSIGN(machine->weights_, runtime::HugeBuffer::Allocate(cold + kLargestTable));
    BOLTBEAM_ASSIGN(machine->input_, runtime::HugeBuffer::Allocate(1 << 20));
    BOLTBEAM_ASSIGN(machine->output_, runtime::HugeBuffer::Allocate(1 << 20));
    std::memset(machine->input_.data(), 0x3F, machine->input_.bytes());  // codes of 63, scales of 0.75
    // Random, and no infinity or NaN in any encoding of a scale, nor so small that sums are subnormal.
    std::uint64_t state = 1;
    for (std::uint64_t at = 0; at < machine->weights_.bytes(); at += 8) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      const std::uint64_t word = (state & 0x1F1F1F1F1F1F1F1FU) | 0x2020202020202020U;
      std::memcpy(machine->weights_.data() + at, &word, 8);
    }
    return machine;
  }

  [[nodiscard]] std::uint64_t ColdBytes() const { return measure::ColdBytes(chip_); }

  Result<Team*> TeamOf(std::uint32_t threads) {
    Team& team = teams_[threads];
    if (team.pool) return &team;
    std::vector<int> cpus(threads);
    std::iota(cpus.begin(), cpus.end(), 0);
    BOLTBEAM_ASSIGN(team.pool, runtime::ThreadPool::Create(cpus));
    BOLTBEAM_ASSIGN(measure::StreamProbe probe, measure::StreamProbe::Create(kernels_, chip_, *team.pool, ColdBytes()));
    team.probe = std::make_unique<measure::StreamProbe>(std::move(probe));
    team.fastest = team.probe->FastestShapes(*team.pool, 5);
    team.fastest.resize(std::min<std::size_t>(2, team.fastest.size()));
    return &team;
  }

  void Run(benchmark::State& state, const formats::Format& format, Shape shape, std::uint32_t threads, bool is_cold) {
    const kernel::VectorFacts facts = kernel::VectorFactsOf(chip_);
    const auto turned = kernel::ParseGeometry(options_.geometry, kernel::DefaultGeometry(format, facts, false));
    if (!turned) return state.SkipWithError(turned.error().Message().c_str());
    const kernel::GemvGeometry& geometry = *turned;
    const kernel::GemvShape product{.rows = shape.rows, .cols = shape.cols};
    const std::vector<kernel::Reason> refusals =
        kernel::Refusals(geometry, format, product, kernel::SpaceFactsOf(facts));
    if (!refusals.empty()) return state.SkipWithError(refusals.front().evidence.c_str());
    const auto layout = kernel::LayoutFor(format, geometry);
    if (!layout) return state.SkipWithError(layout.error().Message().c_str());
    const auto program = kernel::BuildGemv(*layout, geometry, product);
    if (!program) return state.SkipWithError(program.error().Message().c_str());
    const auto function = kernels_.Get(*program);
    const Result<Team*> team = TeamOf(threads);
    if (!function || !team) return state.SkipWithError("no kernel or no threads");
    runtime::ThreadPool& pool = *(*team)->pool;
    const std::uint64_t table = layout->TableBytes(shape.rows, shape.cols);
    const std::uint64_t copies = std::max<std::uint64_t>(1, CeilDiv<std::uint64_t>(ColdBytes(), table));
    const auto groups = static_cast<std::int64_t>((shape.rows + layout->lanes - 1) / layout->lanes);
    const auto pass = [&] {
      const std::uint64_t begin = base::Ticks();
      pool.Run([&](std::uint32_t thread) {
        const runtime::Range share = runtime::Share(groups, thread, threads);
        for (std::uint64_t copy = 0; copy < copies; ++copy) {
          void* buffers[] = {weights_.data() + (is_cold ? copy * table : 0), input_.data(), output_.data()};
          (*function)(buffers, share.begin, share.end);
        }
      });
      return clock_.ToNs(base::Ticks() - begin);
    };
    std::vector<double> rates;
    std::vector<std::vector<double>> probed((*team)->fastest.size());
    pass();
    for (auto _ : state) {
      const double ns = pass();
      state.SetIterationTime(ns * 1e-9 / static_cast<double>(copies));
      rates.push_back(static_cast<double>(copies * table) / ns);
      for (std::size_t i = 0; i < probed.size(); ++i) {
        const std::uint64_t bytes = is_cold ? 0 : table;
        probed[i].push_back((*team)->probe->Pass(pool, (*team)->fastest[i], bytes, is_cold ? 1 : copies));
      }
    }
    std::vector<double> limits, shares;
    for (std::size_t round = 0; round < rates.size(); ++round) {
      double limit = 0;
      for (const std::vector<double>& samples : probed) limit = std::max(limit, samples[round]);
      limits.push_back(limit);
      shares.push_back(rates[round] / limit);
    }
    const double bits = 8.0 * static_cast<double>(table) / static_cast<double>(shape.rows * shape.cols);
    const double share = measure::Median(shares);
    state.counters["GB_s"] = measure::Median(rates);
    state.counters["probe_GB_s"] = measure::Median(limits);
    state.counters["share_%"] = 100 * share;  // of the bytes as they are stored; and of those of the file:
    state.counters["file_share_%"] = 100 * share * format.BitsPerWeight() / bits;
    state.counters["bits"] = bits;
  }

 private:
  Machine(chip::Chip chip, Options options)
      : options_(std::move(options)), chip_(std::move(chip)), kernels_(codegen::TargetFor(chip_), "") {}

  Options options_;
  chip::Chip chip_;
  runtime::KernelCache kernels_;
  measure::Clock clock_;
  runtime::HugeBuffer weights_, input_, output_;
  std::map<std::uint32_t, Team> teams_;
};

void Register(Machine& machine) {
  for (const formats::Format& format : formats::AllFormats()) {
    if (!format.IsKnown()) continue;
    for (const Shape shape : kShapes) {
      for (const char* heat : {"cold", "hot"}) {
        for (const std::uint32_t threads : {1U, 2U}) {
          const bool is_cold = heat[0] == 'c';
          const std::string name = fmt::format("{}/{}x{}/{}/{}", format.name, shape.rows, shape.cols, heat, threads);
          benchmark::RegisterBenchmark(name.c_str(),
                                       [&machine, &format, shape, threads, is_cold](benchmark::State& state) {
                                         machine.Run(state, format, shape, threads, is_cold);
                                       })
              ->Iterations(kRounds)
              ->UseManualTime()
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
}

}  // namespace
}  // namespace boltbeam

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  auto machine = boltbeam::Machine::Create(boltbeam::Parse(argc, argv));
  if (!machine) {
    std::fprintf(stderr, "gemv_bench: %s\n", machine.error().Message().c_str());
    return 1;
  }
  boltbeam::Register(**machine);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
