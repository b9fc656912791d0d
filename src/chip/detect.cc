// This machine: what the system and hwloc say about it. Measured facts come from a file that `chip measure` wrote.
#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <memory>

#include "base/paths.h"
#include "chip/facts.h"
#include "chip/system.h"

namespace boltbeam::chip {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

Topology LoadTopology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  // Devices, and what hangs on them, are not needed and take most of the time.
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(raw) != 0) return nullptr;
  return topology;
}

void AddDetected(Chip& chip, std::string name, double value, std::string unit, std::string method) {
  if (value > 0) {
    chip.facts.push_back(
        {std::move(name), value, std::move(unit), Provenance::kDetected, std::move(method), "", 0, "", Use::kNone});
  }
}

double CacheBytes(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
  return cache != nullptr ? static_cast<double>(cache->attr->cache.size) : 0;
}

void AddTopology(Chip& chip) {
  const Topology topology = LoadTopology();
  if (topology == nullptr) return;
  hwloc_topology_t raw = topology.get();
  AddDetected(chip, "cores", hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE), "", "hwloc");
  AddDetected(chip, "threads", hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PU), "", "hwloc");
  AddDetected(chip, "numa_nodes", hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_NUMANODE), "", "hwloc");
  AddDetected(chip, "l1d_bytes", CacheBytes(raw, HWLOC_OBJ_L1CACHE), "bytes", "hwloc");
  AddDetected(chip, "l2_bytes", CacheBytes(raw, HWLOC_OBJ_L2CACHE), "bytes", "hwloc");
  AddDetected(chip, "l3_bytes", CacheBytes(raw, HWLOC_OBJ_L3CACHE), "bytes", "hwloc");
  AddDetected(chip, "l3_count", hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_L3CACHE), "", "hwloc");
  const hwloc_obj_t l1 = hwloc_get_obj_by_type(raw, HWLOC_OBJ_L1CACHE, 0);
  const unsigned line = l1 != nullptr ? l1->attr->cache.linesize : 0;
  AddDetected(chip, "line_bytes", line, "bytes", "hwloc");
}

/// The widest vectors that the declared instruction sets have, and how many registers hold them.
void AddVectors(Chip& chip) {
  struct Width {
    std::string_view feature;
    double bits, registers;
  };
  constexpr Width kWidths[] = {{"avx512f", 512, 32}, {"avx", 256, 16}, {"sse2", 128, 16}, {"asimd", 128, 32}};
  for (const Width& width : kWidths) {
    if (!chip.Has(width.feature)) continue;
    AddDetected(chip, "vector_bits", width.bits, "bits", "instruction set " + std::string(width.feature));
    AddDetected(chip, "vector_registers", width.registers, "", "instruction set " + std::string(width.feature));
    return;
  }
}

void AddMemory(Chip& chip, const std::filesystem::path& root) {
  AddDetected(chip, "memory_bytes", static_cast<double>(MemInfo(root, "MemTotal").value_or(0)), "bytes",
              "/proc/meminfo");
  if (const std::optional<CgroupMemory> limit = CgroupMemoryLimit(root)) {
    AddDetected(chip, "memory_limit_bytes", static_cast<double>(limit->limit_bytes), "bytes", "control group");
  }
  AddDetected(chip, "page_bytes", static_cast<double>(::sysconf(_SC_PAGESIZE)), "bytes", "sysconf");
  AddDetected(chip, "huge_page_bytes", static_cast<double>(MemInfo(root, "Hugepagesize").value_or(0)), "bytes",
              "/proc/meminfo");
  if (const std::optional<int> mode = TransparentHugePages(root)) {
    chip.facts.push_back({"transparent_huge_pages", static_cast<double>(*mode), "", Provenance::kDetected,
                          "/sys/kernel/mm/transparent_hugepage: 0 never, 1 madvise, 2 always", "", 0, "", Use::kNone});
  }
}

std::string Slug(std::string_view text) {
  std::string slug;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 && byte < 128) {
      slug += static_cast<char>(std::tolower(byte));
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (slug.ends_with('-')) slug.pop_back();
  return slug;
}

/// Names the kind of machine, not the individual: virtual machines hide the model's name behind a common one, so that
/// family, model and stepping are part of it, and so are the CPUs that this process may use.
std::string MachineId(const CpuInfo& cpu, std::size_t usable_cpus) {
  const std::string model = cpu.model.empty() ? cpu.vendor : cpu.model;
  return Slug(fmt::format("{} {} {} {} {}cpu", model.empty() ? "cpu" : model, cpu.family, cpu.number, cpu.stepping,
                          usable_cpus));
}

}  // namespace

namespace {

std::vector<int> AffinityMask() {
  // The kernel refuses a mask that is too small for it; grow until it fits.
  for (int most = 1024; most <= (1 << 20); most *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(most), [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    if (set == nullptr || ::sched_getaffinity(0, bytes, set.get()) != 0) continue;
    std::vector<int> allowed;
    for (int cpu = 0; cpu < most; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) allowed.push_back(cpu);
    }
    return PinningOrder("/", allowed);
  }
  return {0};
}

}  // namespace

std::vector<int> UsableCpus() {
  static const std::vector<int> given = AffinityMask();  // before any thread of ours was pinned
  return given;
}

double CpuQuota() {
  const auto usable = static_cast<double>(UsableCpus().size());
  return std::min(usable, CgroupCpuQuota("/").value_or(usable));
}

std::uint64_t AvailableMemoryBytes() { return AvailableMemory("/"); }

Result<Chip> DetectMachine(const std::filesystem::path& root) {
  const std::filesystem::path file = root / "proc/cpuinfo";
  const std::optional<std::string> text = ReadSmallFile(file);
  if (!text) return Fail(Code::kChipDetect, file.string(), "it can't be read", "a Linux system with /proc mounted");
  const CpuInfo cpu = ParseCpuInfo(*text);
  const std::size_t usable = UsableCpus().size();
  Chip chip;
  chip.id = MachineId(cpu, usable);
  chip.name = cpu.model.empty() ? chip.id : cpu.model;
  chip.backend = "cpu";
  chip.features = cpu.features;
  AddTopology(chip);
  AddDetected(chip, "usable_cpus", static_cast<double>(usable), "", "sched_getaffinity");
  AddDetected(chip, "cpu_quota", CpuQuota(), "", "control groups and affinity");
  AddVectors(chip);
  AddMemory(chip, root);
  BOLTBEAM_ASSIGN(std::vector<Fact> of_family, FactsOfFamily(cpu));
  std::ranges::move(of_family, std::back_inserter(chip.facts));
  return chip;
}

Result<Chip> DetectThisMachine() { return DetectMachine("/"); }

std::string MeasuredFile(const std::string& data_folder, const std::string& id) {
  return data_folder + "/chips/" + id + ".json";
}

Result<Chip> ThisMachine(const std::string& data_folder) {
  BOLTBEAM_ASSIGN(Chip chip, DetectThisMachine());
  const std::string path = MeasuredFile(data_folder, chip.id);
  const Result<std::string> text = base::ReadWholeFile(path);
  if (!text) {
    if (text.error().code == Code::kFileNotFound) return chip;  // nothing was measured here yet
    return std::unexpected(text.error());
  }
  BOLTBEAM_ASSIGN(const Chip measured, ChipFromJson(*text, path));
  for (const Fact& fact : measured.facts) {
    if (fact.provenance == Provenance::kDetected) continue;  // the machine itself knows better
    std::erase_if(chip.facts,
                  [&](const Fact& own) { return own.name == fact.name && own.provenance == Provenance::kDetected; });
    chip.facts.push_back(fact);
  }
  return chip;
}

}  // namespace boltbeam::chip
