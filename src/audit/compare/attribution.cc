#include "audit/compare/attribution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace boltbeam::audit {
namespace {

constexpr double kBytesAgree = 0.1;  // relative, of one launch

struct Kernel {
  std::string name;
  double calls = 0, ns = 0;
  std::optional<double> bytes;  // of one launch
};

// Rows of one name and grid are one kernel, or of one name and bytes: a name alone may hold several. Bytes that were
// counted differ a little from launch to launch: their mean.
std::vector<Kernel> Kernels(const imports::Imported& imported, const std::string& group) {
  std::map<std::string, Kernel> kernels;
  for (const imports::Row& row : imported.rows) {
    if (row.kind != imports::RowKind::kKernel || !row.total_ns || row.group != group) continue;
    const std::string told = row.launch.empty() && row.bytes ? fmt::format("{}", *row.bytes) : row.launch;
    const std::string key = fmt::format("{}|{}", row.name, told);
    Kernel& kernel = kernels[key];
    kernel.name = row.name;
    if (row.bytes)
      kernel.bytes = (kernel.bytes.value_or(0) * kernel.calls + *row.bytes * row.calls) / (kernel.calls + row.calls);
    kernel.calls += row.calls;
    kernel.ns += *row.total_ns;
  }
  std::vector<Kernel> list;
  for (auto& [key, kernel] : kernels) list.push_back(std::move(kernel));
  std::ranges::sort(list, std::greater<>(), &Kernel::ns);
  return list;
}

double TokensIn(std::span<const Kernel> kernels) {
  std::uint64_t divisor = 0;
  for (const Kernel& kernel : kernels) divisor = std::gcd(divisor, static_cast<std::uint64_t>(kernel.calls));
  return std::max<double>(1, static_cast<double>(divisor));
}

std::string NameOf(const PartFloor& floor) { return fmt::format("{} {}", floor.role, floor.format); }

// Parts that this kernel can be: launched as often, or once for two tables of a part; and the bytes agree if they are
// known.
std::vector<const PartFloor*> Candidates(const Kernel& kernel, double tokens, std::span<const PartFloor> floors) {
  std::vector<const PartFloor*> candidates;
  const double calls = kernel.calls / tokens;
  for (const PartFloor& floor : floors) {
    const auto of_part = static_cast<double>(floor.calls);
    if (calls != of_part && 2 * calls != of_part) continue;
    const double bytes = static_cast<double>(floor.memory_bytes) / calls;
    if (kernel.bytes && std::fabs(*kernel.bytes - bytes) > kBytesAgree * bytes) continue;
    candidates.push_back(&floor);
  }
  return candidates;
}

std::string Names(const std::vector<const PartFloor*>& parts) {
  std::vector<std::string> names;
  for (const PartFloor* part : parts) names.push_back(NameOf(*part));
  return fmt::format("{}", fmt::join(names, " and "));
}

}  // namespace

Attribution Attribute(const imports::Imported& imported, std::span<const PartFloor> floors, double tokens,
                      const std::string& group) {
  const std::vector<Kernel> kernels = Kernels(imported, group);
  Attribution attribution;
  attribution.group = group;
  attribution.tokens = tokens > 0 ? tokens : TokensIn(kernels);
  std::map<const PartFloor*, std::size_t> rivals;  // kernels that can be this part
  std::vector<std::vector<const PartFloor*>> candidates;
  for (const Kernel& kernel : kernels) {
    candidates.push_back(Candidates(kernel, attribution.tokens, floors));
    for (const PartFloor* part : candidates.back()) ++rivals[part];
  }
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    AttributedKernel made{
        kernels[i].name, kernels[i].calls / attribution.tokens, kernels[i].ns / attribution.tokens, {}, {}};
    const std::string launches = fmt::format("{:g} launches{}", made.calls, kernels[i].bytes ? " of these bytes" : "");
    if (candidates[i].empty()) {
      made.why = fmt::format("{} fit no part", launches);
    } else if (candidates[i].size() > 1) {
      made.why = fmt::format("{} fit {}", launches, Names(candidates[i]));
    } else if (rivals[candidates[i].front()] > 1) {
      made.why = fmt::format("{} kernels fit {}", rivals[candidates[i].front()], Names(candidates[i]));
    } else {
      made.part = NameOf(*candidates[i].front());
      made.why = fmt::format("{} fit no other part", launches);
    }
    (made.part.empty() ? attribution.unattributed_ns : attribution.attributed_ns) += made.total_ns;
    attribution.kernels.push_back(std::move(made));
  }
  return attribution;
}

Attribution Attribute(const Matching& matching) {
  Attribution attribution;
  attribution.tokens = 1;
  for (const MatchedRegion& region : matching.regions) {
    const std::string part = region.format.empty() ? region.role : fmt::format("{} {}", region.role, region.format);
    attribution.kernels.push_back({part, region.calls, region.ns, part, "operation and shape"});
    attribution.attributed_ns += region.ns;
  }
  for (const std::string& operation : matching.unmatched) {
    attribution.kernels.push_back({operation, 1, 0, {}, "its number of runs is not known"});
  }
  attribution.unattributed_ns = matching.unmatched_ns;
  std::ranges::stable_sort(attribution.kernels, std::greater<>(), &AttributedKernel::total_ns);
  return attribution;
}

}  // namespace boltbeam::audit
