#include "runtime/thread_pool.h"

#include <gtest/gtest.h>

#include "runtime/memory.h"

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
