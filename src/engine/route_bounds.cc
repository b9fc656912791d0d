#include "engine/route_bounds.h"

#include <algorithm>
#include <string_view>

namespace boltbeam::engine {
namespace {

PlanCost Difference(const PlanCost& more, const PlanCost& less) {
  return {more.barriers - less.barriers, more.calls - less.calls, more.bytes - less.bytes,
          more.instructions - less.instructions};
}

/// The first of these facts that is known; else the first one's name is what is missing.
std::optional<double> FirstOf(const chip::Chip& machine, std::initializer_list<std::string_view> names,
                              std::string& missing) {
  for (const std::string_view name : names) {
    if (const auto value = machine.Get(name)) return value;
  }
  if (missing.empty()) missing = *names.begin();
  return std::nullopt;
}

}  // namespace

std::optional<double> AtMostNs(const PlanCost& saved, const chip::Chip& machine, std::string& missing) {
  missing.clear();
  const auto barrier_ns = FirstOf(machine, {"barrier_ns"}, missing);
  const auto call_ns = FirstOf(machine, {"memory_latency_loaded_ns", "memory_latency_ns"}, missing);
  const auto bytes_ns = FirstOf(machine, {"read_bandwidth_gb_s.threads_1", "read_bandwidth_gb_s"}, missing);
  const auto instructions = FirstOf(machine, {"vector_instructions_s"}, missing);
  if (!barrier_ns || !call_ns || !bytes_ns || !instructions) return std::nullopt;
  const double threads = std::max(1.0, machine.Get("cores").value_or(1));  // that the rate was measured on
  const double ns = saved.barriers * *barrier_ns + saved.calls * *call_ns + saved.bytes / *bytes_ns +
                    saved.instructions / (*instructions / threads) * 1e9;
  return std::max(0.0, ns);
}

Result<std::vector<RouteBound>> RouteBounds(const Engine& engine, const chip::Chip& machine) {
  std::vector<RouteBound> bounds;
  for (const Route& route : Routes()) {
    RouteBound bound;
    bound.route = &route;
    const auto use = engine.route_uses().find(route.name);
    if (use != engine.route_uses().end()) bound.uses = use->second;
    BOLTBEAM_ASSIGN(const PlanCost with, engine.Cost({route.name}, {}));
    BOLTBEAM_ASSIGN(const PlanCost without, engine.Cost({}, {route.name}));
    bound.saved = Difference(without, with);
    if (route.saves.empty()) bound.at_most_ns = AtMostNs(bound.saved, machine, bound.missing);
    bounds.push_back(std::move(bound));
  }
  return bounds;
}

}  // namespace boltbeam::engine
