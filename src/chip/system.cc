#include "chip/system.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

namespace boltbeam::chip {
namespace {

namespace fs = std::filesystem;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::vector<std::string> SplitWords(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void TakeField(CpuInfo& info, std::string_view key, std::string_view value) {
  const auto set = [&](std::string& field) {
    if (field.empty()) field = value;
  };
  if (key == "model name" || key == "Model") set(info.model);
  if (key == "vendor_id" || key == "CPU implementer") set(info.vendor);
  if (key == "cpu family" || key == "CPU architecture") set(info.family);
  if (key == "model" || key == "CPU part") set(info.number);
  if (key == "stepping" || key == "CPU revision") set(info.stepping);
  if ((key == "flags" || key == "Features") && info.features.empty()) info.features = SplitWords(value);
}

}  // namespace

std::optional<std::string> ReadSmallFile(const fs::path& path) {
  std::ifstream stream(path);
  if (!stream) return std::nullopt;
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

CpuInfo ParseCpuInfo(std::string_view text) {
  CpuInfo info;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) TakeField(info, Trim(line.substr(0, colon)), Trim(line.substr(colon + 1)));
  }
  return info;
}

std::vector<int> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  text = Trim(text);
  while (!text.empty()) {
    constexpr int kMostCpus = 1 << 20;
    int first = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), first);
    if (error != std::errc()) break;
    int last = first;
    text.remove_prefix(static_cast<std::size_t>(at - text.data()));
    if (text.starts_with('-')) {
      const auto [end, range_error] = std::from_chars(text.data() + 1, text.data() + text.size(), last);
      if (range_error != std::errc()) break;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    }
    for (int cpu = first; cpu <= std::min(last, kMostCpus); ++cpu) cpus.push_back(cpu);
    if (!text.starts_with(',')) break;
    text.remove_prefix(1);
  }
  return cpus;
}

std::optional<std::uint64_t> MemInfo(const fs::path& root, std::string_view name) {
  const std::optional<std::string> text = ReadSmallFile(root / "proc/meminfo");
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    const std::string_view value = Trim(std::string_view(line).substr(name.size() + 1));
    std::uint64_t kib = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), kib);
    if (error == std::errc()) return kib * 1024;
  }
  return std::nullopt;
}

std::uint64_t AvailableMemory(const fs::path& root) {
  std::uint64_t available = MemInfo(root, "MemAvailable").value_or(0);
  if (const std::optional<CgroupMemory> group = CgroupMemoryLimit(root)) {
    const std::uint64_t room = group->limit_bytes > group->used_bytes ? group->limit_bytes - group->used_bytes : 0;
    available = std::min(available, room);
  }
  return available;
}

std::vector<int> PinningOrder(const fs::path& root, const std::vector<int>& allowed) {
  std::vector<int> first, siblings;
  std::set<int> taken;  // threads of a core that has one in `first`
  for (const int cpu : allowed) {
    if (taken.contains(cpu)) {
      siblings.push_back(cpu);
      continue;
    }
    first.push_back(cpu);
    const fs::path topology = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "topology";
    const std::optional<std::string> list = ReadSmallFile(topology / "thread_siblings_list");
    for (const int sibling : ParseCpuList(list.value_or(""))) taken.insert(sibling);
  }
  first.insert(first.end(), siblings.begin(), siblings.end());
  return first;
}

std::optional<int> TransparentHugePages(const fs::path& root) {
  const std::optional<std::string> text = ReadSmallFile(root / "sys/kernel/mm/transparent_hugepage/enabled");
  if (!text) return std::nullopt;
  if (text->contains("[always]")) return 2;
  if (text->contains("[madvise]")) return 1;
  return 0;
}

}  // namespace boltbeam::chip
