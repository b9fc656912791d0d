#include "measure/environment.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/version.h"
#include "chip/system.h"

namespace boltbeam::measure {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream stream(path);
  std::string line;
  std::getline(stream, line);
  return line;
}

// "name value" lines, as cpu.stat has them.
std::optional<std::uint64_t> NamedValue(const std::string& path, const std::string& name) {
  std::ifstream stream(path);
  std::string key;
  std::uint64_t value = 0;
  while (stream >> key >> value) {
    if (key == name) return value;
  }
  return std::nullopt;
}

// "key : value" lines, as cpuinfo has them.
std::string FieldOf(const std::string& path, const std::string& key) {
  std::ifstream stream(path);
  std::string line;
  while (std::getline(stream, line)) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

// The folders of this process's cgroup, its own first and then the root of the mount, for version 2 and for 1's cpu
// controller. Inside a container the path of /proc/self/cgroup often does not exist below the mount: then only the root
// does.
std::vector<std::string> CgroupFolders(const std::string& root) {
  std::vector<std::string> folders;
  std::ifstream stream(root + "/proc/self/cgroup");
  const std::string mount = root + "/sys/fs/cgroup";
  std::string line;
  while (std::getline(stream, line)) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) folders.push_back(mount + path);
    if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      folders.push_back(mount + "/" + controllers + path);
      folders.push_back(mount + "/cpu" + path);
    }
  }
  folders.push_back(mount);
  folders.push_back(mount + "/cpu");
  return folders;
}

std::vector<int> Affinity() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// The word in brackets: "always [madvise] never".
std::string Chosen(const std::string& line) {
  const std::size_t open = line.find('['), close = line.find(']');
  return open == std::string::npos || close == std::string::npos ? line : line.substr(open + 1, close - open - 1);
}

}  // namespace

Counters ReadCounters(const std::string& root) {
  Counters counters;
  for (const std::string& folder : CgroupFolders(root)) {
    const std::string path = folder + "/cpu.stat";
    const auto periods = NamedValue(path, "nr_throttled");
    if (!periods) continue;
    counters.throttled_periods = *periods;
    if (const auto us = NamedValue(path, "throttled_usec")) counters.throttled_us = *us;
    if (const auto ns = NamedValue(path, "throttled_time")) counters.throttled_us = *ns / 1000;  // version 1
    break;
  }
  std::istringstream cpu(FirstLine(root + "/proc/stat"));
  std::string name;
  std::uint64_t value = 0;
  constexpr int kStealColumn = 8;
  cpu >> name;
  for (int column = 1; cpu >> value; ++column) {
    if (column == kStealColumn) counters.steal_ticks = value;
  }
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    counters.involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw);
    counters.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
  }
  return counters;
}

Environment ReadEnvironment(const std::string& root) {
  Environment environment;
  environment.cpu_model = FieldOf(root + "/proc/cpuinfo", "model name");
  utsname name{};
  if (uname(&name) == 0) environment.kernel = name.release;
  environment.governor = FirstLine(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  environment.huge_pages = Chosen(FirstLine(root + "/sys/kernel/mm/transparent_hugepage/enabled"));
  environment.boltbeam_version = base::kVersion;
  environment.affinity = Affinity();
  environment.quota_cpus = chip::CgroupCpuQuota(root.empty() ? "/" : root).value_or(0);
  std::ifstream(root + "/proc/loadavg") >> environment.load_1m;
  environment.date = UtcNow();
  return environment;
}

std::vector<std::string> SpoilingCauses(const Counters& before, const Counters& after, double wall_ns) {
  std::vector<std::string> causes;
  if (after.throttled_periods > before.throttled_periods || after.throttled_us > before.throttled_us) {
    causes.push_back(fmt::format("stopped by the CPU quota for {:.1f} ms",
                                 static_cast<double>(after.throttled_us - before.throttled_us) / 1e3));
  }
  // Steal is counted in hundredths of a second over all CPUs: one tick can be chance, a hundredth of the time is not.
  constexpr double kTickNs = 1e7, kStealShare = 0.01;
  const double stolen_ns = static_cast<double>(after.steal_ticks - before.steal_ticks) * kTickNs;
  if (after.steal_ticks > before.steal_ticks + 1 && stolen_ns > kStealShare * wall_ns) {
    causes.push_back(fmt::format("CPUs taken by the hypervisor for {:.0f} ms", stolen_ns / 1e6));
  }
  constexpr double kSwitchesPerSecond = 200;
  const double switches = static_cast<double>(after.involuntary_switches - before.involuntary_switches);
  if (switches > 1 && switches > kSwitchesPerSecond * wall_ns / 1e9) {
    causes.push_back(fmt::format("interrupted by other programs {:.0f} times", switches));
  }
  if (after.major_faults > before.major_faults) {
    causes.push_back(fmt::format("{} page(s) read from disk", after.major_faults - before.major_faults));
  }
  return causes;
}

std::string UtcNow() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace boltbeam::measure
