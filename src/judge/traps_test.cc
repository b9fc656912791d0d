// The traps of public history, each beside its honest twin: what must be refused, and by which condition. Work outside
// the timer has a file of its own.
#include "judge/traps.h"

#include "judge/engine_rounds.h"

namespace boltbeam::judge {
namespace {

class Traps : public TrapTest {
 protected:
  Traps() : TrapTest("qwen3") {}
};

TEST_F(Traps, TheHonestTwinPasses) {
  limit_ = 20;
  context_.token_bytes = [](bool, std::uint64_t) { return 1e5; };  // 5 us at 20 GB/s
  const Judgement judgement = JudgeQuietly(Trap::kNone);
  ExpectPassed(judgement, {kRoute, kOutput, kFreshOutput, kDeterministic, kTimedOutput, kMemory, kOffSwitch});
  EXPECT_TRUE(timed_);
  if (IsDisturbed(judgement)) GTEST_SKIP() << "other programs spoiled the rounds: " << judgement.reason;
  ExpectPassed(judgement, {kTimedWork, kAboveFloor});
  EXPECT_FALSE(judgement.refused) << judgement.reason;
  EXPECT_LT(judgement.ratio.estimate, 1);
}

TEST_F(Traps, TheHonestTwinWithItsSumsInAnotherOrder) {
  const Judgement judgement = Judge(Trap::kRounds);
  ExpectPassed(judgement, {kOutput, kFreshOutput, kDeterministic, kTimedOutput});
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
  EngineRounds rounds(SettingOf(a, b));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(rounds.Next(i % 3 == 0));
  EXPECT_EQ(a.doubles, 0U);
  EXPECT_EQ(b.doubles, 0U);
  EXPECT_EQ(a.computed, b.computed);
}

TEST_F(Traps, ABufferThatACacheHolds) {
  limit_ = 20;
  context_.token_bytes = [](bool, std::uint64_t) { return 1e8; };  // 5 ms at 20 GB/s
  const Judgement judgement = JudgeQuietly(Trap::kNone);
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
  TrapSession a({}, 1), b({}, 1);
  measure::Clock stopped;
  stopped.ns_per_tick = 0;
  EngineRounds::Setting setting = SettingOf(a, b);
  setting.clock = stopped;
  EngineRounds rounds(setting);
  const auto session = measure::RunPaired(rounds, thresholds_.Rules(1, 0.1, 1));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, Code::kMeasurementImpossible);
}

// The memory may be slow when it is read, and fast in the round.
TEST_F(Traps, TheLimitIsReadBeforeARoundAndAfterIt) {
  TrapSession a({}, 1), b({}, 1);
  std::vector<double> readings{80, 50, 50, 80};
  EngineRounds::Setting setting = SettingOf(a, b);
  setting.limit = [&] {
    const double last = readings.back();
    readings.pop_back();
    return last;
  };
  EngineRounds rounds(setting);
  EXPECT_EQ(rounds.Next(false)->limit, 80);
  EXPECT_EQ(rounds.Next(false)->limit, 80);
  EXPECT_TRUE(readings.empty());
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
  TrapEngine open(model::Model::Load(path).value(), {}, {{"fusion", 3}}, "a");
  TrapEngine other(model::Model::Load(path).value(), {}, {{"fusion", 3}}, "b");
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
