// Work outside the timer, whoever does it. Little work, and sides of two threads, have a file of their own.
#include <functional>

#include "judge/metered_session.h"
#include "judge/traps.h"
#include "measure/clock.h"

namespace boltbeam::judge {
namespace {

class OutsideWork : public TrapTest {
 protected:
  OutsideWork() : TrapTest("qwen3") {}
};

TEST_F(OutsideWork, WorkOutsideTheTimer) { ExpectRefused(Judge(Trap::kDefersWork), kTimedWork); }

TEST_F(OutsideWork, WorkInAnotherEntryPoint) { ExpectRefused(Judge(Trap::kDefersToDepth), kTimedWork); }

TEST_F(OutsideWork, WorkInAThreadThatNobodyWaitsFor) { ExpectRefused(Judge(Trap::kDefersToThread), kTimedWork); }

TEST_F(OutsideWork, WorkInAThreadThatSleepsFirst) {
  const Judgement judgement = Judge(Trap::kDefersLate);
  ExpectRefused(judgement, kTimedWork);
  EXPECT_NE(judgement.reason.find("B works outside"), std::string::npos) << judgement.reason;
}

TEST_F(OutsideWork, WorkInThreadsThatEnd) { ExpectRefused(Judge(Trap::kDefersToEnding), kTimedWork); }

TEST_F(OutsideWork, WorkOutsideTheTimerOfAFewWindows) {
  const Judgement judgement = JudgeQuietly(Trap::kDefersSometimes);
  if (IsDisturbed(judgement)) GTEST_SKIP() << "other programs spoiled the rounds: " << judgement.reason;
  ExpectRefused(judgement, kTimedWork);
}

// Whatever the judge should come to call between windows.
TEST_F(OutsideWork, EveryEntryPointIsMetered) {
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

}  // namespace
}  // namespace boltbeam::judge
