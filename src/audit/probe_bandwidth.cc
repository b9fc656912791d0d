#include "audit/probe_bandwidth.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/statistics.h"

namespace boltbeam::audit {
namespace {

constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kBytesPerReading = std::uint64_t{64} << 20;  // so that waking the threads is no part of it
constexpr std::uint32_t kChoosingRounds = 15;
constexpr std::size_t kShapesInUse = 3;

}  // namespace

Result<std::unique_ptr<ProbeBandwidth>> ProbeBandwidth::Create(runtime::KernelCache& kernels, const chip::Chip& machine,
                                                               const std::vector<int>& cpus,
                                                               std::uint64_t token_bytes) {
  const std::uint64_t beyond_cache = measure::ColdBytes(machine);
  const std::uint64_t bytes = std::clamp(token_bytes, kLeastBytes, beyond_cache);
  BOLTBEAM_ASSIGN(auto pool, runtime::ThreadPool::Create(cpus));
  BOLTBEAM_ASSIGN(measure::StreamProbe probe, measure::StreamProbe::Create(kernels, machine, *pool, bytes));
  std::unique_ptr<ProbeBandwidth> source(new ProbeBandwidth(std::move(pool), std::move(probe)));
  source->beyond_cache_ = bytes == beyond_cache;
  source->repeats_ = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, kBytesPerReading / bytes));
  source->shapes_ = source->probe_.FastestShapes(*source->pool_, kChoosingRounds, 0, source->repeats_);
  source->shapes_.resize(std::min(source->shapes_.size(), kShapesInUse));

  const auto level2 = static_cast<std::uint64_t>(machine.Get("l2_bytes").value_or(512.0 * 1024));
  const std::uint64_t set = std::min(level2 / 2 * cpus.size(), source->probe_.bytes());
  const auto repeats = static_cast<std::uint32_t>(kBytesPerReading / set) + 1;
  std::vector<double> rates;
  const std::size_t fastest = source->probe_.FastestShapes(*source->pool_, kChoosingRounds, set, repeats).front();
  constexpr std::uint32_t kCacheReadings = 31;
  for (std::uint32_t i = 0; i < kCacheReadings; ++i) {
    rates.push_back(source->probe_.Pass(*source->pool_, fastest, set, repeats));
  }
  // Read once, before the rounds: the best reading, because an interruption here would raise floors there.
  source->cache_gb_s_ = *std::ranges::max_element(rates);
  if (source->pool_->size() > 1) {
    constexpr std::uint32_t kBarrierSamples = 31;
    BOLTBEAM_ASSIGN(const std::vector<double> barriers, measure::BarrierSamples(*source->pool_, kBarrierSamples));
    source->barrier_ns_ = measure::Median(barriers);
  }
  return source;
}

std::vector<double> ProbeBandwidth::Read() {
  std::vector<double> rates;
  for (const std::size_t shape : shapes_) rates.push_back(probe_.Pass(*pool_, shape, 0, repeats_));
  return rates;
}

std::string ProbeBandwidth::Method() const {
  return fmt::format(
      "Read bandwidth: the fastest of {} generated probes over {} MiB that can't be compressed, {} threads{}",
      shapes_.size(), probe_.bytes() >> 20, pool_->size(),
      beyond_cache_ ? "" : ", re-read as a token re-reads its tables (a cache may hold a part)");
}

}  // namespace boltbeam::audit
