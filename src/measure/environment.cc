#include "measure/environment.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

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

// Of every second a real-time thread may compute so many microseconds, on some kernels even where nobody else wants the
// CPU. Nullopt: this thread is none, or may compute all the time.
std::optional<double> RealTimeShare(const std::string& root) {
  const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  if (policy != SCHED_FIFO && policy != SCHED_RR) return std::nullopt;
  double runtime_us = -1, period_us = 0;
  std::ifstream(root + "/proc/sys/kernel/sched_rt_runtime_us") >> runtime_us;
  std::ifstream(root + "/proc/sys/kernel/sched_rt_period_us") >> period_us;
  if (runtime_us < 0 || runtime_us >= period_us) return std::nullopt;
  return runtime_us / period_us;
}

// The folders of this process's threads.
std::vector<std::filesystem::path> Threads(const std::string& root) {
  std::vector<std::filesystem::path> folders;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(root + "/proc/self/task", error)) {
    folders.push_back(task.path());
  }
  return folders;
}

// A kernel without scheduler statistics leaves migrations at 0, and says nothing of waits.
void ReadThreads(const std::string& root, Counters& counters) {
  for (const std::filesystem::path& thread : Threads(root)) {
    const std::string value = FieldOf((thread / "sched").string(), "se.nr_migrations");
    std::uint64_t count = 0, ran_ns = 0, waited_ns = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), count).ec == std::errc()) {
      counters.migrations += count;
    }
    if (std::ifstream stream(thread / "schedstat"); stream >> ran_ns >> waited_ns) {
      counters.waited_ns += waited_ns;
      counters.waits_known = true;
    }
  }
}

// "number (name) S ...": the name may hold anything.
bool Sleeps(const std::filesystem::path& thread) {
  const std::string line = FirstLine((thread / "stat").string());
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos || line.size() < name_end + 3 || line[name_end + 2] != 'R';
}

// All that are counted.
constexpr std::array kCounters = {
    &Counters::throttled_periods,    &Counters::throttled_us,      &Counters::steal_ticks,
    &Counters::involuntary_switches, &Counters::major_faults,      &Counters::minor_faults,
    &Counters::migrations,           &Counters::thermal_throttles, &Counters::waited_ns};

}  // namespace

Counters operator-(const Counters& after, const Counters& before) {
  Counters between;
  for (const auto counter : kCounters) {
    if (after.*counter > before.*counter) between.*counter = after.*counter - before.*counter;
  }
  between.waits_known = after.waits_known;
  return between;
}

Counters& operator+=(Counters& sum, const Counters& more) {
  for (const auto counter : kCounters) sum.*counter += more.*counter;
  sum.waits_known = sum.waits_known || more.waits_known;
  return sum;
}

CounterReader::CounterReader(std::string root) : root_(std::move(root)) {
  for (const std::string& folder : CgroupFolders(root_)) {
    if (!NamedValue(folder + "/cpu.stat", "nr_throttled")) continue;
    quota_path_ = folder + "/cpu.stat";
    break;
  }
  for (const int cpu : Affinity()) {
    std::string path = fmt::format("{}/sys/devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count", root_, cpu);
    if (access(path.c_str(), R_OK) == 0) thermal_paths_.push_back(std::move(path));
  }
}

Counters CounterReader::Read() const {
  Counters counters;
  if (!quota_path_.empty()) {
    counters.throttled_periods = NamedValue(quota_path_, "nr_throttled").value_or(0);
    if (const auto us = NamedValue(quota_path_, "throttled_usec")) counters.throttled_us = *us;
    if (const auto ns = NamedValue(quota_path_, "throttled_time")) counters.throttled_us = *ns / 1000;  // version 1
  }
  std::istringstream cpu(FirstLine(root_ + "/proc/stat"));
  std::string name;
  std::uint64_t value = 0;
  constexpr int kStealColumn = 8;
  cpu >> name;
  for (int column = 1; cpu >> value; ++column) {
    if (column == kStealColumn) counters.steal_ticks = value;
    constexpr std::array kBusyColumns = {1, 2, 3, 6, 7};  // user, nice, system, interrupts hard and soft
    if (std::ranges::find(kBusyColumns, column) != kBusyColumns.end()) counters.busy_ticks += value;
  }
  for (const std::string& path : thermal_paths_) {
    std::ifstream stream(path);
    if (stream >> value) counters.thermal_throttles += value;
  }
  ReadThreads(root_, counters);
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto us = [](const timeval& time) {
      return static_cast<std::uint64_t>(time.tv_sec * 1'000'000 + time.tv_usec);
    };
    counters.own_cpu_us = us(usage.ru_utime) + us(usage.ru_stime);
    counters.involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw);
    counters.major_faults = static_cast<std::uint64_t>(usage.ru_majflt);
    counters.minor_faults = static_cast<std::uint64_t>(usage.ru_minflt);
  }
  return counters;
}

Counters ReadCounters(const std::string& root) { return CounterReader(root).Read(); }

double OtherCpus(const Counters& before, const Counters& after, double wall_ns) {
  constexpr double kTickNs = 1e7;
  const double busy_ns = kTickNs * static_cast<double>(after.busy_ticks - before.busy_ticks);
  const double own_ns = 1e3 * static_cast<double>(after.own_cpu_us - before.own_cpu_us);
  return wall_ns > 0 ? std::max(0.0, busy_ns - own_ns) / wall_ns : 0;
}

std::string_view CauseName(Cause cause) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Cause::kCount)> kNames = {
      "quota", "steal", "interrupted", "disk_reads", "page_faults", "migrated", "thermal"};
  return kNames.at(static_cast<std::size_t>(cause));
}

Causes CausesBetween(const Counters& before, const Counters& after, double wall_ns) {
  Causes causes;
  const Counters between = after - before;
  const auto set = [&](Cause cause, bool happened) { causes.set(static_cast<std::size_t>(cause), happened); };
  const auto more = [&](std::uint64_t Counters::* counter) { return static_cast<double>(between.*counter); };
  const auto often = [&](double events, double per_second) {
    return events > 1 && events > per_second * wall_ns / 1e9;
  };
  set(Cause::kQuota, more(&Counters::throttled_periods) > 0 || more(&Counters::throttled_us) > 0);
  // Steal is counted in hundredths of a second over all CPUs: one tick can be chance, a hundredth of the time is not.
  constexpr double kTickNs = 1e7, kStealShare = 0.01;
  const double ticks = more(&Counters::steal_ticks);
  set(Cause::kSteal, ticks > 1 && ticks * kTickNs > kStealShare * wall_ns);
  // The time that was lost, not how often: a thread that gives way while it waits for work loses none. Less than a
  // fiftieth is lost in the spread of windows. Where the kernel doesn't keep that time, the count must do.
  constexpr double kWaitShare = 0.02, kSwitchesPerSecond = 200, kMigrationsPerSecond = 50;
  set(Cause::kInterrupted, after.waits_known ? more(&Counters::waited_ns) > kWaitShare * wall_ns
                                             : often(more(&Counters::involuntary_switches), kSwitchesPerSecond));
  set(Cause::kMigrated, often(more(&Counters::migrations), kMigrationsPerSecond));
  set(Cause::kDiskReads, more(&Counters::major_faults) > 0);
  // To make a page takes about a microsecond: a fiftieth of the time spent on that.
  constexpr double kFaultNs = 1000, kFaultShare = 0.02;
  set(Cause::kPageFaults, more(&Counters::minor_faults) * kFaultNs > kFaultShare * wall_ns);
  set(Cause::kThermal, more(&Counters::thermal_throttles) > 0);
  return causes;
}

bool StealWatch::Took(const Counters& now, double now_ns) {
  constexpr double kTickNs = 1e7, kStealShare = 0.01;
  const bool begins = since_ns_<0, ticked = now.steal_ticks> ticks_;
  const double stolen_ns = ticked ? static_cast<double>(now.steal_ticks - ticks_) * kTickNs : 0;
  const bool took = !begins && stolen_ns > kStealShare * (now_ns - since_ns_);
  if (begins || ticked) {
    ticks_ = now.steal_ticks;
    since_ns_ = now_ns;
  }
  return took;
}

bool AwaitSleepingThreads(const std::string& root) {
  constexpr int kTries = 25;
  constexpr timespec kNap{0, 200'000};
  const std::string own = std::to_string(gettid());
  for (int i = 0; i < kTries; ++i) {
    nanosleep(&kNap, nullptr);
    if (std::ranges::all_of(Threads(root),
                            [&](const auto& thread) { return thread.filename() == own || Sleeps(thread); })) {
      return true;
    }
  }
  return false;
}

namespace {

// "some avg10=1.25 avg60=..."
double PressureOf(const std::string& line) {
  constexpr std::string_view kAverage = "avg10=";
  const std::size_t at = line.find(kAverage);
  return at == std::string::npos ? 0 : std::atof(line.c_str() + at + kAverage.size());
}

std::vector<std::string> DoubtsOf(const Environment& environment, const std::optional<double>& real_time_share) {
  constexpr double kMostPressure = 10;
  const auto cpus = static_cast<double>(environment.affinity.size());
  std::vector<std::string> doubts;
  if (environment.quota_cpus > 0 && environment.quota_cpus < cpus) {
    doubts.push_back(fmt::format("a quota of {:.1f} of {:.0f} CPUs stops threads", environment.quota_cpus, cpus));
  }
  if (environment.pressure_percent > kMostPressure) {
    doubts.push_back(
        fmt::format("threads waited for a CPU in {:.0f} % of the last 10 s", environment.pressure_percent));
  }
  if (environment.load_1m > cpus + 1) {
    doubts.push_back(fmt::format("{:.1f} threads wanted {:.0f} CPUs in the last minute", environment.load_1m, cpus));
  }
  if (real_time_share) {
    doubts.push_back(fmt::format(
        "the kernel may stop real-time threads for {:.0f} % of the time (sched_rt_runtime_us): nice, not chrt",
        100 * (1 - *real_time_share)));
  }
  if (environment.governor == "powersave") doubts.emplace_back("the governor powersave keeps clocks low");
  if (environment.huge_pages == "never") doubts.emplace_back("huge pages are off: more misses of the TLB");
  return doubts;
}

}  // namespace

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
  environment.pressure_percent = PressureOf(FirstLine(root + "/proc/pressure/cpu"));
  environment.mhz = std::atof(FieldOf(root + "/proc/cpuinfo", "cpu MHz").c_str());
  environment.date = UtcNow();
  environment.doubts = DoubtsOf(environment, RealTimeShare(root));
  return environment;
}

std::vector<std::string> SpoilingCauses(const Counters& before, const Counters& after, double wall_ns) {
  const Causes causes = CausesBetween(before, after, wall_ns);
  std::vector<std::string> words;
  const auto add = [&](Cause cause, std::string_view text, std::uint64_t Counters::* counter, double scale) {
    if (!causes.test(static_cast<std::size_t>(cause))) return;
    words.push_back(fmt::format(fmt::runtime(text), static_cast<double>(after.*counter - before.*counter) * scale));
  };
  add(Cause::kQuota, "stopped by the CPU quota for {:.1f} ms", &Counters::throttled_us, 1e-3);
  add(Cause::kSteal, "CPUs taken by the hypervisor for {:.0f} ms", &Counters::steal_ticks, 10);
  if (after.waits_known) {
    add(Cause::kInterrupted, "threads kept waiting by other programs for {:.1f} ms", &Counters::waited_ns, 1e-6);
  } else {
    add(Cause::kInterrupted, "interrupted by other programs {:.0f} times", &Counters::involuntary_switches, 1);
  }
  add(Cause::kDiskReads, "{:.0f} page(s) read from disk", &Counters::major_faults, 1);
  add(Cause::kPageFaults, "{:.0f} pages made for this process", &Counters::minor_faults, 1);
  add(Cause::kMigrated, "threads moved to another CPU {:.0f} times", &Counters::migrations, 1);
  add(Cause::kThermal, "clocks lowered because of heat {:.0f} times", &Counters::thermal_throttles, 1);
  return words;
}

std::string UtcNow() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace boltbeam::measure
