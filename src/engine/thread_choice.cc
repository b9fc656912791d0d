#include "engine/thread_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace boltbeam::engine {
namespace {

constexpr std::string_view kCurve = "read_bandwidth_gb_s.threads_";

/// The number of threads that a fact of the bandwidth curve is about; 0 for other facts.
std::uint32_t ThreadsOf(const chip::Fact& fact) {
  if (!fact.name.starts_with(kCurve)) return 0;
  const std::string_view digits = std::string_view(fact.name).substr(kCurve.size());
  std::uint32_t threads = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), threads);
  return threads;
}

}  // namespace

ThreadChoice ChooseThreads(const chip::Chip& machine, std::uint32_t most, const std::string& bound) {
  double best_gb_s = 0;
  for (const chip::Fact& fact : machine.facts) {
    const std::uint32_t threads = ThreadsOf(fact);
    if (threads > 0 && threads <= most) best_gb_s = std::max(best_gb_s, fact.value);
  }
  if (best_gb_s == 0) {
    return {most, fmt::format("{}; the memory's rate by threads is not measured (boltbeam chip measure)", bound)};
  }
  ThreadChoice choice{most, bound};
  for (const chip::Fact& fact : machine.facts) {
    const std::uint32_t threads = ThreadsOf(fact);
    const bool is_enough = threads > 0 && fact.value >= best_gb_s * (1 - kEnoughBandwidth);
    if (!is_enough || threads > choice.threads) continue;
    choice.threads = threads;
    choice.why = fmt::format("{:.1f} GB/s, within 1 % of the best rate measured on up to {}", fact.value, most);
  }
  return choice;
}

ThreadChoice ChooseThreads(const chip::Chip& machine) {
  const auto usable = static_cast<std::uint32_t>(chip::UsableCpus().size());
  const double quota = chip::CpuQuota();
  const auto whole = static_cast<std::uint32_t>(std::max(1.0, std::floor(quota)));
  if (whole < usable) return ChooseThreads(machine, whole, fmt::format("a quota of {:.1f} CPUs", quota));
  return ChooseThreads(machine, usable, fmt::format("{} usable CPUs", usable));
}

}  // namespace boltbeam::engine
