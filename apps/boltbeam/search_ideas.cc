#include "search_ideas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/attention_choice.h"
#include "engine/routes.h"
#include "measure/kernel_times.h"
#include "search/attention_space.h"
#include "search/plan_use.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

constexpr std::size_t kMostAttention = 4;  // geometries that are judged
constexpr double kLeastJudge_s = 3, kMostJudge_s = 20, kLoad_s = 5;

/// An idea that is worth asking about, in the judge's words.
struct Idea {
  report::IdeaRow row;
  std::string depths = "0";
  std::string route;    // or attention's knobs, and the plan that has them
  bool is_off = false;  // the route, once the idea is taken
  std::string attention, plan;
};

/// What runs: the judge's word for a plan, and routes that go another way.
struct Running {
  std::string plan;
  std::vector<std::string> with, without;

  /// In the order in which the judge writes them down.
  [[nodiscard]] Side Words() const {
    Side side;
    if (!with.empty()) side.push_back(fmt::format("with={}", fmt::join(with, "+")));
    if (!without.empty()) side.push_back(fmt::format("without={}", fmt::join(without, "+")));
    if (plan != search::kDefaultPlan || side.empty()) side.push_back(plan);
    return side;
  }
};

class IdeaTrials {
 public:
  IdeaTrials(engine::Engine& engine, const chip::Chip& machine, WholeTokens& judge, const IdeaRequest& request)
      : engine_(engine), machine_(machine), judge_(judge), request_(request), best_{request.plan, {}, {}} {
    outcome_.choices = request.choices;
  }

  Result<IdeaOutcome> Run(
      const std::function<Result<std::string>(const std::vector<engine::GeometryChoice>&)>& write_plan,
      const std::function<void(const std::string&)>& progress) {
    if (request_.fusions) BOLTBEAM_TRY(Fusions());
    if (request_.attention) BOLTBEAM_TRY(Attention(write_plan));
    if (!missing_.empty()) {
      Note(fmt::format("note: no bounds of fusions, as {} is not known: `boltbeam chip measure` finds it", missing_));
    }
    const double each_s =
        std::clamp(request_.budget_s / static_cast<double>(std::max<std::size_t>(1, ideas_.size())) - kLoad_s,
                   kLeastJudge_s, kMostJudge_s);
    for (Idea& idea : ideas_) {
      if (Interrupted()) return Fail(Code::kInterrupted, "search", "stopped by the user");
      progress(idea.row.name);
      BOLTBEAM_TRY(Try(idea, each_s));
      outcome_.rows.push_back(std::move(idea.row));
    }
    return std::move(outcome_);
  }

 private:
  /// Bounds first: what a switch can be worth at most.
  Result<void> Fusions() {
    BOLTBEAM_ASSIGN(const measure::RouteList routes, measure::BoundRoutes(engine_, machine_, Interrupted));
    for (const engine::RouteBound& bound : routes.bounds) {
      Idea idea;
      idea.route = bound.route->name;
      idea.is_off = engine::IsRouteOn(idea.route, {}, {});
      idea.row.name = fmt::format("{} {}", idea.is_off ? "without" : "with", idea.route);
      idea.row.foretold_ns = bound.at_most_ns;
      const bool is_possible = !idea.is_off || bound.uses > 0;
      const double share = bound.at_most_ns.value_or(request_.token_ns) / request_.token_ns;
      if (!bound.at_most_ns && !bound.missing.empty()) missing_ = bound.missing;
      if (!is_possible) {
        idea.row.closed = "not taken by this plan: " + bound.route->needs;
      } else if (!bound.route->refuted.empty()) {
        idea.row.closed = "recorded as refuted: " + bound.route->refuted;
      } else if (share < request_.smallest_claim) {
        idea.row.closed = fmt::format("at most {:.2f} % of a token at the floor: under the smallest claim of {:.0f} %",
                                      100 * share, 100 * request_.smallest_claim);
      }
      if (!idea.row.closed.empty()) {
        outcome_.rows.push_back(std::move(idea.row));
        continue;
      }
      ideas_.push_back(std::move(idea));
    }
    return {};
  }

  Result<void> Attention(
      const std::function<Result<std::string>(const std::vector<engine::GeometryChoice>&)>& write_plan) {
    const search::AttentionPart part =
        search::AttentionPartOf(engine_.model(), engine_.options().cache, std::max<std::uint64_t>(1, request_.depth));
    const search::KnobSpace space = search::AttentionSpace(part, machine_);
    BOLTBEAM_ASSIGN(const search::AttentionForesight foresight,
                    search::PredictAttention(part, space, machine_, engine_.options().threads));
    const auto is_usual = [&](const search::AttentionPrediction& one) {
      return IsUsual(space, space.points[one.point]);
    };
    const auto usual = std::ranges::find_if(foresight.survivors, is_usual);
    std::size_t count = 0;
    for (const search::AttentionPrediction& one : foresight.survivors) {
      if (is_usual(one)) continue;
      if (++count > kMostAttention) break;
      Idea idea;
      idea.attention = KnobsOf(part, space, space.points[one.point]);
      idea.row.name = "attention " + idea.attention;
      if (usual != foresight.survivors.end()) idea.row.foretold_ns = (usual->ns - one.ns) * part.layers;
      idea.depths = request_.depth == 0 ? "0" : fmt::format("0,{}", request_.depth);
      std::vector<engine::GeometryChoice> choices = request_.choices;
      choices.push_back({std::string(engine::kAttentionTable), idea.attention});
      BOLTBEAM_ASSIGN(idea.plan, write_plan(choices));
      ideas_.push_back(std::move(idea));
    }
    return {};
  }

  /// Without the instruction of keys in codes where this search timed none: another cache may have them.
  static std::string KnobsOf(const search::AttentionPart& part, const search::KnobSpace& space,
                             const search::KnobPoint& point) {
    if (part.has_key_codes) return space.Text(point);
    return fmt::format("lanes={},chunk={}", space.ValueOf(point, "lanes"), space.ValueOf(point, "chunk"));
  }

  [[nodiscard]] bool IsUsual(const search::KnobSpace& space, const search::KnobPoint& point) const {
    return space.ValueOf(point, "chunk") == kernel::AttentionShape().chunk &&
           space.ValueOf(point, "lanes") == kernel::VectorFactsOf(machine_).lanes;
  }

  /// Against what was best so far; a promotion becomes that.
  Result<void> Try(Idea& idea, double budget_s) {
    Running next = best_;
    if (!idea.route.empty()) (idea.is_off ? next.without : next.with).push_back(idea.route);
    if (!idea.plan.empty()) next.plan = idea.plan;
    BOLTBEAM_ASSIGN(const Whole whole, judge_.Judge(best_.Words(), next.Words(), budget_s, 1, idea.depths));
    idea.row.verdict = whole.verdict;
    idea.row.outcome = whole.outcome;
    if (whole.outcome.empty()) idea.row.closed = whole.reason;
    idea.row.ratio = whole.ratio;
    idea.row.low = whole.low;
    idea.row.high = whole.high;
    if (!whole.IsPromoted()) return {};
    best_ = std::move(next);
    outcome_.last = whole;
    outcome_.with = best_.with;
    outcome_.without = best_.without;
    if (!idea.attention.empty()) outcome_.choices.push_back({std::string(engine::kAttentionTable), idea.attention});
    return {};
  }

  engine::Engine& engine_;
  const chip::Chip& machine_;
  WholeTokens& judge_;
  const IdeaRequest& request_;
  Running best_;
  std::vector<Idea> ideas_;
  std::string missing_;  // a fact that bounds need
  IdeaOutcome outcome_;
};

}  // namespace

Result<IdeaOutcome> TryIdeas(
    engine::Engine& engine, const chip::Chip& machine, WholeTokens& judge, const IdeaRequest& request,
    const std::function<Result<std::string>(const std::vector<engine::GeometryChoice>&)>& write_plan,
    const std::function<void(const std::string& trying)>& progress) {
  return IdeaTrials(engine, machine, judge, request).Run(write_plan, progress);
}

}  // namespace boltbeam::app
