#include "search/tie_break.h"

#include <algorithm>
#include <cmath>

namespace boltbeam::search {
namespace {

constexpr double kFasterMemory = 2;
constexpr std::size_t kSweeps = 7;

}  // namespace

Result<std::size_t> FastestOfEven(const std::vector<const Contender*>& even, const std::vector<double>& now_ns,
                                  TimingBench& bench, const std::function<bool()>& cancelled) {
  std::vector<std::vector<double>> cached(even.size());
  for (std::size_t sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = 0; i < even.size(); ++i) {
      if (cancelled && cancelled()) return Fail(Code::kInterrupted, "search", "stopped by the user");
      cached[i].push_back(bench.CachedWindow(*even[i]));
    }
  }
  std::vector<double> faster_ns;
  for (std::size_t i = 0; i < even.size(); ++i) {
    faster_ns.push_back(std::hypot(now_ns[i] / kFasterMemory, measure::Median(cached[i]) / bench.threads()));
  }
  return static_cast<std::size_t>(std::ranges::min_element(faster_ns) - faster_ns.begin());
}

}  // namespace boltbeam::search
