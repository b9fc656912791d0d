#include "kernel/loop_turns.h"

#include <gtest/gtest.h>

#include "kernel/builder.h"

namespace boltbeam::kernel {
namespace {

/// For every item as many turns as memory says, but no more than are left of `ends`.
Program Nested() {
  Builder b("nested", "a loop whose end lies in memory, in one over the work items");
  const std::uint32_t state = b.AddBuffer("state");
  const std::uint32_t out = b.AddBuffer("out", true);
  const Value most = Widen(b.Load(state, {Scalar::kI32, 1}, Memory::kWord, b.I64(0), 4));
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value item, auto) -> std::vector<Value> {
    const Value left = Max(b.I64(0), Min(most - item * 4, b.I64(4)));
    b.Loop(b.I64(0), left, b.I64(1), {}, [&](Value at, auto) -> std::vector<Value> {
      b.Store(out, at, b.LoadF32(out, 8, at) * b.F32(2, 8));
      return {};
    });
    return {};
  });
  return std::move(b).Finish();
}

TEST(LoopTurns, EndsInKnownMemoryAreFollowed) {
  const KnownWord words[] = {{0, 4, 10}};
  const auto loops = TurnsOf(Nested(), 0, 5, words);
  ASSERT_EQ(loops.size(), 3U);
  EXPECT_EQ(loops[0].turns, 1);
  EXPECT_EQ(loops[1].turns, 5);
  EXPECT_EQ(loops[2].turns, 4 + 4 + 2);  // and none of the last two items
  EXPECT_EQ(loops[2].parent, 1);
  EXPECT_EQ(loops[2].vector_operations, 1);
  EXPECT_TRUE(loops[2].is_known);
}

TEST(LoopTurns, EndsInUnknownMemoryAreSaid) {
  const auto loops = TurnsOf(Nested(), 0, 5);
  EXPECT_TRUE(loops[1].is_known);
  EXPECT_FALSE(loops[2].is_known);
  EXPECT_EQ(loops[2].turns, 5);
}

TEST(LoopTurns, ALoopOfOneTurnIsKnownFromTheText) {
  Builder b("single", "from 8 to 16 by 8");
  const std::uint32_t out = b.AddBuffer("out", true);
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value item, auto) -> std::vector<Value> {
    b.Loop(item, item + 8, b.I64(8), {}, [&](Value at, auto) -> std::vector<Value> {
      b.Store(out, at, b.F32(2, 8));
      return {};
    });
    return {};
  });
  const auto loops = TurnsOf(std::move(b).Finish(), 0, 3);
  ASSERT_EQ(loops.size(), 3U);
  EXPECT_FALSE(loops[1].is_single);
  EXPECT_TRUE(loops[2].is_single);
  EXPECT_EQ(loops[2].turns, 3);
}

}  // namespace
}  // namespace boltbeam::kernel
