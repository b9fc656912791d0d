#include "engine/route_bounds.h"

#include <gtest/gtest.h>

#include "chip/test_facts.h"

namespace boltbeam::engine {
namespace {

chip::Chip Measured(std::initializer_list<std::pair<const char*, double>> more = {}) {
  chip::Chip chip;
  chip::AddMeasured(chip, {{"barrier_ns", 100},
                           {"memory_latency_ns", 80},
                           {"read_bandwidth_gb_s", 40},
                           {"read_bandwidth_gb_s.threads_1", 20},
                           {"read_bandwidth_gb_s.threads_4", 40},
                           {"vector_instructions_s", 8e9},
                           {"cores", 2}});  // of two threads each
  chip::AddMeasured(chip, more);
  return chip;
}

RouteBound Of(const PlanCost& saved, const chip::Chip& chip, const BarrierWaits& waits = {}) {
  RouteBound bound;
  bound.saved = saved;
  FillIn(bound, chip, waits);
  return bound;
}

TEST(RouteBounds, ABarrierCostsWhatThreadsWaitAtItToo) {
  const PlanCost saved{.barriers = 3};
  const RouteBound declared = Of(saved, Measured({{"barrier_wait_ns", 500}}));
  EXPECT_DOUBLE_EQ(*declared.at_most_ns, 3 * 100 + 3 * 500);
  EXPECT_DOUBLE_EQ(*declared.waits_ns, 1500);
  EXPECT_EQ(declared.waits_from, "barrier_wait_ns");
  // Measured in this plan: the three longest, whatever the chip's fact says.
  const RouteBound measured = Of(saved, Measured({{"barrier_wait_ns", 500}}), {{10, 900, 20, 400, 30}, {}});
  EXPECT_DOUBLE_EQ(*measured.at_most_ns, 3 * 100 + 900 + 400 + 30);
  EXPECT_EQ(measured.waits_from, "this plan's tokens");
  // A plan without the route may have more barriers than this one.
  EXPECT_DOUBLE_EQ(BarrierWaits::LongestNs({10, 30}, 4), 80);
}

TEST(RouteBounds, UnknownWaitsAreNoBound) {
  const RouteBound bound = Of({.barriers = 3}, Measured());
  EXPECT_FALSE(bound.at_most_ns);
  EXPECT_EQ(bound.missing, "barrier_wait_ns");
  EXPECT_TRUE(Of({.calls = 3}, Measured()).at_most_ns) << "no barrier, no wait";
}

// A bound is of what is saved: what a route costs in turn may cost next to nothing.
TEST(RouteBounds, LossesAreNotTakenOff) {
  const double bytes_ns = *Of({.bytes = 2000}, Measured()).at_most_ns;
  EXPECT_DOUBLE_EQ(*Of({.calls = -9, .bytes = 2000, .instructions = -1e6}, Measured()).at_most_ns, bytes_ns);
}

TEST(RouteBounds, SharedTailsSaveTheWaitsOfUnsharedOnes) {
  RouteBound bound;
  bound.uses = 2;
  FillInWaits(bound, {{1, 1, 1}, {10, 900, 20}});
  EXPECT_DOUBLE_EQ(*bound.at_most_ns, 920);
  RouteBound unknown;
  unknown.uses = 2;
  FillInWaits(unknown, {{1, 1, 1}, {}});
  EXPECT_FALSE(unknown.at_most_ns);
  EXPECT_FALSE(unknown.missing.empty());
}

TEST(RouteBounds, TheThreadThatStreamsMostIsWaitedFor) {
  EXPECT_DOUBLE_EQ(*Of({.streamed = 2000}, Measured()).at_most_ns, 100);
  EXPECT_DOUBLE_EQ(*Of({.streamed = -2000}, Measured()).at_most_ns, 0);
}

// The rate of all four threads, not of the two cores: one of them issues a quarter of it.
TEST(RouteBounds, InstructionsTakeAThreadsShareOfTheRate) {
  EXPECT_DOUBLE_EQ(*Of({.instructions = 1000}, Measured()).at_most_ns, 1000 / 2e9 * 1e9);
  const chip::Chip alone =
      Measured({{"vector_instructions_s.threads_1", 4e9}, {"vector_instructions_s.threads_4", 8e9}});
  EXPECT_DOUBLE_EQ(*Of({.instructions = 1000}, alone).at_most_ns, 1000 / 2e9 * 1e9) << "the slowest that it can be";
}

}  // namespace
}  // namespace boltbeam::engine
