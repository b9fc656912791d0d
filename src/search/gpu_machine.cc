#include "search/gpu_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace boltbeam::search {
namespace {

/// Of the memory of a GPU, in round figures: recorded as the latency by which bytes under way are counted.
constexpr double kGuessedLatencyNs = 1000;

class Reader {
 public:
  Reader(const chip::Chip& chip, std::vector<std::string>& unknown) : chip_(chip), unknown_(unknown) {}

  /// The first of these facts that is known, or 0 and the first one's name among the unknown ones.
  double Ask(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (const auto value = chip_.Get(name); value && *value > 0) return *value;
    }
    unknown_.emplace_back(*names.begin());
    return 0;
  }

 private:
  const chip::Chip& chip_;
  std::vector<std::string>& unknown_;
};

}  // namespace

double GpuMachine::Drawn(double bytes_in_flight, double workgroups) const {
  double drawn = std::min(bandwidth_gb_s, bytes_in_flight / latency_ns);
  if (stream_gb_s > 0) drawn = std::min(drawn, workgroups * stream_gb_s);
  return drawn;
}

Result<GpuMachine> GpuMachineOf(const chip::Chip& chip) {
  GpuMachine machine;
  Reader reader(chip, machine.unknown);
  const chip::Fact* bandwidth = chip.Bandwidth();
  machine.bandwidth_gb_s =
      bandwidth != nullptr ? bandwidth->value : reader.Ask({"read_bandwidth_gb_s", "published_bandwidth_gb_s"});
  if (machine.bandwidth_gb_s <= 0) {
    return Fail(Code::kBoundNoBandwidth, chip.name, "neither a measured nor a published bandwidth is known",
                "a row with read_bandwidth_gb_s");
  }
  if (bandwidth == nullptr) machine.unknown.emplace_back("read_bandwidth_gb_s");
  machine.latency_ns = reader.Ask({"memory_latency_ns"});
  if (machine.latency_ns <= 0) machine.latency_ns = kGuessedLatencyNs;
  machine.subgroup = reader.Ask({"subgroup_lanes"});
  machine.multiprocessors = reader.Ask({"multiprocessors"});
  machine.lanes_each = reader.Ask({"lanes_per_multiprocessor"});
  machine.workgroups_each = reader.Ask({"workgroups_per_multiprocessor"});
  machine.registers_each = reader.Ask({"registers_per_multiprocessor"});
  machine.registers_per_lane = reader.Ask({"registers_per_lane_max"});
  machine.memory_each = reader.Ask({"multiprocessor_memory_bytes"});
  // A stream of few workgroups, measured: what one of them draws.
  if (const auto eight = chip.Get("read_bandwidth_gb_s.blocks_8")) machine.stream_gb_s = *eight / 8;
  machine.lane_operations_s =
      reader.Ask({"peak_flop_s.fma_fp32_fp32", "peak_flop_s.fma_f32_f32", "published_flop_s.fp32"}) / 2;
  machine.dispatch_ns = chip.Get("dispatch_ns").value_or(0);
  return machine;
}

}  // namespace boltbeam::search
