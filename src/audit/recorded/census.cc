// The census of kernels: launches and times by group, and the two statistics that its node sums are.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "audit/recorded/derive.h"

namespace boltbeam::audit {
namespace {

struct Group {
  double launches = 0, total_us = 0, median_us = 0;

  void Add(const Json& row) {
    const double count = NumberOf(row, "/count").value_or(0);
    launches += count;
    total_us += NumberOf(row, "/total_us").value_or(0);
    median_us += count * NumberOf(row, "/median_us").value_or(0);
  }
};

constexpr double kCent = 0.006;

}  // namespace

void DeriveCensus(Deriver& deriver) {
  const Json& document = deriver.document();
  std::map<std::string, Group> groups;
  Group all;
  for (const Json& row : ListOf(document, "/rows")) {
    if (!row.is_object() || !row.contains("group") || !row["group"].is_string()) continue;
    groups[row["group"].get<std::string>()].Add(row);
    all.Add(row);
  }
  if (groups.empty()) return;
  std::size_t index = 0;
  for (const Json& recorded : ListOf(document, "/groups")) {
    const std::string at = fmt::format("/groups/{}", index++);
    if (!recorded.is_object() || !recorded.contains("group") || !recorded["group"].is_string()) continue;
    const auto name = recorded["group"].get<std::string>();
    const auto found = groups.find(name);
    if (found == groups.end()) continue;
    const auto launches = NumberOf(recorded, "/recorded/launches");
    deriver.Line(at, name + " launches", launches, found->second.launches, 0);
    deriver.Line(at, name + " total_us", NumberOf(recorded, "/recorded/total_us"), found->second.total_us, kCent);
    if (launches && *launches != found->second.launches) {
      deriver.Finding(fmt::format("the group {} is printed with {} launches; its rows sum to {}", name, *launches,
                                  found->second.launches));
    }
  }
  deriver.Line("/total", "launches", NumberOf(document, "/total/recorded/launches"), all.launches, 0);
  deriver.Line("/total", "total_us", NumberOf(document, "/total/recorded/total_us"), all.total_us, kCent);
  deriver.Line("/header", "launches_per_token", NumberOf(document, "/header/launches_per_token"), all.launches, 0);
  deriver.Line("/header", "node_sum_us (medians times launches)", NumberOf(document, "/header/node_sum_us"),
               all.median_us, kOnePlace);
  if (const auto wall = NumberOf(document, "/header/wall_us"); wall && *wall > 0) {
    deriver.Line("/header", "rate_tok_s", NumberOf(document, "/header/rate_tok_s"), 1e6 / *wall, kCent);
    if (all.median_us > *wall) {
      deriver.Finding(
          fmt::format("the kernels add up to {:.1f} µs more than the wall: profiled times and an unprofiled "
                      "wall, not to be subtracted",
                      all.median_us - *wall));
    }
  }
  deriver.Finding(
      fmt::format("two node sums: medians times launches {:.1f} µs, totals {:.1f} µs", all.median_us, all.total_us));
}

}  // namespace boltbeam::audit
