// Honest sides of two threads, and little work outside the timer: real threads and times, which other programs disturb.
#include <fmt/format.h>

#include "judge/engine_rounds.h"
#include "judge/traps.h"
#include "runtime/waiting_worker.h"

namespace boltbeam::judge {
namespace {

// They would spin on into the first window, and be charged to both sides.
TEST(EngineRoundsTest, TheThreadsThatReadTheLimitSleepBeforeAWindow) {
  const std::vector<int> cpus = chip::UsableCpus();
  if (cpus.size() < 2) GTEST_SKIP() << "of one CPU the threads are in each other's way";
  constexpr std::size_t kRounds = 8;
  runtime::WaitingWorker worker(cpus);
  double spinning_ns = 0;
  for (std::size_t i = 0; i < kRounds; ++i) {
    worker.Begin();
    spinning_ns += worker.UsedNsInANap();
  }
  double used_ns = 0;  // since the reading before
  TrapSession a({}, 1), b({}, 1);
  EngineRounds::Setting setting = SettingOf(a, b);
  setting.limit = [&] {
    used_ns = worker.UsedNs();
    worker.Begin();
    return 20.0;
  };
  EngineRounds rounds(setting);
  double round_ns = 0;
  for (std::size_t i = 0; i < kRounds; ++i) {
    ASSERT_TRUE(rounds.Next(false));
    round_ns += used_ns;  // the reading after it
  }
  EXPECT_LT(round_ns, spinning_ns / 3);
}

// Windows of 5 ms, as of models: what threads need to fall asleep is small beside them.
class OfTwoThreads : public TrapTest {
 protected:
  OfTwoThreads() : TrapTest("qwen3") {
    threads_ = 2;
    token_ns_ = 300'000;
    request_.depths = {8};
    request_.budget_s = 0.3;
  }
};

TEST_F(OfTwoThreads, HonestSidesPass) {
  const Judgement judgement = JudgeQuietly(Trap::kNone);
  ExpectPassed(judgement, {kRoute, kOutput, kFreshOutput, kDeterministic, kTimedOutput, kMemory, kOffSwitch});
  EXPECT_TRUE(timed_);
  if (IsDisturbed(judgement)) GTEST_SKIP() << "other programs spoiled the rounds: " << judgement.reason;
  ExpectPassed(judgement, {kTimedWork});
  EXPECT_FALSE(judgement.refused) << judgement.reason;
}

TEST_F(OfTwoThreads, LittleWorkOutsideTheTimer) {
  for (const double share : {0.08, 0.03}) {
    put_off_ = share;
    for (const Trap trap : {Trap::kDefersWork, Trap::kDefersToThread, Trap::kDefersLate}) {
      SCOPED_TRACE(fmt::format("trap {}, {} of the work", static_cast<int>(trap), share));
      const auto is_found = [](const Judgement& one) { return StateOf(one.conditions, kTimedWork) == State::kFail; };
      Judgement judgement = Judge(trap);
      for (int i = 0; i < 3 && IsDisturbed(judgement) && !is_found(judgement); ++i) judgement = Judge(trap);
      // Where others take the CPUs, a thread that waits for one gets it in its own side's next window. An honest
      // session says whether they do: the trap's own thread disturbs, too.
      if (!is_found(judgement) && IsDisturbed(Judge(Trap::kNone))) GTEST_SKIP() << judgement.reason;
      ExpectRefused(judgement, kTimedWork);
      EXPECT_NE(judgement.reason.find("B works outside"), std::string::npos) << judgement.reason;
    }
  }
}

}  // namespace
}  // namespace boltbeam::judge
