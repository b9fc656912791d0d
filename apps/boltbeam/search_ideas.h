// What no kernel can be timed for alone: fusions switched the other way, attention's geometries. Each has its bound or
// what is foretold of it first, and is judged on the whole token when that is worth a claim.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "engine/engine.h"
#include "engine/geometry_choice.h"
#include "model/model.h"
#include "report/decision.h"
#include "whole_token.h"

namespace boltbeam::app {

struct IdeaRequest {
  bool fusions = false, attention = false;
  std::uint64_t depth = 512;                    // for attention
  double budget_s = 60;                         // for all of them
  std::string plan;                             // what runs now, in the judge's word: "plan=FILE", or "default"
  std::vector<engine::GeometryChoice> choices;  // of that
  double token_ns = 0;                          // at the floor
  double smallest_claim = 0;                    // of the token
};

struct IdeaOutcome {
  std::vector<report::IdeaRow> rows;
  std::vector<engine::GeometryChoice> choices;  // with the attention that was promoted
  std::vector<std::string> with, without;       // routes whose other way was promoted
  std::optional<Whole> last;                    // promotion, over what was best until then
};

/// write_plan: the judge's word for a plan of these choices. machine: with the rates that predictions need. The engine
/// must have no session: a few tokens of its plan are timed, for the bounds.
Result<IdeaOutcome> TryIdeas(
    engine::Engine& engine, const chip::Chip& machine, WholeTokens& judge, const IdeaRequest& request,
    const std::function<Result<std::string>(const std::vector<engine::GeometryChoice>&)>& write_plan,
    const std::function<void(const std::string& trying)>& progress);

}  // namespace boltbeam::app
