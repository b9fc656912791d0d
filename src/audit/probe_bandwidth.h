// The read bandwidth between an audit's windows: generated probes on as many pinned threads as the engine has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "chip/facts.h"
#include "measure/probes.h"
#include "runtime/code.h"
#include "runtime/thread_pool.h"

namespace boltbeam::audit {

class ProbeBandwidth : public BandwidthSource {
 public:
  /// token_bytes: what a token reads. The probe reads as much, up to measure::ColdBytes: of a model that a
  /// cache holds in part, the roof is what the memory and the cache deliver together for a set of that size.
  static Result<std::unique_ptr<ProbeBandwidth>> Create(runtime::KernelCache& kernels, const chip::Chip& machine,
                                                        const std::vector<int>& cpus, std::uint64_t token_bytes);

  std::vector<double> Read() override;
  [[nodiscard]] double CacheGbS() const override { return cache_gb_s_; }
  [[nodiscard]] std::string Method() const override;
  bool SweepCaches(std::uint32_t thread, std::uint32_t threads) override {
    probe_.ReadGrains(thread, threads);
    return true;
  }
  [[nodiscard]] double BarrierNs() const override { return barrier_ns_; }

 private:
  ProbeBandwidth(std::unique_ptr<runtime::ThreadPool> pool, measure::StreamProbe probe)
      : pool_(std::move(pool)), probe_(std::move(probe)) {}

  std::unique_ptr<runtime::ThreadPool> pool_;
  measure::StreamProbe probe_;
  std::vector<std::size_t> shapes_;  // in use: the fastest few
  std::uint32_t repeats_ = 1;
  double cache_gb_s_ = 0;
  double barrier_ns_ = 0;
  bool beyond_cache_ = true;
};

}  // namespace boltbeam::audit
