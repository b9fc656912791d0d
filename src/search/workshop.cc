#include "search/workshop.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kernel/families/gemv.h"

namespace boltbeam::search {
namespace {

constexpr std::uint64_t kWindowBytes = std::uint64_t{64} << 20;  // some 1.5 ms of memory
constexpr std::uint32_t kProbeRounds = 3;
constexpr std::uint64_t kRateReadings = 9;

struct Built {
  Result<kernel::Program> program = kernel::Program{};
  kernel::WeightLayout layout;
};

Built Build(const Part& part, const kernel::GemvGeometry& geometry) {
  const auto layout = kernel::LayoutFor(*part.format, geometry);
  if (!layout) return {std::unexpected(layout.error()), {}};
  return {kernel::BuildGemv(*layout, geometry, part.shape()), *layout};
}

}  // namespace

Result<std::vector<Made>> MakeContenders(const Part& part, const std::vector<kernel::GemvGeometry>& points,
                                         ProductGate& gate, runtime::KernelCache& kernels, unsigned threads,
                                         const std::vector<Contender>& known) {
  std::vector<Built> built;
  std::vector<const kernel::Program*> programs;
  for (const kernel::GemvGeometry& point : points) built.push_back(Build(part, point));
  for (const Built& one : built) {
    if (one.program) programs.push_back(&*one.program);
  }
  // One that can't be compiled fails by itself below.
  static_cast<void>(kernels.Prepare(programs, threads));
  std::map<std::string, std::string> names;  // by machine code
  for (const Contender& contender : known) names.emplace(contender.code, contender.name);
  std::vector<Made> made;
  for (std::size_t i = 0; i < points.size(); ++i) {
    Made& one = made.emplace_back();
    one.contender.geometry = points[i];
    one.contender.name = CandidateName(points[i]);
    const auto function = built[i].program ? kernels.Get(*built[i].program) : std::unexpected(built[i].program.error());
    if (!function) {
      one.state = Made::State::kFailed;
      one.why = function.error().Message();
      continue;
    }
    BOLTBEAM_ASSIGN(one.contender.code, kernels.CodeHash(*built[i].program));
    const std::uint64_t rows = built[i].layout.lanes;
    one.contender.product = {*function, built[i].layout.GroupBytes(part.cols),
                             static_cast<std::int64_t>((part.rows + rows - 1) / rows)};
    // Equal code on another layout of the same size would be another candidate, but layouts differ in their strides.
    const auto [twin, is_new] = names.emplace(one.contender.code, one.contender.name);
    if (!is_new && twin->second == one.contender.name) continue;  // known, and correct
    if (!is_new) {
      one.state = Made::State::kDuplicate;
      one.why = twin->second;
      continue;
    }
    BOLTBEAM_ASSIGN(const GateFinding finding, gate.Check(points[i]));
    if (finding.ok) continue;
    one.state = Made::State::kWrong;
    one.why = fmt::format("its result is wrong by {:.1e} of its terms in row {}", finding.error, finding.worst_row);
  }
  return made;
}

Result<std::unique_ptr<TimingBench>> TimingBench::Create(const chip::Chip& machine, runtime::KernelCache& kernels,
                                                         std::uint32_t threads, std::uint64_t most_rows,
                                                         std::uint64_t most_cols) {
  auto bench = std::unique_ptr<TimingBench>(new TimingBench());
  std::vector<int> cpus = chip::UsableCpus();
  cpus.resize(std::min<std::size_t>(cpus.size(), threads));
  BOLTBEAM_ASSIGN(bench->pool_, runtime::ThreadPool::Create(cpus));
  BOLTBEAM_ASSIGN(measure::ColdProducts products, measure::ColdProducts::Create(machine, most_rows, most_cols));
  bench->products_ = std::make_unique<measure::ColdProducts>(std::move(products));
  BOLTBEAM_ASSIGN(measure::StreamProbe probe,
                  measure::StreamProbe::Create(kernels, machine, *bench->pool_, bench->cold_bytes()));
  bench->probe_ = std::make_unique<measure::StreamProbe>(std::move(probe));
  bench->fastest_ = bench->probe_->FastestShapes(*bench->pool_, kProbeRounds).front();
  return bench;
}

double TimingBench::Window(const Contender& contender) {
  ++windows_;
  return products_->Time(*pool_, contender.product, kWindowBytes);
}

double TimingBench::CachedWindow(const Contender& contender) {
  ++windows_;
  return products_->TimeCached(contender.product, kWindowBytes / 2);
}

Result<double> TimingBench::InstructionRate(const chip::Chip& machine, runtime::KernelCache& kernels) {
  constexpr double kPassNs = 2e6;
  BOLTBEAM_ASSIGN(measure::RateProbe probe,
                  measure::RateProbe::Create(kernels, machine, measure::RateProbe::Kind::kSimple));
  double best = 0;
  for (std::uint32_t round = 0; round < kProbeRounds; ++round) {
    for (std::size_t shape = 0; shape < probe.shapes(); ++shape) {
      best = std::max(best, probe.Pass(*pool_, shape, probe.IterationsFor(shape, kPassNs)));
    }
  }
  return best;
}

double TimingBench::ColdReadRate() {
  std::vector<double> rates;
  for (std::uint64_t i = 0; i < kRateReadings; ++i) {
    Refresh(i);
    rates.push_back(ReadRate());
  }
  return measure::Median(rates);
}

double TimingBench::ReadRate() { return probe_->Pass(*pool_, fastest_); }

}  // namespace boltbeam::search
