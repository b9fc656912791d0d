#include "audit/import/imported.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace boltbeam::imports {

std::string_view RowKindName(RowKind kind) {
  constexpr std::array kNames{"kernel", "copy", "host call", "operation"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string GroupOf(std::string_view device, std::string_view process) {
  std::string group;
  if (!device.empty())
    group = device.front() >= '0' && device.front() <= '9' ? fmt::format("device {}", device) : device;
  if (!process.empty()) group += fmt::format("{}process {}", group.empty() ? "" : ", ", process);
  return group;
}

std::vector<std::string> GroupsOf(const Imported& imported, RowKind kind) {
  std::vector<std::string> groups;
  for (const Row& row : imported.rows) {
    if (row.kind == kind && std::ranges::find(groups, row.group) == groups.end()) groups.push_back(row.group);
  }
  return groups;
}

Totals TotalsOf(const Imported& imported, RowKind kind, std::optional<std::string_view> group) {
  Totals totals;
  std::set<std::string_view> names;
  for (const Row& row : imported.rows) {
    if (row.kind != kind || (group && row.group != *group)) continue;
    ++totals.rows;
    names.insert(row.name);
    totals.calls += row.calls;
    totals.untimed += row.total_ns ? 0 : 1;
    totals.ns += row.total_ns.value_or(0);
  }
  totals.names = names.size();
  return totals;
}

std::optional<Timeline> TimelineOf(const Imported& imported, std::string_view group) {
  std::vector<std::pair<double, double>> spans;
  double sum = 0;
  for (const Row& row : imported.rows) {
    if (row.kind != RowKind::kKernel || row.group != group) continue;
    if (!row.start_ns || !row.total_ns) return std::nullopt;  // a summary: gaps and overlap can't be told
    spans.emplace_back(*row.start_ns, *row.start_ns + *row.total_ns);
    sum += *row.total_ns;
  }
  if (spans.empty()) return std::nullopt;
  std::ranges::sort(spans);
  Timeline timeline;
  double end = spans.front().first;
  for (const auto& [begin, finish] : spans) {
    timeline.union_ns += std::max(0.0, finish - std::max(begin, end));
    end = std::max(end, finish);
  }
  timeline.span_ns = end - spans.front().first;
  timeline.overlap_ns = sum - timeline.union_ns;
  timeline.gaps_ns = timeline.span_ns - timeline.union_ns;
  return timeline;
}

}  // namespace boltbeam::imports
