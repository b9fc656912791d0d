// To whom a thread's work is charged: of real threads, whose times other programs may stretch.
#include "judge/thread_meter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <thread>

#include "measure/environment.h"

namespace boltbeam::judge {
namespace {

constexpr double kWorkNs = 3e6, kLittleNs = 3e5;

void Burn(double ns) {
  const auto used_ns = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  };
  const double begin = used_ns();
  while (used_ns() - begin < ns) {
  }
}

// A thread that works when it is told to.
class Hand {
 public:
  Hand() : thread_([this] { Go(); }) { measure::AwaitSleepingThreads(); }
  ~Hand() { Tell(2); }
  Hand(const Hand&) = delete;
  Hand& operator=(const Hand&) = delete;
  void Work() {
    Tell(1);
    told_.wait(1);
    measure::AwaitSleepingThreads();
  }

 private:
  void Tell(int what) {
    told_ = what;
    told_.notify_all();
  }
  void Go() {
    for (told_.wait(0); told_ == 1; told_.wait(0)) {
      Burn(kWorkNs);
      Tell(0);
    }
  }
  std::atomic<int> told_ = 0;
  std::jthread thread_;
};

class ThreadMeterTest : public testing::Test {
 protected:
  ThreadMeterTest() {
    Learn(false, of_a_);
    Learn(true, of_b_);
    of_nobody_.Work();  // once: what runs in the background
    Learn(false, of_a_);
    Learn(true, of_b_);
  }
  void Learn(bool is_b, Hand& hand) {
    hand.Work();
    meter_.Learn(is_b);
  }
  void Timed(bool is_b, Hand& hand) {
    meter_.BeginTimer(is_b);
    hand.Work();
    meter_.EndTimer(is_b);
  }
  void ExpectCharged(double a_ns, double b_ns) {
    const double a = meter_.Outside(false), b = meter_.Outside(true);
    EXPECT_NEAR(a, a_ns, kLittleNs);
    EXPECT_NEAR(b, b_ns, kLittleNs);
  }
  Hand of_a_, of_b_, of_nobody_;
  ThreadMeter meter_;
};

TEST_F(ThreadMeterTest, WorkInsideItsSidesTimerIsFree) {
  ExpectCharged(0, 0);
  Timed(false, of_a_);
  Timed(true, of_b_);
  ExpectCharged(0, 0);
}

TEST_F(ThreadMeterTest, WorkInTheOtherSidesTimerIsTheThreadsOwn) {
  Timed(true, of_a_);
  ExpectCharged(kWorkNs, 0);
  Timed(false, of_b_);
  of_b_.Work();
  ExpectCharged(0, 2 * kWorkNs);
}

TEST_F(ThreadMeterTest, AThreadThatWorkedOnceIsNobodysAndChargedToBoth) {
  Timed(true, of_nobody_);
  ExpectCharged(kWorkNs, kWorkNs);
  of_nobody_.Work();
  meter_.Skip();  // a probe's
  ExpectCharged(0, 0);
}

TEST_F(ThreadMeterTest, NewThreadsAreTheSidesThatIsAskedFor) {
  std::thread([] { Burn(kWorkNs); }).join();
  ExpectCharged(kWorkNs, 0);
  const auto of_b = std::make_unique<Hand>();
  of_b->Work();
  EXPECT_GT(meter_.Outside(true), kLittleNs);
  Timed(false, *of_b);
  ExpectCharged(0, kWorkNs);
}

TEST_F(ThreadMeterTest, AThreadThatEndsInTheOtherSidesWindowStaysItsSides) {
  auto of_b = std::make_unique<Hand>();
  (void)meter_.Outside(true);
  of_b->Work();
  of_b.reset();
  ExpectCharged(0, kWorkNs);
}

}  // namespace
}  // namespace boltbeam::judge
