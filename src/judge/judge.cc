#include "judge/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ticks.h"
#include "judge/engine_rounds.h"
#include "measure/bench.h"
#include "measure/clock.h"

namespace boltbeam::judge {
namespace {

// One comparison under way.
class Comparison {
 public:
  Comparison(const EngineSide& a, const EngineSide& b, const EngineContext& context, const Request& request,
             const Thresholds& thresholds, const Hooks& hooks)
      : a_(a), b_(b), context_(context), request_(request), thresholds_(thresholds), hooks_(hooks) {}

  Result<Run> Go() {
    BOLTBEAM_ASSIGN(clock_, measure::GetClock());
    BOLTBEAM_ASSIGN(session_a_, a_.engine->NewSession());
    BOLTBEAM_ASSIGN(session_b_, b_.engine->NewSession());
    run_.environment = context_.environment;
    const std::uint64_t begin = base::MonotonicNs();
    depths_ = request_.depths;
    std::ranges::sort(depths_);
    depths_.erase(std::ranges::unique(depths_).begin(), depths_.end());
    BOLTBEAM_TRY(CheckSides());
    if (MayBeTimed()) {
      for (auto depth = depths_.rbegin(); depth != depths_.rend(); ++depth) BOLTBEAM_TRY(TimeDepth(*depth));
      AddWindowConditions(run_.findings, run_.samples, thresholds_);
    }
    const std::uint64_t wall_ns = base::MonotonicNs() - begin;
    run_.seconds = static_cast<double>(wall_ns) / 1e9;
    AddDisturbances();
    return std::move(run_);
  }

 private:
  // Contexts grow while outputs are compared and shrink while windows are timed: each depth is computed once.
  Result<void> CheckSides() {
    const std::uint32_t vocabulary = a_.engine->model().hyper().vocab;
    if (b_.engine->model().hyper().vocab != vocabulary) {
      return Fail(Code::kUsage, "B", fmt::format("{} tokens in its vocabulary", b_.engine->model().hyper().vocab),
                  fmt::format("{}, as in A", vocabulary));
    }
    const std::vector<std::int32_t> tokens =
        measure::RandomTokens(vocabulary, request_.output_tokens, request_.seed + 2);
    for (const std::uint64_t depth : depths_) {
      if (hooks_.progress) hooks_.progress("comparing outputs", 0, 1);
      BOLTBEAM_TRY(FillBoth(depth));
      BOLTBEAM_TRY(CompareOutputs(*session_a_, *session_b_, tokens, vocabulary, output_, hooks_.cancelled));
    }
    BOLTBEAM_TRY(CheckTheRoutes(tokens.front()));
    std::optional<ReferenceFinding> reference;
    if (context_.reference && !output_.Bitwise()) {
      BOLTBEAM_ASSIGN(reference, context_.reference(*session_a_, *session_b_));
      BOLTBEAM_TRY(session_a_->Truncate(0));  // what it left is not the context that the seed stands for
      BOLTBEAM_TRY(session_b_->Truncate(0));
      BOLTBEAM_TRY(FillBoth(depths_.back()));
    }
    for (Condition& condition :
         OutputConditions(output_, reference ? &*reference : nullptr, context_.same_model, thresholds_)) {
      run_.findings.conditions.push_back(std::move(condition));
    }
    AddMemory();
    run_.findings.conditions.push_back(OffSwitch(context_.off_switch, context_.off_switch_gives_a));
    return {};
  }

  Result<void> FillBoth(std::uint64_t depth) {
    const measure::BenchHooks hooks{{}, hooks_.cancelled};
    BOLTBEAM_TRY(measure::FillContext(*a_.engine, *session_a_, depth, request_.seed, hooks));
    return measure::FillContext(*b_.engine, *session_b_, depth, request_.seed, hooks);
  }

  Result<void> CheckTheRoutes(std::int32_t token) {
    engine::Trace stamps_a, stamps_b;
    const std::uint64_t depth = session_a_->depth();
    BOLTBEAM_TRY(session_a_->Decode(token, &stamps_a));
    BOLTBEAM_TRY(session_b_->Decode(token, &stamps_b));
    BOLTBEAM_TRY(session_a_->Truncate(depth));
    BOLTBEAM_TRY(session_b_->Truncate(depth));
    RouteFinding route = CheckRoutes(a_, b_, stamps_a, stamps_b);
    run_.findings.route_available = route.available;
    run_.findings.conditions.push_back(std::move(route.condition));
    return {};
  }

  void AddMemory() {
    const auto total = [](const engine::MemoryUse& use) {
      return static_cast<double>(use.weights_bytes + use.kv_bytes + use.workspace_bytes) / 1e6;
    };
    run_.findings.conditions.push_back(
        {std::string(kMemory), State::kPass,
         fmt::format("both fit: A {:.1f} MB, B {:.1f} MB", total(a_.engine->memory()), total(b_.engine->memory()))});
  }

  [[nodiscard]] bool MayBeTimed() const {
    return std::ranges::none_of(run_.findings.conditions, [](const Condition& condition) {
      return condition.state == State::kFail && condition.name != kOffSwitch;
    });
  }

  Result<void> TimeDepth(std::uint64_t depth) {
    BOLTBEAM_TRY(FillBoth(depth));
    const std::uint32_t vocabulary = a_.engine->model().hyper().vocab;
    BOLTBEAM_ASSIGN(const std::uint32_t tokens, ChooseWindow(*session_a_, *session_b_, vocabulary, clock_));
    EngineRounds rounds({.a = session_a_.get(),
                         .b = session_b_.get(),
                         .clock = clock_,
                         .vocabulary = vocabulary,
                         .window_tokens = tokens,
                         .limit = context_.limit,
                         .seed = request_.seed + depth});
    const measure::PairedRules rules = thresholds_.Rules(depths_.size(), request_.budget_s, request_.seed + depth);
    measure::PairedHooks hooks;
    hooks.cancelled = hooks_.cancelled;
    if (hooks_.progress) {
      hooks.progress = [&](double done, double total) { hooks_.progress(fmt::format("depth {}", depth), done, total); };
    }
    BOLTBEAM_ASSIGN(measure::PairedSession session, measure::RunPaired(rounds, rules, hooks));
    BOLTBEAM_TRY(session_a_->Truncate(depth));
    BOLTBEAM_TRY(session_b_->Truncate(depth));
    checks_.push_back(rounds.checks());
    run_.findings.depths.insert(run_.findings.depths.begin(), {depth, std::move(session.result)});
    DepthSamples samples;
    samples.depth = depth;
    samples.rules = rules;
    samples.rounds = std::move(session.rounds);
    samples.sides_seen = true;
    samples.same_plan = context_.same_model && a_.engine->plan_id() == b_.engine->plan_id();
    samples.same_bits = output_.Bitwise();
    samples.output_difference = output_.largest;
    if (context_.token_bytes) {
      samples.a_bytes = context_.token_bytes(false, depth);
      samples.b_bytes = context_.token_bytes(true, depth);
    }
    run_.samples.insert(run_.samples.begin(), std::move(samples));
    return {};
  }

  // In the windows alone: outside them the sides' own threads are in each other's way.
  void AddDisturbances() {
    measure::Counters sum;
    double wall_ns = 0;
    for (const WindowChecks& checks : checks_) {
      sum += checks.counters;
      wall_ns += checks.wall_ns;
    }
    run_.disturbances = measure::SpoilingCauses({}, sum, wall_ns);
  }

  const EngineSide &a_, &b_;
  const EngineContext& context_;
  const Request& request_;
  const Thresholds& thresholds_;
  const Hooks& hooks_;
  measure::Clock clock_;
  std::unique_ptr<engine::Session> session_a_, session_b_;
  std::vector<std::uint64_t> depths_;
  OutputFinding output_;
  std::vector<WindowChecks> checks_;
  Run run_;
};

}  // namespace

Condition OffSwitch(const std::string& off_switch, std::optional<bool> gives_a) {
  Condition condition{std::string(kOffSwitch), State::kUnknown, off_switch};
  if (off_switch.empty()) return condition;
  if (!gives_a) {
    condition.detail += ": where it leads can't be seen";
  } else {
    condition.state = *gives_a ? State::kPass : State::kFail;
    condition.detail += *gives_a ? ": the plan is A's again" : ": the plan is not A's then";
  }
  return condition;
}

std::uint64_t ContextNeeded(const Request& request) {
  return std::ranges::max(request.depths) + std::max(request.output_tokens, kMostWindowTokens) + 1;
}

Result<Run> CompareEngines(const EngineSide& a, const EngineSide& b, const EngineContext& context,
                           const Request& request, const Thresholds& thresholds, const Hooks& hooks) {
  return Comparison(a, b, context, request, thresholds, hooks).Go();
}

}  // namespace boltbeam::judge
