// What predictions ask of a GPU: its facts under one name each, and which of them are not known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"

namespace boltbeam::search {

struct GpuMachine {
  double bandwidth_gb_s = 0;  // measured; published where nothing was measured, and `unknown` says so
  double latency_ns = 0;      // of the memory; a round guess where it is not declared, and `unknown` says so
  double subgroup = 0;        // 0: not known
  double multiprocessors = 0, lanes_each = 0, workgroups_each = 0, registers_each = 0, registers_per_lane = 0;
  double memory_each = 0;            // local memory of a multiprocessor
  double stream_gb_s = 0;            // that one workgroup alone draws; 0: not known
  double lane_operations_s = 0;      // one for a lane and clock; 0: not known
  double dispatch_ns = 0;            // 0: not known
  std::vector<std::string> unknown;  // in the order in which they were asked for
  /// Relative half width of an interval that nothing was fitted to: wider for every term that is missing.
  [[nodiscard]] double Spread() const { return 0.25 + 0.1 * static_cast<double>(unknown.size()); }

  /// Bytes a nanosecond that this many bytes under way draw, in so many workgroups at once.
  [[nodiscard]] double Drawn(double bytes_in_flight, double workgroups) const;
};

/// kBoundNoBandwidth when no rate of the memory is known.
Result<GpuMachine> GpuMachineOf(const chip::Chip& chip);

}  // namespace boltbeam::search
