#include "judge/route_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "engine/routes.h"

namespace boltbeam::judge {
namespace {

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// The routes about which the sides were asked to differ.
std::set<std::string> Switched(const EngineSide& a, const EngineSide& b) {
  std::set<std::string> names;
  for (const std::vector<std::string>* list : {&a.with, &a.without, &b.with, &b.without}) {
    for (const std::string& name : *list) {
      if (Has(a.with, name) != Has(b.with, name) || Has(a.without, name) != Has(b.without, name)) names.insert(name);
    }
  }
  return names;
}

std::vector<std::string> Joined(std::vector<std::string> names, const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

// What the registry and the switches say; a route that the registry does not have is what the other side is not.
bool IsMeantOn(const EngineSide& side, const EngineSide& other, const std::string& name) {
  if (engine::FindRoute(name) != nullptr) {
    const engine::Options& options = side.engine->options();
    return engine::IsRouteOn(name, Joined(options.with, side.with), Joined(options.without, side.without));
  }
  if (Has(side.without, name)) return false;
  if (Has(side.with, name)) return true;
  return Has(other.without, name);
}

std::uint32_t Uses(const EngineSide& side, const std::string& name) {
  const auto found = side.engine->route_uses().find(name);
  return found == side.engine->route_uses().end() ? 0 : found->second;
}

// A step ran when some thread stamped its begin and, not before that, its end.
std::string FirstStepNotRun(const engine::Engine& engine, const engine::Trace& stamps) {
  for (std::size_t step = 0; step < engine.steps().size(); ++step) {
    bool ran = false;
    for (std::size_t thread = 0; thread < stamps.step_begin.size() && !ran; ++thread) {
      ran = step < stamps.step_begin[thread].size() && step < stamps.step_end[thread].size() &&
            stamps.step_begin[thread][step] >= stamps.token_begin && stamps.step_begin[thread][step] != 0 &&
            stamps.step_end[thread][step] >= stamps.step_begin[thread][step];
    }
    if (!ran) return engine.steps()[step].kernel.empty() ? engine.steps()[step].role : engine.steps()[step].kernel;
  }
  return {};
}

// Steps of a side whose kernels the other one does not run.
std::size_t StepsOfItsOwn(const EngineSide& side, const EngineSide& other) {
  std::set<std::string> kernels;
  for (const engine::StepInfo& step : other.engine->steps()) kernels.insert(step.kernel_id);
  return static_cast<std::size_t>(std::ranges::count_if(
      side.engine->steps(), [&](const engine::StepInfo& step) { return !kernels.contains(step.kernel_id); }));
}

RouteFinding FailWith(std::string detail, bool available = true) {
  return {{std::string(kRoute), State::kFail, std::move(detail)}, available};
}

}  // namespace

RouteFinding CheckRoutes(const EngineSide& a, const EngineSide& b, const engine::Trace& a_stamps,
                         const engine::Trace& b_stamps) {
  std::vector<std::string> proof;
  for (const std::string& name : Switched(a, b)) {
    const bool a_on = IsMeantOn(a, b, name), b_on = IsMeantOn(b, a, name);
    const std::uint32_t a_uses = Uses(a, name), b_uses = Uses(b, name);
    if (a_uses == 0 && b_uses == 0) {
      return FailWith(fmt::format("{}: this model and chip can't take it", name), false);
    }
    for (const auto& [side, on, uses] : {std::tuple("A", a_on, a_uses), std::tuple("B", b_on, b_uses)}) {
      if (on && uses == 0) return FailWith(fmt::format("{} fell back: {} was to run and did not", side, name));
      if (!on && uses > 0) return FailWith(fmt::format("{}: {} was to be closed and ran {} times", side, name, uses));
    }
    proof.push_back(fmt::format("{} {} times in A, {} in B", name, a_uses, b_uses));
  }
  if ((!proof.empty() || a.plan != b.plan) && a.engine->plan_id() == b.engine->plan_id()) {
    return FailWith("both sides have the same plan although they were asked to differ");
  }
  for (const auto& [side, engine, stamps] :
       {std::tuple("A", a.engine, &a_stamps), std::tuple("B", b.engine, &b_stamps)}) {
    const std::string missing = FirstStepNotRun(*engine, *stamps);
    if (!missing.empty()) return FailWith(fmt::format("{}: {} is in the plan and did not run", side, missing));
  }
  if (proof.empty()) {
    proof.emplace_back(a.engine->plan_id() == b.engine->plan_id()
                           ? "the same plan on both sides"
                           : fmt::format("two plans: {} of B's {} steps run kernels that A has none of",
                                         StepsOfItsOwn(b, a), b.engine->steps().size()));
  }
  return {{std::string(kRoute), State::kPass,
           fmt::format("{}; every step of both was seen to run", fmt::join(proof, ", "))}};
}

}  // namespace boltbeam::judge
