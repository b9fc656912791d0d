// Little's law, in one place: the bytes that a memory's rate and latency ask for.
#pragma once

#include <optional>
#include <string>

#include "chip/facts.h"

namespace boltbeam::roofline {

/// With the latency of an idle memory: what keeps it busy at the least, before any request waits for another. With that
/// of a memory which others read as fast as they can, queues and all: what is under way then.
struct InFlight {
  std::optional<double> latency_ns, bytes;
  std::optional<double> latency_loaded_ns, bytes_loaded;
};

/// Nanoseconds of a load from memory, as `chip measure` finds them.
struct Latencies {
  std::optional<double> idle_ns, loaded_ns;
};
Latencies LatenciesOf(const chip::Chip& chip);

/// At so many GB/s; empty where no latency is known.
InFlight InFlightAt(double bandwidth_gb_s, const Latencies& latencies);

/// "7.4 kB asked for by 120 ns (idle), 15.4 kB under way at 250 ns (loaded)"; empty without a latency.
std::string InFlightText(const InFlight& in_flight);

}  // namespace boltbeam::roofline
