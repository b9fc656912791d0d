// Control groups: what a container may use is often less than what the machine has.
#include <algorithm>
#include <charconv>
#include <sstream>

#include "chip/system.h"

namespace boltbeam::chip {
namespace {

namespace fs = std::filesystem;

/// A number, or nullopt for "max" and for a file that is absent.
std::optional<std::int64_t> ReadNumber(const fs::path& path) {
  const std::optional<std::string> text = ReadSmallFile(path);
  std::int64_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

/// A named number of a file such as memory.stat; 0 when absent.
std::uint64_t ReadStat(const fs::path& path, std::string_view name) {
  std::istringstream stream(ReadSmallFile(path).value_or(""));
  std::string key;
  for (std::uint64_t value = 0; stream >> key >> value;) {
    if (key == name) return value;
  }
  return 0;
}

/// One hierarchy: where it is mounted, and this process's group in it.
struct Hierarchy {
  std::vector<std::string> mounts;  // below /sys/fs/cgroup, tried in this order
  std::string group;                // "/user.slice/..."
  bool unified = false;
};

std::vector<Hierarchy> HierarchiesOf(const fs::path& root, std::string_view controller) {
  std::vector<Hierarchy> found;
  std::istringstream lines(ReadSmallFile(root / "proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (names.empty()) {
      found.push_back({{"", "unified"}, group, true});
      continue;
    }
    std::istringstream split(names);
    for (std::string name; std::getline(split, name, ',');) {
      if (name == controller) found.push_back({{names, name}, group, false});
    }
  }
  return found;
}

/// Calls visit(folder, unified) for the process's group and every group above it. Inside a container the group's path
/// is the host's and does not exist: then only the mount itself, which is the container's group, is there.
template <typename Visit>
void VisitGroups(const fs::path& root, std::string_view controller, Visit visit) {
  for (const Hierarchy& hierarchy : HierarchiesOf(root, controller)) {
    for (const std::string& mount : hierarchy.mounts) {
      const fs::path top = root / "sys/fs/cgroup" / mount;
      std::error_code ignored;
      if (!fs::is_directory(top, ignored)) continue;
      fs::path group = fs::path(hierarchy.group).relative_path();
      for (; !group.empty(); group = group.parent_path()) visit(top / group, hierarchy.unified);
      visit(top, hierarchy.unified);
    }
  }
}

std::optional<double> QuotaOf(const fs::path& folder, bool unified) {
  if (unified) {  // "200000 100000" or "max 100000"
    std::istringstream stream(ReadSmallFile(folder / "cpu.max").value_or(""));
    double quota = 0, period = 0;
    if (stream >> quota >> period && quota > 0 && period > 0) return quota / period;
    return std::nullopt;
  }
  const std::optional<std::int64_t> quota = ReadNumber(folder / "cpu.cfs_quota_us");
  const std::optional<std::int64_t> period = ReadNumber(folder / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<CgroupMemory> MemoryOf(const fs::path& folder, bool unified) {
  // Version 1 writes "no limit" as a number near 2^63.
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;
  const std::optional<std::int64_t> limit = ReadNumber(folder / (unified ? "memory.max" : "memory.limit_in_bytes"));
  if (!limit || *limit < 0 || *limit >= kNoLimit) return std::nullopt;
  const std::int64_t used = std::max<std::int64_t>(
      0, ReadNumber(folder / (unified ? "memory.current" : "memory.usage_in_bytes")).value_or(0));
  const std::uint64_t cache = ReadStat(folder / "memory.stat", unified ? "inactive_file" : "total_inactive_file");
  const auto all = static_cast<std::uint64_t>(used);
  return CgroupMemory{static_cast<std::uint64_t>(*limit), all - std::min(all, cache)};
}

std::int64_t Room(const CgroupMemory& memory) {
  return static_cast<std::int64_t>(memory.limit_bytes) - static_cast<std::int64_t>(memory.used_bytes);
}

}  // namespace

std::optional<double> CgroupCpuQuota(const fs::path& root) {
  std::optional<double> least;
  VisitGroups(root, "cpu", [&](const fs::path& folder, bool unified) {
    const std::optional<double> quota = QuotaOf(folder, unified);
    if (quota && (!least || *quota < *least)) least = quota;
  });
  return least;
}

std::optional<CgroupMemory> CgroupMemoryLimit(const fs::path& root) {
  std::optional<CgroupMemory> least;
  VisitGroups(root, "memory", [&](const fs::path& folder, bool unified) {
    const std::optional<CgroupMemory> memory = MemoryOf(folder, unified);
    if (memory && (!least || Room(*memory) < Room(*least))) least = memory;
  });
  return least;
}

}  // namespace boltbeam::chip
