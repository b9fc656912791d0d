#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/memory.h"
#include "runtime/shared_tails.h"
#include "runtime/waiting_worker.h"

namespace boltbeam::runtime {
namespace {

TEST(ThreadPoolTest, PhasesSeeEachOthersWrites) {
  const auto pool = ThreadPool::Create({0, 0, 0});  // oversubscribed on purpose: threads must sleep, not spin for ever
  ASSERT_TRUE(pool) << pool.error().Message();
  std::vector<int> cells(3, 0);
  for (int run = 0; run < 50; ++run) {
    (*pool)->Run([&](std::uint32_t thread) {
      cells[thread] += 1;
      (*pool)->Sync();
      const int sum = cells[0] + cells[1] + cells[2];
      (*pool)->Sync();
      if (sum != 3 * (run + 1)) cells[thread] = -1000;
    });
  }
  EXPECT_EQ(cells, std::vector<int>(3, 50));
}

TEST(ThreadPoolTest, ACpuThatDoesNotExistIsRefused) {
  EXPECT_EQ(ThreadPool::Create({1023}).error().code, Code::kThreads);
  EXPECT_EQ(ThreadPool::Create({}).error().code, Code::kThreads);
}

std::vector<int> CpusOfThisThread() {
  cpu_set_t set;
  pthread_getaffinity_np(pthread_self(), sizeof(set), &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// Beside one that spins, because how long that takes is the CPU's.
TEST(ThreadPoolTest, WithoutSpinningAWaitingThreadSleepsAtOnce) {
  const std::vector<int> cpus = CpusOfThisThread();
  if (cpus.size() < 2) GTEST_SKIP() << "of one CPU the threads are in each other's way";
  WaitingWorker worker(cpus);
  const auto sleeps_at_once = [&] {
    constexpr int kWaits = 20;
    double spinning_ns = 0, sleeping_ns = 0;
    for (int i = 0; i < kWaits; ++i) {
      worker.Begin();
      spinning_ns += worker.UsedNsInANap();
      worker.Begin();
      const NoSpinning sleeping;
      sleeping_ns += worker.UsedNsInANap();
    }
    return sleeping_ns < spinning_ns / 3;
  };
  // Other programs may keep the worker from spinning for the length of a try.
  constexpr int kTries = 5;
  int tries = 0;
  while (tries < kTries && !sleeps_at_once()) ++tries;
  EXPECT_LT(tries, kTries);
}

// Twelve threads on one CPU: whoever spins at a barrier keeps those away that it waits for.
TEST(ThreadPoolTest, AnOversubscribedBarrierYields) {
  const auto pool = ThreadPool::Create(std::vector<int>(12, CpusOfThisThread().front()));
  ASSERT_TRUE(pool) << pool.error().Message();
  constexpr int kBarriers = 100;
  std::atomic<int> passed{0};
  const auto cpu_s = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  const double begin = cpu_s();
  (*pool)->Run([&](std::uint32_t) {
    for (int i = 0; i < kBarriers; ++i) (*pool)->Sync();
    ++passed;
  });
  EXPECT_EQ(passed, 12);
  // Spinning through time slices of a few milliseconds takes 1,100 of them, 4.5 s of the CPU; what others on it take
  // is not counted.
  EXPECT_LT(cpu_s() - begin, 1.0);
}

TEST(PinTest, TheLastToEndGivesTheThreadItsCpusBack) {
  const std::vector<int> all = CpusOfThisThread();
  const int first = all.front(), last = all.back();
  auto outer = std::make_unique<Pin>(first);
  EXPECT_EQ(CpusOfThisThread(), std::vector{first});
  {
    const Pin inner(last);
    EXPECT_EQ(CpusOfThisThread(), std::vector{last});
  }
  EXPECT_EQ(CpusOfThisThread(), std::vector{first});
  auto later = std::make_unique<Pin>(first);
  outer.reset();
  EXPECT_EQ(CpusOfThisThread(), std::vector{first});
  later.reset();
  EXPECT_EQ(CpusOfThisThread(), all);
  EXPECT_TRUE(Pin(1023).failed());
  EXPECT_EQ(CpusOfThisThread(), all);
}

TEST(SharedTailsTest, EveryPieceIsTakenOnce) {
  constexpr std::uint32_t kThreads = 3, kPieces = 1000, kTurns = 50;
  SharedTails tails(kThreads);
  const auto pool = ThreadPool::Create({0, 0, 0});
  ASSERT_TRUE(pool) << pool.error().Message();
  for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
    std::vector<std::atomic<int>> taken(kThreads * kPieces);
    (*pool)->Run([&](std::uint32_t thread) {
      tails.Offer(thread, turn, kPieces);
      while (const auto piece = tails.TakeFront(thread, turn)) ++taken[thread * kPieces + *piece];
      for (std::uint32_t other = (thread + 1) % kThreads; other != thread; other = (other + 1) % kThreads) {
        while (const auto piece = tails.TakeBack(other, turn)) ++taken[other * kPieces + *piece];
      }
    });
    for (const std::atomic<int>& count : taken) ASSERT_EQ(count, 1);
  }
}

TEST(SharedTailsTest, FrontForTheOwnerBackForOthersAndNothingOfAnotherTurn) {
  SharedTails tails(2);
  tails.Offer(0, 7, 3);
  EXPECT_EQ(tails.TakeBack(0, 8), std::nullopt);
  EXPECT_EQ(tails.TakeBack(1, 7), std::nullopt);
  EXPECT_EQ(tails.TakeBack(0, 7), 2U);
  EXPECT_EQ(tails.TakeFront(0, 7), 0U);
  EXPECT_EQ(tails.TakeFront(0, 7), 1U);
  EXPECT_EQ(tails.TakeFront(0, 7), std::nullopt);
  EXPECT_EQ(tails.TakeBack(0, 7), std::nullopt);
}

TEST(ShareTest, RangesCoverEverythingOnce) {
  std::int64_t next = 0;
  for (std::uint32_t thread = 0; thread < 7; ++thread) {
    const Range range = Share(23, thread, 7);
    EXPECT_EQ(range.begin, next);
    next = range.end;
  }
  EXPECT_EQ(next, 23);
}

TEST(HugeBufferTest, IsZeroedAndAligned) {
  const auto buffer = HugeBuffer::Allocate(5 << 20);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % (2 << 20), 0U);
  EXPECT_EQ(buffer->data()[(5 << 20) - 1], std::byte{0});
  EXPECT_EQ(HugeBuffer::Allocate(1ULL << 60).error().code, Code::kOutOfMemory);
}

}  // namespace
}  // namespace boltbeam::runtime
