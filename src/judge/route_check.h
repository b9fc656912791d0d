// Whether the intended route ran and the other was closed: by the plans' own count and by the stamps of a token.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"
#include "judge/gate.h"

namespace boltbeam::judge {

struct RouteFinding {
  Condition condition;
  bool available = true;  // false: neither side can take the route with this model on this chip
};

/// An engine, the routes that its side was asked to take or to leave, and the name of the plan that it was to run.
struct EngineSide {
  engine::Engine* engine = nullptr;
  std::vector<std::string> with, without;
  std::string plan = {};  // empty: none was named
};

/// stamps: of one decoded token of each side.
RouteFinding CheckRoutes(const EngineSide& a, const EngineSide& b, const engine::Trace& a_stamps,
                         const engine::Trace& b_stamps);

}  // namespace boltbeam::judge
