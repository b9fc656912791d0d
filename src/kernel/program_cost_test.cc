#include "kernel/program_cost.h"

#include <gtest/gtest.h>

#include "kernel/builder.h"
#include "kernel/families/elementwise.h"

namespace boltbeam::kernel {
namespace {

TEST(ProgramCostTest, CountsEveryTurnOfTheLoops) {
  // 96 elements of two columns, 8 at a time: gate and up are read and one product written.
  const VectorShape shape{96, 384, 384, 8};
  const ProgramCost two = CostOf(BuildGate(shape, GateFunction::kSilu), 0, 2);
  EXPECT_EQ(two.bytes, 2 * 96 * 4 * 3);
  EXPECT_GT(two.instructions, 2 * 12 * 10);
  const ProgramCost one = CostOf(BuildGate(shape, GateFunction::kSilu), 3, 4);
  EXPECT_EQ(one.bytes * 2, two.bytes);
  EXPECT_EQ(one.instructions * 2, two.instructions);
  EXPECT_EQ(CostOf(BuildGate(shape, GateFunction::kSilu), 4, 4).bytes, 0);
}

TEST(ProgramCostTest, NarrowLanesAndBroadcastsCountAsTheyLieInMemory) {
  Builder b("narrow", "loads of 16 and 8 bits");
  const auto from = b.AddBuffer("from");
  const auto to = b.AddBuffer("to", true);
  b.Loop(b.Begin(), b.End(), b.I64(2), {}, [&](Value at, auto) -> std::vector<Value> {
    const Value half = b.Load(from, {Scalar::kF32, 8}, Memory::kF16, at);
    const Value one = b.LoadBroadcast(from, {Scalar::kF32, 8}, Memory::kF16, at);
    b.Store(to, at, ToI32(half * one), Memory::kU8);
    return {};
  });
  const ProgramCost cost = CostOf(std::move(b).Finish(), 0, 5);  // three turns
  EXPECT_EQ(cost.bytes, 3 * (16 + 2 + 8));
  EXPECT_EQ(cost.instructions, 3 * 2);
}

TEST(ProgramCostTest, ALoopWhoseEndLiesInMemoryCountsAsOneTurn) {
  Builder b("unknown", "as many turns as memory says");
  const auto state = b.AddBuffer("state");
  const auto to = b.AddBuffer("to", true);
  const Value turns = Widen(b.LoadI32(state, 1, b.I64(0)));
  b.Loop(b.I64(0), turns, b.I64(1), {}, [&](Value at, auto) -> std::vector<Value> {
    b.Store(to, at * 16, b.F32(1, 4));
    return {};
  });
  EXPECT_EQ(CostOf(std::move(b).Finish(), 0, 1).bytes, 4 + 16);
}

}  // namespace
}  // namespace boltbeam::kernel
