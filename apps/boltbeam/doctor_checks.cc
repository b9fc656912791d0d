#include "doctor_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

#include "chip/facts.h"
#include "codegen/codegen.h"
#include "measure/environment.h"

namespace boltbeam::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFound = "found";
constexpr const char* kMissing = "missing";
constexpr const char* kNotApplicable = "n/a";

std::string Gigabytes(std::uint64_t bytes) { return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9); }

Finding VectorFeatures(const chip::Chip& machine) {
  constexpr const char* kInteresting[] = {"sse4_2",   "avx",      "avx2",        "fma",      "f16c",        "avx512f",
                                          "avx512bw", "avx512vl", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8",
                                          "asimd",    "asimddp",  "i8mm",        "sve"};
  std::vector<std::string> present;
  for (const char* feature : kInteresting) {
    if (machine.Has(feature)) present.emplace_back(feature);
  }
  if (present.empty())
    return {"vector instructions", kMissing, machine.name, "kernels run as plain code: slow, but right"};
  return {"vector instructions", kFound, fmt::format("{}: {}", machine.name, fmt::join(present, " ")), ""};
}

Finding Clock(const chip::Chip& machine) {
  if (machine.Has("constant_tsc") && machine.Has("nonstop_tsc")) return {"steady clock", kFound, "invariant TSC", ""};
  return {"steady clock", kNotApplicable, "no invariant counter; CLOCK_MONOTONIC_RAW is used", ""};
}

Finding Cores() {
  const std::size_t usable = chip::UsableCpus().size();
  const unsigned online = std::thread::hardware_concurrency();
  const std::string detail = fmt::format("{} of {} CPUs may be used", usable, std::max<std::size_t>(online, usable));
  return {"CPUs", kFound, detail, ""};
}

Finding Quota() {
  const double quota = chip::CpuQuota();
  const auto usable = static_cast<double>(chip::UsableCpus().size());
  if (quota >= usable) return {"CPU quota", kNotApplicable, "no control group limits CPU time", ""};
  return {"CPU quota", kFound, fmt::format("{:.2f} CPUs' worth for {:.0f} CPUs", quota, usable),
          fmt::format("threads beyond the quota are stopped in mid-token: raise it, or use -t {:.0f}",
                      std::max(1.0, std::floor(quota)))};
}

Finding Memory() {
  const std::uint64_t bytes = chip::AvailableMemoryBytes();
  return {"memory", kFound, Gigabytes(bytes) + " may still be used", ""};
}

Finding HugePages(const measure::Environment& environment) {
  if (environment.huge_pages.empty()) {
    return {"huge pages", kNotApplicable, "this kernel has no transparent huge pages", ""};
  }
  if (environment.huge_pages == "never") {
    return {"huge pages", kMissing, "transparent huge pages are off",
            "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
  }
  return {"huge pages", kFound, "transparent huge pages: " + environment.huge_pages, ""};
}

Finding Governor(const measure::Environment& environment) {
  if (environment.governor.empty()) return {"frequency governor", kNotApplicable, "the machine does not say", ""};
  if (environment.governor == "performance") return {"frequency governor", kFound, "performance", ""};
  return {"frequency governor", kFound, environment.governor,
          "steadier figures: as root, cpupower frequency-set -g performance"};
}

Finding CodeGenerator() {
  const Result<void> loaded = codegen::LoadPlugin();
  if (loaded) return {"code generator", kFound, "LLVM " + codegen::CompilerVersion(), ""};
  return {"code generator", kMissing, fmt::format("{}: {}", loaded.error().where, loaded.error().found),
          loaded.error().expected};
}

Finding Folder(const std::string& item, const fs::path& folder) {
  const fs::path probe = folder / fmt::format(".doctor.{}", ::getpid());
  const Result<void> written = base::WriteFileAtomically(probe, "");
  std::error_code error;
  fs::remove(probe, error);
  if (!written) {
    return {item, kMissing, fmt::format("{}: {}", folder.string(), written.error().found),
            "make it writable, or move all folders with --home DIR"};
  }
  return {item, kFound, folder.string(), ""};
}

Finding DiskSpace(const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error) return {"disk space", kNotApplicable, folder.string() + ": " + error.message(), ""};
  constexpr std::uintmax_t kLittle = 2'000'000'000;
  return {"disk space", kFound, fmt::format("{} free in {}", Gigabytes(space.available), folder.string()),
          space.available < kLittle ? "synthetic models need 0.5 GB and more: free some, or use --home DIR" : ""};
}

bool OnPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && ::access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

Finding OtherProgram() {
  std::vector<std::string> present, absent;
  for (const char* tool : {"llama-bench", "llama-perplexity", "llama-tokenize", "llama-quantize"}) {
    (OnPath(tool) ? present : absent).emplace_back(tool);
  }
  if (absent.empty()) return {"llama.cpp", kFound, fmt::format("{} on PATH", fmt::join(present, " ")), ""};
  return {"llama.cpp", kMissing, fmt::format("not on PATH: {}", fmt::join(absent, " ")),
          "to compare with it: PATH=\"$(scripts/fetch-llama-cpp):$PATH\""};
}

Finding Measured(const base::Paths& paths) {
  const Result<chip::Chip> machine = chip::ThisMachine(paths.data.string());
  const chip::Fact* bandwidth = machine ? machine->Find("read_bandwidth_gb_s") : nullptr;
  if (bandwidth == nullptr || bandwidth->provenance != chip::Provenance::kMeasured) {
    return {"measured limits", kMissing, "this machine has not been measured", "boltbeam chip measure"};
  }
  return {"measured limits", kFound, fmt::format("reads {:.1f} GB/s, measured {}", bandwidth->value, bandwidth->date),
          ""};
}

Finding PerformanceCounters() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.size = sizeof(attributes);
  attributes.config = PERF_COUNT_HW_CPU_CYCLES;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  const long fd = ::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
  if (fd >= 0) {
    ::close(static_cast<int>(fd));
    return {"performance counters", kFound, "cycles can be counted", ""};
  }
  if (errno == EACCES || errno == EPERM) {
    return {"performance counters", kMissing, "not permitted", "as root: sysctl kernel.perf_event_paranoid=2"};
  }
  return {"performance counters", kNotApplicable, std::string("this machine offers none: ") + std::strerror(errno), ""};
}

}  // namespace

std::vector<Finding> Examine(const base::Paths& paths) {
  std::vector<Finding> findings;
  const measure::Environment environment = measure::ReadEnvironment();
  if (const Result<chip::Chip> machine = chip::DetectThisMachine()) {
    findings.push_back(VectorFeatures(*machine));
    findings.push_back(Clock(*machine));
  } else {
    findings.push_back({"processor", kMissing, machine.error().Message(), "a Linux with /proc and /sys mounted"});
  }
  findings.push_back(Cores());
  findings.push_back(Quota());
  findings.push_back(Memory());
  findings.push_back(HugePages(environment));
  findings.push_back(Governor(environment));
  findings.push_back(PerformanceCounters());
  findings.push_back(CodeGenerator());
  findings.push_back(Folder("data folder", paths.data));
  findings.push_back(Folder("cache folder", paths.cache));
  findings.push_back(DiskSpace(paths.cache));
  findings.push_back(Measured(paths));
  findings.push_back(OtherProgram());
  return findings;
}

}  // namespace boltbeam::app
