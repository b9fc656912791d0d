#include "roofline/in_flight.h"

#include <fmt/format.h>

#include "roofline/formulas.h"

namespace boltbeam::roofline {

Latencies LatenciesOf(const chip::Chip& chip) {
  return {chip.Get("memory_latency_ns"), chip.Get("memory_latency_loaded_ns")};
}

InFlight InFlightAt(double bandwidth_gb_s, const Latencies& latencies) {
  InFlight in_flight{latencies.idle_ns, {}, latencies.loaded_ns, {}};
  if (in_flight.latency_ns) in_flight.bytes = BytesInFlight(bandwidth_gb_s, *in_flight.latency_ns);
  if (in_flight.latency_loaded_ns) {
    in_flight.bytes_loaded = BytesInFlight(bandwidth_gb_s, *in_flight.latency_loaded_ns);
  }
  return in_flight;
}

std::string InFlightText(const InFlight& in_flight) {
  std::string text;
  if (in_flight.bytes) {
    text = fmt::format("{:.1f} kB asked for by {:.0f} ns (idle)", *in_flight.bytes / 1e3, *in_flight.latency_ns);
  }
  if (in_flight.bytes_loaded) {
    text += fmt::format("{}{:.1f} kB under way at {:.0f} ns (loaded)", text.empty() ? "" : ", ",
                        *in_flight.bytes_loaded / 1e3, *in_flight.latency_loaded_ns);
  }
  return text;
}

}  // namespace boltbeam::roofline
