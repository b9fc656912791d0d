// Facts about a chip, each with where it comes from. Only data: measuring is measure/'s business.
//
// The measured column is used, the published one is only shown. A fact that is not known stays unknown, and what needs
// it says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace boltbeam::chip {

enum class Provenance : std::uint8_t { kMeasured, kVendor, kDerived, kDetected, kUnknown };

std::string_view ProvenanceName(Provenance provenance);

/// What limits divide by.
enum class Use : std::uint8_t { kNone, kBandwidth, kPeak };

/// Names are fixed: read_bandwidth_gb_s, read_bandwidth_gb_s.threads_N, cache_bandwidth_gb_s, fma_f32_flop_s,
/// dot_i8_flop_s, barrier_ns, dispatch_ns, published_bandwidth_gb_s, peak_flop_s, peak_flop_s.<path>, cores, threads,
/// l1d_bytes, l2_bytes, l3_bytes (each of one cache), line_bytes, vector_bits, vector_registers, memory_bytes,
/// memory_limit_bytes, cpu_quota, numa_nodes, page_bytes, huge_page_bytes, transparent_huge_pages (0 never, 1 madvise,
/// 2 always), prefetch_bytes (how far ahead a kernel that streams fetches; unknown: it need not) ... A name may have
/// several readings.
struct Fact {
  std::string name;
  double value = 0;
  std::string unit;
  Provenance provenance = Provenance::kUnknown;
  std::string method;
  std::string date;
  double spread = 0;  // relative, of the measurement
  std::string source;
  Use use = Use::kNone;  // a row that has several readings says which one limits divide by
};

struct Chip {
  std::string id;       // "rtx-5090"
  std::string name;     // "RTX 5090"
  std::string backend;  // "cpu", "cuda", ...
  std::vector<Fact> facts;
  std::vector<std::string>
      features;      // instruction sets of a CPU, as in /proc/cpuinfo: avx2, fma, f16c, avx512_vnni, ...
  std::string note;  // why limits divide by the facts that they divide by

  /// The first reading of the fact of that name.
  const Fact* Find(std::string_view fact) const;
  std::optional<double> Get(std::string_view fact) const;
  bool Has(std::string_view feature) const;

  /// The bandwidth and the peak that limits divide by: the fact marked so, else a measured reading; never a published
  /// one. nullptr when unknown. On a chip without a matrix unit's figure the peak is the faster of its f32 and integer
  /// paths.
  const Fact* Bandwidth() const;
  const Fact* Peak() const;
};

/// One row of the registry, and what `chip measure` writes: boltbeam.chip.v1.
std::string ChipToJson(const Chip& chip);
/// text is JSON; where names it in errors.
Result<Chip> ChipFromJson(std::string_view text, const std::string& where);

/// The registry: data/chips/*.json, the user's rows in config_folder/chips/*.json, and --chip FILE.
Result<std::vector<Chip>> LoadRegistry(const std::string& config_folder);
Result<Chip> FindChip(const std::string& id_or_file, const std::string& config_folder);

/// Where the measured facts of this machine lie: data_folder/chips/<id>.json.
std::string MeasuredFile(const std::string& data_folder, const std::string& id);

/// This machine: topology, caches, instruction sets, memory, cgroup limits, and what data/cpus/*.json say of CPUs of
/// its vendor and family. Measured facts are read from data_folder/chips when `chip measure` has written them.
Result<Chip> DetectThisMachine();
/// A measured fact replaces a detected one of the same name.
Result<Chip> ThisMachine(const std::string& data_folder);

/// CPUs that this process may run on, as it was started, one per physical core first: the order in which threads are
/// pinned.
std::vector<int> UsableCpus();
/// CPUs' worth of quota from cgroup v1 or v2; the number of usable CPUs when there is none.
double CpuQuota();
/// Bytes that may still be allocated: the least of MemAvailable and the cgroup's limit less its use.
std::uint64_t AvailableMemoryBytes();

}  // namespace boltbeam::chip
