#include "engine/route_bounds.h"

#include <algorithm>
#include <string_view>

#include "chip/rates.h"

namespace boltbeam::engine {
namespace {

constexpr const char* kOfThisPlan = "this plan's tokens";

PlanCost Difference(const PlanCost& more, const PlanCost& less) {
  return {more.barriers - less.barriers, more.calls - less.calls, more.bytes - less.bytes,
          more.instructions - less.instructions, more.streamed - less.streamed};
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

double BarrierWaits::LongestNs(std::vector<double> ns, double barriers) {
  std::ranges::sort(ns, std::ranges::greater{});
  double sum = 0, left = barriers;
  for (const double wait : ns) {
    if (left < 1) break;
    sum += wait;
    --left;
  }
  // More than the plan has, as the plan without the route may: those beyond are like these.
  return left >= 1 ? sum * barriers / static_cast<double>(ns.size()) : sum;
}

void FillIn(RouteBound& bound, const chip::Chip& machine, const BarrierWaits& waits) {
  std::string& missing = bound.missing;
  missing.clear();
  const auto saved = [](double value) { return std::max(0.0, value); };
  const PlanCost& cost = bound.saved;
  const auto threads = chip::ThreadsMeasured(machine, "vector_instructions_s");
  const auto barrier_ns = FirstOf(machine, {"barrier_ns"}, missing);
  const auto call_ns = FirstOf(machine, {"memory_latency_loaded_ns", "memory_latency_ns"}, missing);
  const auto bytes_ns = FirstOf(machine, {"read_bandwidth_gb_s.threads_1", "read_bandwidth_gb_s"}, missing);
  // A thread is slowest when all of them issue.
  const auto issued = chip::RateOn(machine, "vector_instructions_s", threads);
  if (!issued && missing.empty()) missing = "vector_instructions_s";
  std::optional<double> at_barriers = 0;
  if (cost.barriers > 0) {
    const auto fact = waits.ns.empty() ? FirstOf(machine, {"barrier_wait_ns"}, missing) : std::nullopt;
    bound.waits_from = waits.ns.empty() ? "barrier_wait_ns" : kOfThisPlan;
    at_barriers = !waits.ns.empty() ? BarrierWaits::LongestNs(waits.ns, cost.barriers)
                  : fact            ? std::optional(cost.barriers * *fact)
                                    : std::nullopt;
  }
  if (!missing.empty() || !at_barriers) return;
  bound.waits_ns = *at_barriers + saved(cost.streamed) / *bytes_ns;
  bound.at_most_ns = saved(cost.barriers) * *barrier_ns + saved(cost.calls) * *call_ns + saved(cost.bytes) / *bytes_ns +
                     saved(cost.instructions) / (*issued / threads) * 1e9 + *bound.waits_ns;
}

void FillInWaits(RouteBound& bound, const BarrierWaits& waits) {
  if (waits.unshared_ns.empty()) {
    bound.missing = "waits of this plan's tokens";
    return;
  }
  bound.waits_from = kOfThisPlan;
  const auto barriers =
      bound.uses > 0 ? static_cast<double>(bound.uses) : static_cast<double>(waits.unshared_ns.size());
  bound.waits_ns = bound.at_most_ns = BarrierWaits::LongestNs(waits.unshared_ns, barriers);
}

Result<std::vector<RouteBound>> RouteBounds(const Engine& engine, const chip::Chip& machine,
                                            const BarrierWaits& waits) {
  std::vector<RouteBound> bounds;
  for (const Route& route : Routes()) {
    RouteBound bound;
    bound.route = &route;
    const auto use = engine.route_uses().find(route.name);
    if (use != engine.route_uses().end()) bound.uses = use->second;
    std::vector<std::string> without;
    for (const Route& other : Routes()) {
      if (other.in_place_of == route.name) without.push_back(other.name);
    }
    BOLTBEAM_ASSIGN(const PlanCost taken, engine.Cost({route.name}, without));
    without.push_back(route.name);
    BOLTBEAM_ASSIGN(const PlanCost closed, engine.Cost({}, without));
    bound.saved = Difference(closed, taken);
    if (route.saves_waits) {
      FillInWaits(bound, waits);
    } else {
      FillIn(bound, machine, waits);
    }
    bounds.push_back(std::move(bound));
  }
  return bounds;
}

}  // namespace boltbeam::engine
