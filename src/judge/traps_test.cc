// The traps of public history, each beside its honest twin: what must be refused, and by which condition.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "judge/engine_rounds.h"
#include "judge/judge.h"
#include "judge/program.h"
#include "measure/fake_engine.h"
#include "test_model.h"

namespace boltbeam::judge {
namespace {

enum class Trap : std::uint8_t {
  kNone,
  kRounds,           // honest, and its sums are in another order
  kSkipsWork,        // leaves the last token out of the sum, and is faster for it
  kReusesOutput,     // gives again what it gave at this depth before
  kDefersWork,       // works when the timer has stopped: when it is told to go back
  kDefersToDepth,    // when it is asked where it stands
  kDefersToThread,   // in a thread of its own that nobody waits for
  kDefersToEnding,   // in a thread for each token, which ends
  kDefersSometimes,  // only in every fourth window, but then all of it
  kCheatsTimed,      // skips work in timed windows only
  kRoundsAndCheats,  // the same, where its sums are in another order
  kNearlyTimed,      // in timed windows of several tokens only the last one's logits are right
  kRemembers,        // computes what follows a context once only
  kFellBack,         // the plan names the route, and its step never runs
  kUnsteady,         // other bits every time
};

constexpr std::size_t kLogits = 8;
constexpr std::uint64_t kTokenNs = 30'000;
bool are_timed = false;  // what a cheat may guess: windows have begun

void Burn(std::uint64_t ns) {
  const std::uint64_t begin = base::MonotonicNs();
  while (base::MonotonicNs() < begin + ns) {
  }
}

// Does what it is given in a thread of its own, one after the other.
class Worker {
 public:
  void Add(std::uint64_t ns) {
    queued_ += ns;
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { Go(stop); });
  }

 private:
  void Go(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Burn(queued_.exchange(0));
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  std::atomic<std::uint64_t> queued_ = 0;
  std::jthread thread_;
};

class TrapSession final : public measure::FakeSession {
 public:
  TrapSession(Trap trap, std::size_t steps, std::uint64_t ns) : trap_(trap), steps_(steps), ns_(ns) {}

  std::uint64_t depth() const override {
    if (trap_ == Trap::kDefersToDepth) PayDebt();
    return FakeSession::depth();
  }
  Result<void> Decode(std::int32_t token, engine::Trace* stamps) override {
    if (stamps != nullptr) stamps->token_begin = base::Ticks();
    const std::uint64_t windows = truncations;
    BOLTBEAM_TRY(FakeSession::Decode(token, nullptr));
    Work(windows);
    const std::uint64_t depth = context.size();
    if (trap_ == Trap::kReusesOutput && stored_.contains(depth)) {
      logits_ = stored_[depth];
    } else {
      Compute();
      stored_[depth] = logits_;
    }
    if (stamps == nullptr) return {};
    stamps->step_begin.assign(1, std::vector<std::uint64_t>(steps_, stamps->token_begin));
    stamps->step_end.assign(1, std::vector<std::uint64_t>(steps_, base::Ticks()));
    if (trap_ == Trap::kFellBack) stamps->step_begin[0].back() = stamps->step_end[0].back() = 0;
    return {};
  }
  Result<void> Truncate(std::uint64_t depth) override {
    if (trap_ == Trap::kDefersWork || trap_ == Trap::kDefersSometimes) PayDebt();
    return FakeSession::Truncate(depth);
  }
  std::span<const float> logits() const override { return logits_; }
  std::int32_t argmax() const override {
    return static_cast<std::int32_t>(std::ranges::max_element(logits_) - logits_.begin());
  }

 private:
  void PayDebt() const { Burn(std::exchange(owed_, 0)); }
  void Work(std::uint64_t windows) {
    constexpr std::uint64_t kOneIn = 4;
    const bool cheats =
        trap_ == Trap::kSkipsWork ||
        (are_timed && (trap_ == Trap::kCheatsTimed || trap_ == Trap::kRoundsAndCheats || trap_ == Trap::kNearlyTimed));
    const bool defers =
        are_timed && (trap_ == Trap::kDefersWork || trap_ == Trap::kDefersToDepth || trap_ == Trap::kDefersToThread ||
                      trap_ == Trap::kDefersToEnding || (trap_ == Trap::kDefersSometimes && windows % kOneIn == 0));
    if (trap_ == Trap::kRemembers && !remembered_.insert(context).second) return;
    if (defers && trap_ == Trap::kDefersToThread) {
      worker_.Add(ns_);
    } else if (defers && trap_ == Trap::kDefersToEnding) {
      std::thread([ns = ns_] { Burn(ns); }).detach();
    } else if (defers) {
      owed_ += ns_;
    } else {
      Burn(cheats ? ns_ / 2 : ns_);
    }
  }
  void Compute() {
    const bool skips =
        trap_ == Trap::kSkipsWork || (are_timed && (trap_ == Trap::kCheatsTimed || trap_ == Trap::kRoundsAndCheats));
    const std::size_t used = context.size() - (skips ? 1 : 0);
    std::uint64_t state = trap_ == Trap::kUnsteady ? decoded : 1;
    for (std::size_t i = 0; i < used; ++i)
      state = state * 6364136223846793005U + static_cast<std::uint64_t>(context[i]);
    // In a window of 32 tokens after a context of none or eight: whatever is not the last.
    const bool is_unread = context.size() != 32 && context.size() != 40;
    if (trap_ == Trap::kNearlyTimed && are_timed && is_unread) state ^= 1;
    for (float& logit : logits_) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      logit = static_cast<float>(state >> 40) / 1e6F;
      if (trap_ == Trap::kRounds || trap_ == Trap::kRoundsAndCheats) logit *= 1 + static_cast<float>(state % 7) * 1e-4F;
    }
  }

  Trap trap_;
  std::size_t steps_;
  std::uint64_t ns_;
  mutable std::uint64_t owed_ = 0;
  std::vector<float> logits_ = std::vector<float>(kLogits);
  std::map<std::uint64_t, std::vector<float>> stored_;
  std::set<std::vector<std::int32_t>> remembered_;
  Worker worker_;
};

class TrapEngine final : public measure::FakeEngine {
 public:
  TrapEngine(model::Model model, Trap trap, std::map<std::string_view, std::uint32_t> uses, std::string plan,
             std::uint64_t ns)
      : FakeEngine(std::move(model)), trap_(trap), uses_(std::move(uses)), plan_(std::move(plan)), ns_(ns) {
    step_list.resize(2);
    step_list[0].kernel = "product";
    step_list[1].kernel = "fused";
  }
  const std::map<std::string_view, std::uint32_t>& route_uses() const override { return uses_; }
  std::string plan_id() const override { return plan_; }
  Result<std::unique_ptr<engine::Session>> NewSession() override {
    return std::make_unique<TrapSession>(trap_, step_list.size(), ns_);
  }

 private:
  Trap trap_;
  std::map<std::string_view, std::uint32_t> uses_;
  std::string plan_;
  std::uint64_t ns_;
};

// A slow plan without the route "fusion" against one with it; tests change what they are about.
class Traps : public testing::Test {
 protected:
  Traps() : file_("qwen3"), path_(file_.Write()) {
    request_.budget_s = 0.06;
    request_.depths = {0, 8};
  }

  Judgement Judge(Trap trap) {
    TrapEngine a(model::Model::Load(path_).value(), Trap::kNone, {}, "plan a", kTokenNs);
    TrapEngine b(model::Model::Load(path_).value(), trap, uses_b_, plan_b_, kTokenNs * 3 / 4);
    const EngineSide side_a{&a, {}, {"fusion"}}, side_b{&b, {}, {}};
    context_.off_switch = "--without fusion";
    context_.off_switch_gives_a = off_switch_gives_a_;
    are_timed = false;
    context_.limit = [rate = limit_] {
      are_timed = true;
      return rate;
    };
    const auto run = CompareEngines(side_a, side_b, context_, request_, thresholds_);
    EXPECT_TRUE(run) << run.error().Message();
    if (!run) return {};
    timed_ = !run->samples.empty();
    return Decide(run->findings, thresholds_);
  }

  static bool IsDisturbed(const Judgement& judgement) { return StateOf(judgement.conditions, kQuiet) == State::kFail; }

  void ExpectRefused(const Judgement& judgement, std::string_view by) {
    EXPECT_EQ(StateOf(judgement.conditions, by), State::kFail) << judgement.reason;
    EXPECT_TRUE(judgement.ruling == Ruling::kRefute || judgement.refused) << judgement.reason;
    EXPECT_NE(judgement.reason.find(by), std::string::npos) << judgement.reason;
  }

  model::TestModel file_;
  std::string path_;
  Request request_;
  Thresholds thresholds_ = LoadThresholds().value();
  EngineContext context_;
  std::optional<bool> off_switch_gives_a_ = true;
  double limit_ = 0;
  std::map<std::string_view, std::uint32_t> uses_b_{{"fusion", 28}};
  std::string plan_b_ = "plan b";
  bool timed_ = false;
};

TEST_F(Traps, TheHonestTwinPasses) {
  limit_ = 20;
  context_.token_bytes = [](bool, std::uint64_t) { return 1e5; };  // 5 us at 20 GB/s
  const Judgement judgement = Judge(Trap::kNone);
  if (IsDisturbed(judgement)) GTEST_SKIP() << "other programs spoiled the rounds: " << judgement.reason;
  for (const std::string_view name :
       {kRoute, kOutput, kFreshOutput, kDeterministic, kTimedOutput, kMemory, kOffSwitch, kTimedWork, kAboveFloor}) {
    EXPECT_EQ(StateOf(judgement.conditions, name), State::kPass) << name << ": " << judgement.reason;
  }
  EXPECT_TRUE(timed_);
  EXPECT_LT(judgement.ratio.estimate, 1);
}

TEST_F(Traps, TheHonestTwinWithItsSumsInAnotherOrder) {
  const Judgement judgement = Judge(Trap::kRounds);
  for (const std::string_view name : {kOutput, kFreshOutput, kDeterministic, kTimedOutput}) {
    EXPECT_EQ(StateOf(judgement.conditions, name), State::kPass) << name << ": " << judgement.reason;
  }
  EXPECT_TRUE(timed_);
}

TEST_F(Traps, AKernelThatSkipsWork) {
  ExpectRefused(Judge(Trap::kSkipsWork), kOutput);
  EXPECT_FALSE(timed_) << "what is wrong is never timed";
}

TEST_F(Traps, OutputThatIsReused) { ExpectRefused(Judge(Trap::kReusesOutput), kOutput); }

TEST_F(Traps, ReuseOfTheLastOutputAtOnce) {
  OutputFinding finding{.tokens = 32, .same_bits = 0, .same_tokens = 32, .largest = 1e-4, .reused = 5};
  const auto conditions = OutputConditions(finding, nullptr, true, thresholds_);
  EXPECT_EQ(StateOf(conditions, kFreshOutput), State::kFail);
  finding.reused = 0;
  EXPECT_EQ(StateOf(OutputConditions(finding, nullptr, true, thresholds_), kFreshOutput), State::kPass);
}

TEST_F(Traps, WorkOutsideTheTimer) { ExpectRefused(Judge(Trap::kDefersWork), kTimedWork); }

TEST_F(Traps, WorkInAnotherEntryPoint) { ExpectRefused(Judge(Trap::kDefersToDepth), kTimedWork); }

TEST_F(Traps, WorkInAThreadThatNobodyWaitsFor) { ExpectRefused(Judge(Trap::kDefersToThread), kTimedWork); }

TEST_F(Traps, WorkInThreadsThatEnd) { ExpectRefused(Judge(Trap::kDefersToEnding), kTimedWork); }

TEST_F(Traps, WorkOutsideTheTimerOfAFewWindows) {
  const Judgement judgement = Judge(Trap::kDefersSometimes);
  if (IsDisturbed(judgement)) GTEST_SKIP() << "other programs spoiled the rounds: " << judgement.reason;
  ExpectRefused(judgement, kTimedWork);
}

// Whatever the judge should come to call between windows.
TEST_F(Traps, EveryEntryPointIsMetered) {
  static constexpr std::uint64_t kNs = 100'000;
  class Slow final : public engine::Session {
   public:
    std::uint64_t depth() const override { return Burn(kNs), 0; }
    Result<void> Prompt(std::span<const std::int32_t>,
                        const std::function<void(std::size_t, std::span<const float>)>&) override {
      return Burn(kNs), Result<void>();
    }
    Result<void> Decode(std::int32_t, engine::Trace*) override { return Burn(kNs), Result<void>(); }
    std::span<const float> logits() const override { return Burn(kNs), std::span<const float>(); }
    void KeepLogits(bool) override { Burn(kNs); }
    std::int32_t argmax() const override { return Burn(kNs), 0; }
    Result<engine::AloneTimes> RunAlone(const engine::Alone&) override { return Burn(kNs), engine::AloneTimes{}; }
    Result<void> Truncate(std::uint64_t) override { return Burn(kNs), Result<void>(); }
  };
  Slow slow;
  MeteredSession metered(slow);
  const measure::Clock clock = measure::GetClock().value();
  const std::vector<std::function<void()>> calls = {[&] { (void)metered.depth(); },
                                                    [&] { (void)metered.Prompt({}, {}); },
                                                    [&] { (void)metered.Decode(0, nullptr); },
                                                    [&] { (void)metered.logits(); },
                                                    [&] { metered.KeepLogits(true); },
                                                    [&] { (void)metered.argmax(); },
                                                    [&] { (void)metered.RunAlone({}); },
                                                    [&] { (void)metered.Truncate(0); }};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::uint64_t before = metered.ticks();
    calls[i]();
    EXPECT_GE(clock.ToNs(metered.ticks() - before), 0.9 * kNs) << "entry point " << i;
  }
}

TEST_F(Traps, WorkSkippedInTimedWindowsOnly) {
  ExpectRefused(Judge(Trap::kCheatsTimed), kTimedOutput);
  EXPECT_TRUE(timed_);
}

TEST_F(Traps, WorkSkippedInTimedWindowsOnlyWhereBitsDifferAnyway) {
  ExpectRefused(Judge(Trap::kRoundsAndCheats), kTimedOutput);
}

TEST_F(Traps, TokensOfAWindowWhoseLogitsNobodyComputes) { ExpectRefused(Judge(Trap::kNearlyTimed), kTimedOutput); }

TEST_F(Traps, AMemo) {
  ExpectRefused(Judge(Trap::kRemembers), kFreshOutput);
  EXPECT_FALSE(timed_);
}

// Even a side that passed every check gains nothing by a memo: what it is timed with is always new to it.
TEST_F(Traps, NoSideIsTimedTwiceWithTheSameTokens) {
  class Listening final : public measure::FakeSession {
   public:
    Result<void> Decode(std::int32_t token, engine::Trace* stamps) override {
      BOLTBEAM_TRY(FakeSession::Decode(token, stamps));
      doubles += computed.insert(context).second ? 0 : 1;
      return {};
    }
    std::set<std::vector<std::int32_t>> computed;
    std::size_t doubles = 0;
  };
  Listening a, b;
  EngineRounds::Setting setting;
  setting.a = &a;
  setting.b = &b;
  setting.clock = measure::GetClock().value();
  setting.vocabulary = 320;
  EngineRounds rounds(setting);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(rounds.Next(i % 3 == 0));
  EXPECT_EQ(a.doubles, 0U);
  EXPECT_EQ(b.doubles, 0U);
  EXPECT_EQ(a.computed, b.computed);
}

TEST_F(Traps, ABufferThatACacheHolds) {
  limit_ = 20;
  context_.token_bytes = [](bool, std::uint64_t) { return 1e8; };  // 5 ms at 20 GB/s
  const Judgement judgement = Judge(Trap::kNone);
  if (IsDisturbed(judgement)) GTEST_SKIP() << "other programs spoiled the rounds: " << judgement.reason;
  ExpectRefused(judgement, kAboveFloor);
}

// A switch that leads to a third plan turns nothing off.
TEST_F(Traps, ASwitchThatDoesNotLeadBack) {
  off_switch_gives_a_ = false;
  Judgement judgement = Judge(Trap::kNone);
  EXPECT_EQ(StateOf(judgement.conditions, kOffSwitch), State::kFail);
  EXPECT_NE(judgement.ruling, Ruling::kPromote);
  off_switch_gives_a_ = std::nullopt;
  judgement = Judge(Trap::kNone);
  EXPECT_EQ(StateOf(judgement.conditions, kOffSwitch), State::kUnknown);
}

TEST_F(Traps, ATokenThatTakesNoTime) {
  TrapSession a(Trap::kNone, 1, kTokenNs), b(Trap::kNone, 1, kTokenNs);
  measure::Clock stopped;
  stopped.ns_per_tick = 0;
  EngineRounds::Setting setting;
  setting.a = &a;
  setting.b = &b;
  setting.clock = stopped;
  setting.vocabulary = 320;
  EngineRounds rounds(setting);
  const auto session = measure::RunPaired(rounds, thresholds_.Rules(1, 0.1, 1));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, Code::kMeasurementImpossible);
}

TEST_F(Traps, ARouteWhoseStepNeverRuns) { ExpectRefused(Judge(Trap::kFellBack), kRoute); }

TEST_F(Traps, ARouteThatThePlanDoesNotTake) {
  uses_b_ = {};
  const Judgement judgement = Judge(Trap::kNone);
  EXPECT_EQ(StateOf(judgement.conditions, kRoute), State::kFail);
  EXPECT_EQ(judgement.ruling, Ruling::kSearchSpaceIncomplete) << "neither side can take it";
}

TEST_F(Traps, TwoSwitchesAndOnePlan) {
  plan_b_ = "plan a";
  ExpectRefused(Judge(Trap::kNone), kRoute);
}

TEST_F(Traps, OtherBitsEveryTime) { ExpectRefused(Judge(Trap::kUnsteady), kOutput); }

TEST(RouteCheckTest, TheOtherSideMustBeClosed) {
  const model::TestModel unused("qwen3");
  model::TestModel file("qwen3");
  const std::string path = file.Write();
  TrapEngine open(model::Model::Load(path).value(), Trap::kNone, {{"fusion", 3}}, "a", 1);
  TrapEngine other(model::Model::Load(path).value(), Trap::kNone, {{"fusion", 3}}, "b", 1);
  engine::Trace stamps;
  stamps.token_begin = 1;
  stamps.step_begin = {{5, 6}};
  stamps.step_end = {{6, 7}};
  RouteFinding finding = CheckRoutes({&open, {}, {"fusion"}}, {&other, {}, {}}, stamps, stamps);
  EXPECT_EQ(finding.condition.state, State::kFail);
  EXPECT_TRUE(finding.available);
  finding = CheckRoutes({&open, {}, {}}, {&open, {}, {}}, stamps, stamps);
  EXPECT_EQ(finding.condition.state, State::kPass) << finding.condition.detail;
}

// Best tokens may be the same although work was left out.
TEST(ReferenceTest, EqualTokensAreNotEnoughWhenLogitsAreFarApart) {
  const Thresholds thresholds = LoadThresholds().value();
  OutputFinding finding{.tokens = 32, .same_tokens = 32, .largest = 0.01};
  EXPECT_EQ(StateOf(OutputConditions(finding, nullptr, true, thresholds), kOutput), State::kPass);
  finding.largest = 0.2;
  EXPECT_EQ(StateOf(OutputConditions(finding, nullptr, true, thresholds), kOutput), State::kUnknown);
  const ReferenceFinding worse{0.01, 0.02, 1000};
  EXPECT_EQ(StateOf(OutputConditions(finding, &worse, true, thresholds), kOutput), State::kFail);
}

TEST(ReferenceTest, QualityDecidesWhenOutputsDiffer) {
  const Thresholds thresholds = LoadThresholds().value();
  const OutputFinding differs{.tokens = 32, .same_tokens = 20, .largest = 0.1};
  const auto state = [&](double kl_a, double kl_b) {
    const ReferenceFinding reference{kl_a, kl_b, 1000};
    return StateOf(OutputConditions(differs, &reference, false, thresholds), kOutput);
  };
  EXPECT_EQ(state(0.01, 0.01), State::kPass);
  EXPECT_EQ(state(0.01, 0.02), State::kFail);
  EXPECT_EQ(StateOf(OutputConditions(differs, nullptr, false, thresholds), kOutput), State::kUnknown);
  EXPECT_EQ(StateOf(OutputConditions(differs, nullptr, true, thresholds), kOutput), State::kFail);
  EXPECT_EQ(StateOf(OutputConditions({}, nullptr, true, thresholds), kOutput), State::kUnknown);
}

}  // namespace
}  // namespace boltbeam::judge
