// Reads what Linux says about the machine from files below a root folder, so that tests can hand in a made-up tree.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"

namespace boltbeam::chip {

struct CpuInfo {
  std::string model;  // "AMD EPYC"
  std::string vendor, family, number, stepping;
  std::vector<std::string> features;
};

/// The first processor of /proc/cpuinfo.
CpuInfo ParseCpuInfo(std::string_view text);

/// "0-3,8,10-11" as the kernel writes CPU sets; text that is none gives what was read before it.
std::vector<int> ParseCpuList(std::string_view text);

/// CPUs' worth of quota of this process's control groups, version 1 or 2, the least on the way to the root.
std::optional<double> CgroupCpuQuota(const std::filesystem::path& root);

struct CgroupMemory {
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;  // without the page cache that the kernel gives back first
};
/// The control group that leaves the least room; nullopt when none sets a limit.
std::optional<CgroupMemory> CgroupMemoryLimit(const std::filesystem::path& root);

/// A line of /proc/meminfo, in bytes.
std::optional<std::uint64_t> MemInfo(const std::filesystem::path& root, std::string_view name);

/// The least of MemAvailable and what the control groups leave.
std::uint64_t AvailableMemory(const std::filesystem::path& root);

/// allowed in the order in which threads are pinned: one of each physical core first.
std::vector<int> PinningOrder(const std::filesystem::path& root, const std::vector<int>& allowed);

/// 0 never, 1 madvise, 2 always; nullopt when the kernel has none.
std::optional<int> TransparentHugePages(const std::filesystem::path& root);

/// What data/cpus/*.json say of every CPU of this vendor and family. kJson and kChipRow of a row that is not right.
Result<std::vector<Fact>> FactsOfFamily(const CpuInfo& cpu);

/// DetectThisMachine with the files of another root; topology and affinity are this process's own.
Result<Chip> DetectMachine(const std::filesystem::path& root);

/// The file's text, or nullopt.
std::optional<std::string> ReadSmallFile(const std::filesystem::path& path);

}  // namespace boltbeam::chip
