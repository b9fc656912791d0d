// A whole comparison of two engines, or of two programs: checks first, then windows, then the gate.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "judge/gate.h"
#include "judge/output_check.h"
#include "judge/route_check.h"
#include "judge/window_conditions.h"
#include "measure/environment.h"

namespace boltbeam::judge {

struct Request {
  std::vector<std::uint64_t> depths{0};
  double budget_s = 30;  // of windows, at each depth
  std::uint64_t seed = 1;
  std::uint32_t output_tokens = 32;  // compared at each depth
};

struct Hooks {
  std::function<void(const std::string& what, double done, double total)> progress;  // between timed parts
  std::function<bool()> cancelled;
};

/// Everything that a verdict is derived from, so that it can be derived again.
struct Run {
  Findings findings;
  std::vector<DepthSamples> samples;
  measure::Environment environment;
  std::vector<std::string> disturbances;  // over the whole run
  double seconds = 0;
};

/// What only someone with a model and a chip knows about the two engines.
struct EngineContext {
  std::function<double()> limit;                                   // GB/s, one reading; empty: not probed
  std::function<double(bool b, std::uint64_t depth)> token_bytes;  // that a token must read
  std::function<Result<ReferenceFinding>(engine::Session& a, engine::Session& b)> reference;  // empty: none given
  measure::Environment environment;  // read before anything is loaded, which pins threads
  bool same_model = true;
  std::string off_switch;                  // how B is turned off; empty: not known
  std::optional<bool> off_switch_gives_a;  // whether it was seen to lead back to A's plan; nothing: it can't be seen
};

/// off_switch: unknown without one, and where it can't be seen where it leads.
Condition OffSwitch(const std::string& off_switch, std::optional<bool> gives_a);

/// Windows are only taken when the output and the routes have passed, or when `output` is merely unknown.
Result<Run> CompareEngines(const EngineSide& a, const EngineSide& b, const EngineContext& context,
                           const Request& request, const Thresholds& thresholds, const Hooks& hooks = {});

/// Positions that each engine's KV cache must hold.
std::uint64_t ContextNeeded(const Request& request);

}  // namespace boltbeam::judge
