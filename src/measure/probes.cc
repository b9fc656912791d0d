#include "measure/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/checked.h"
#include "measure/statistics.h"

namespace boltbeam::measure {
namespace {

constexpr std::uint64_t kLine = 64;
// Every shape's step divides this, and so does every thread's share.
constexpr std::uint64_t kGrain = 4096;
constexpr std::uint64_t kPieceBytes = std::uint64_t{128} << 20;
constexpr std::uint64_t kPieceBytesOfThread = std::uint64_t{16} << 20;  // so that waking the threads is little of it

// Marsaglia's xorshift: no memory controller can compress its words.
void FillIncompressible(std::byte* data, std::uint64_t bytes, std::uint64_t seed) {
  std::uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
  for (std::uint64_t at = 0; at + sizeof state <= bytes; at += sizeof state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(data + at, &state, sizeof state);
  }
}

// Which of these is the fastest differs between machines, and by a tenth: the roof is the maximum over all.
std::vector<StreamShape> ShapesFor(std::uint16_t widest) {
  constexpr std::uint32_t kNear = 4096, kFar = 8192;
  std::vector<StreamShape> shapes;
  for (const std::uint16_t lanes : {std::uint16_t{16}, std::uint16_t{8}, std::uint16_t{4}}) {
    if (lanes > widest) continue;
    shapes.insert(shapes.end(), {{lanes, 4, 4, 0}, {lanes, 16, 8, 0}, {lanes, 8, 4, kNear}});
    if (lanes == 8) shapes.insert(shapes.end(), {{lanes, 8, 4, 0}, {lanes, 32, 8, 0}, {lanes, 8, 4, kFar}});
  }
  return shapes;
}

struct RateKind {
  const char* name;
  kernel::Program (*program)(std::uint16_t lanes, std::uint32_t accumulators);
  double per_lane;  // operations of a work item in a lane of an accumulator; 0: instructions are counted
};

// In the order of RateProbe::Kind.
constexpr std::array<RateKind, 6> kRateKinds = {{{"f32 FMA", FmaProgram, 2},
                                                 {"int8 dot", DotProgram, 8},
                                                 {"addition", SimpleProgram, 0},
                                                 {"int8 products in pairs", MaddBytesProgram, 8},
                                                 {"int16 products", MaddHalvesProgram, 4},
                                                 {"signed int8 dot", SignedDotProgram, 8}}};

const RateKind& Of(RateProbe::Kind kind) { return kRateKinds.at(static_cast<std::size_t>(kind)); }

}  // namespace

std::uint16_t VectorLanes(const chip::Chip& machine) {
  if (machine.Has("avx512f")) return 16;
  if (machine.Has("avx2")) return 8;
  return 4;
}

std::uint64_t LastLevelCacheBytes(const chip::Chip& machine) {
  for (const char* name : {"l3_bytes", "l2_bytes"}) {
    if (const auto bytes = machine.Get(name); bytes && *bytes > 0) return static_cast<std::uint64_t>(*bytes);
  }
  return std::uint64_t{32} << 20;
}

std::uint64_t ColdBytes(const chip::Chip& machine) {
  const std::uint64_t cache = LastLevelCacheBytes(machine);
  const auto caches = static_cast<std::uint64_t>(std::max(1.0, machine.Get("l3_count").value_or(1)));
  double memory = machine.Get("memory_bytes").value_or(static_cast<double>(16 * cache * caches * 8));
  if (const auto limit = machine.Get("memory_limit_bytes")) memory = std::min(memory, *limit);
  return std::max(4 * cache, std::min(16 * cache * caches, AlignUp(static_cast<std::uint64_t>(memory / 8), kGrain)));
}

Result<StreamProbe> StreamProbe::Create(runtime::KernelCache& kernels, const chip::Chip& machine,
                                        runtime::ThreadPool& pool, std::uint64_t bytes) {
  StreamProbe probe;
  BOLTBEAM_ASSIGN(probe.clock_, GetClock());
  probe.shapes_ = ShapesFor(VectorLanes(machine));
  for (const StreamShape& shape : probe.shapes_) {
    BOLTBEAM_ASSIGN(const runtime::KernelFunction function, kernels.Get(StreamProgram(shape)));
    probe.functions_.push_back(function);
  }
  BOLTBEAM_ASSIGN(probe.buffer_, runtime::HugeBuffer::Allocate(AlignUp(bytes, kGrain * pool.size())));
  BOLTBEAM_ASSIGN(probe.out_, runtime::HugeBuffer::Allocate(kGrain * pool.size()));
  const auto grains = static_cast<std::int64_t>(probe.buffer_.bytes() / kGrain);
  pool.Run([&](std::uint32_t thread) {
    const runtime::Range share = runtime::Share(grains, thread, pool.size());
    FillIncompressible(probe.buffer_.data() + static_cast<std::uint64_t>(share.begin) * kGrain,
                       static_cast<std::uint64_t>(share.end - share.begin) * kGrain, thread + 1);
  });
  return probe;
}

void StreamProbe::ReadGrains(std::uint32_t thread, std::uint32_t threads) {
  const auto steps = static_cast<std::int64_t>(buffer_.bytes() / shapes_.front().StepBytes());
  const runtime::Range share = runtime::Share(steps, thread, threads);
  void* const buffers[] = {buffer_.data(), out_.data() + kGrain * thread};
  functions_.front()(buffers, share.begin, share.end);
}

double StreamProbe::Pass(runtime::ThreadPool& pool, std::size_t shape, std::uint64_t bytes, std::uint32_t repeats) {
  const std::uint64_t length = bytes == 0 ? buffer_.bytes() : std::min(AlignUp(bytes, kGrain), buffer_.bytes());
  const std::uint64_t most = std::max(kPieceBytes, kPieceBytesOfThread * pool.size());
  const auto pieces = static_cast<std::uint32_t>(bytes == 0 ? CeilDiv(length, most) : 1);
  const std::uint32_t piece = bytes == 0 ? piece_++ % pieces : 0;
  const auto grains = static_cast<std::int64_t>(length / kGrain);
  const auto steps_per_grain = static_cast<std::int64_t>(kGrain / shapes_[shape].StepBytes());
  const runtime::KernelFunction function = functions_[shape];
  // A thread stays in what it filled: memory of its own node.
  const auto range_of = [&](std::uint32_t thread) {
    const runtime::Range share = runtime::Share(grains, thread, pool.size());
    const runtime::Range own = runtime::Share(share.end - share.begin, piece, pieces);
    return runtime::Range{share.begin + own.begin, share.begin + own.end};
  };
  std::int64_t read = 0;
  for (std::uint32_t thread = 0; thread < pool.size(); ++thread) read += range_of(thread).end - range_of(thread).begin;
  const std::uint64_t begin = base::Ticks();
  pool.Run([&](std::uint32_t thread) {
    const runtime::Range range = range_of(thread);
    void* const buffers[] = {buffer_.data(), out_.data() + kGrain * thread};
    for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
      function(buffers, range.begin * steps_per_grain, range.end * steps_per_grain);
    }
  });
  const double ns = clock_.ToNs(base::Ticks() - begin);
  return static_cast<double>(read) * kGrain * repeats / ns;
}

std::vector<double> StreamProbe::ArrivalSpreads(runtime::ThreadPool& pool, std::size_t shape, std::uint64_t bytes,
                                                std::uint32_t samples) {
  constexpr std::size_t kBarriers = 100;
  const auto steps_per_grain = static_cast<std::int64_t>(kGrain / shapes_[shape].StepBytes());
  const auto grains = static_cast<std::int64_t>(bytes / kGrain);
  const auto all = static_cast<std::int64_t>(buffer_.bytes() / kGrain);
  std::vector<double> spreads;
  for (std::uint32_t sample = 0; sample < samples; ++sample) {
    std::vector<std::vector<std::uint64_t>> arrivals(pool.size(), std::vector<std::uint64_t>(kBarriers));
    pool.Run([&](std::uint32_t thread) {
      const runtime::Range share = runtime::Share(all, thread, pool.size());
      const std::int64_t pieces = std::max<std::int64_t>(1, (share.end - share.begin) / grains);
      void* const buffers[] = {buffer_.data(), out_.data() + kGrain * thread};
      pool.Sync();
      for (std::size_t barrier = 0; barrier < kBarriers; ++barrier) {
        const auto piece = static_cast<std::int64_t>(sample * kBarriers + barrier) % pieces;
        const std::int64_t begin = share.begin + piece * grains;
        functions_[shape](buffers, begin * steps_per_grain, std::min(begin + grains, share.end) * steps_per_grain);
        arrivals[thread][barrier] = base::Ticks();
        pool.Sync();
      }
    });
    double sum = 0;
    for (std::size_t barrier = 0; barrier < kBarriers; ++barrier) {
      std::uint64_t first = arrivals[0][barrier], last = first;
      for (const auto& own : arrivals) {
        first = std::min(first, own[barrier]);
        last = std::max(last, own[barrier]);
      }
      sum += clock_.ToNs(last - first);
    }
    spreads.push_back(sum / kBarriers);
  }
  return spreads;
}

std::vector<std::size_t> StreamProbe::FastestShapes(runtime::ThreadPool& pool, std::uint32_t rounds,
                                                    std::uint64_t bytes, std::uint32_t repeats) {
  std::vector<std::vector<double>> rates(shapes_.size());
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      // Every other round backwards, so that a drift treats all alike.
      const std::size_t shape = round % 2 == 0 ? i : shapes_.size() - 1 - i;
      rates[shape].push_back(Pass(pool, shape, bytes, repeats));
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& samples : rates) medians.push_back(Median(samples));
  std::vector<std::size_t> order(shapes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return medians[a] > medians[b]; });
  return order;
}

Result<RateProbe> RateProbe::Create(runtime::KernelCache& kernels, const chip::Chip& machine, Kind kind,
                                    std::uint16_t lanes) {
  RateProbe probe;
  BOLTBEAM_ASSIGN(probe.clock_, GetClock());
  probe.kind_ = kind;
  probe.lanes_ = lanes == 0 ? VectorLanes(machine) : lanes;
  constexpr std::array<std::uint32_t, 4> kAccumulators = {8, 10, 12, 16};
  for (const std::uint32_t accumulators : kAccumulators) {
    BOLTBEAM_ASSIGN(const runtime::KernelFunction function, kernels.Get(Of(kind).program(probe.lanes_, accumulators)));
    probe.accumulators_.push_back(accumulators);
    probe.functions_.push_back(function);
  }
  BOLTBEAM_ASSIGN(probe.in_, runtime::HugeBuffer::Allocate(kGrain));
  BOLTBEAM_ASSIGN(probe.out_, runtime::HugeBuffer::Allocate(kGrain * 1024));
  if (kind == Kind::kFma) {
    // A factor just below one and a small addend: the sums stay normal numbers however long the loop is.
    std::vector<float> values(probe.lanes_, 0.999F);
    values.resize(std::size_t{2} * probe.lanes_, 0.001F);
    std::memcpy(probe.in_.data(), values.data(), values.size() * sizeof(float));
  } else {
    FillIncompressible(probe.in_.data(), kLine * 2, 7);
  }
  return probe;
}

std::string RateProbe::Name(std::size_t shape) const {
  return fmt::format("{} x {} bits, {} chains", Of(kind_).name, lanes_ * 32, accumulators_[shape]);
}

double RateProbe::Pass(runtime::ThreadPool& pool, std::size_t shape, std::int64_t iterations) {
  const runtime::KernelFunction function = functions_[shape];
  const std::uint64_t begin = base::Ticks();
  pool.Run([&](std::uint32_t thread) {
    void* const buffers[] = {in_.data(), out_.data() + kGrain * (thread % 1024)};
    function(buffers, 0, iterations);
  });
  const double ns = clock_.ToNs(base::Ticks() - begin);
  return OperationsPerIteration(shape) * static_cast<double>(iterations) * pool.size() / ns * 1e9;
}

double RateProbe::OperationsPerIteration(std::size_t shape) const {
  const double per_lane = Of(kind_).per_lane;
  return (per_lane == 0 ? 1 : per_lane * lanes_) * accumulators_[shape];
}

std::int64_t RateProbe::IterationsFor(std::size_t shape, double ns) const {
  constexpr double kMostPerNs = 10;  // vector operations: two a cycle at 5 GHz
  return static_cast<std::int64_t>(ns * kMostPerNs / accumulators_[shape]) + 1;
}

Result<std::vector<double>> DispatchSamples(runtime::KernelCache& kernels, runtime::ThreadPool& pool,
                                            std::uint32_t count) {
  BOLTBEAM_ASSIGN(const Clock clock, GetClock());
  BOLTBEAM_ASSIGN(const runtime::KernelFunction function, kernels.Get(EmptyProgram()));
  std::vector<double> samples;
  samples.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t begin = base::Ticks();
    pool.Run([&](std::uint32_t) { function(nullptr, 0, 0); });
    samples.push_back(clock.ToNs(base::Ticks() - begin));
  }
  return samples;
}

Result<std::vector<double>> BarrierSamples(runtime::ThreadPool& pool, std::uint32_t count) {
  BOLTBEAM_ASSIGN(const Clock clock, GetClock());
  constexpr int kBarriers = 100;
  std::vector<double> samples;
  samples.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    pool.Run([&](std::uint32_t thread) {
      pool.Sync();  // the wake-up is not a barrier's cost
      const std::uint64_t begin = base::Ticks();
      for (int barrier = 0; barrier < kBarriers; ++barrier) pool.Sync();
      if (thread == 0) samples.push_back(clock.ToNs(base::Ticks() - begin) / kBarriers);
    });
  }
  return samples;
}

}  // namespace boltbeam::measure
