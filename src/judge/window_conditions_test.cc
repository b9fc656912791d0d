// What follows from windows alone, on windows that were written down.
#include "judge/window_conditions.h"

#include <gtest/gtest.h>

namespace boltbeam::judge {
namespace {

constexpr double kBytes = 1e8;

DepthSamples Rounds(std::size_t count) {
  DepthSamples samples;
  samples.sides_seen = samples.same_bits = true;
  samples.a_bytes = samples.b_bytes = kBytes;
  samples.rounds.resize(count);
  for (std::size_t i = 0; i < count; ++i) samples.rounds[i].b_first = i % 3 == 0;
  return samples;
}

// A token takes so many times what its bytes take at the rate.
void Set(measure::PairedRound& round, double rate, double a, double b) {
  for (std::size_t i = 0; i < round.windows.size(); ++i) round.windows[i].ns = (round.IsB(i) ? b : a) * kBytes / rate;
}

State AboveFloorOf(const DepthSamples& samples) { return AboveFloor({samples}, LoadThresholds().value()).state; }

// Half of the session the memory was slow, and other programs spoiled that half: its readings say nothing of the rest.
TEST(AboveFloorTest, ARoundIsComparedWithItsOwnReading) {
  DepthSamples samples = Rounds(40);
  for (std::size_t i = 0; i < samples.rounds.size(); ++i) {
    measure::PairedRound& round = samples.rounds[i];
    const bool is_slow = i < samples.rounds.size() / 2;
    const double rate = is_slow ? 12 : 20;
    Set(round, rate, 1.05, 1.02);
    if (i % 4 == 0) round.limit = rate;
    if (is_slow) round.windows[1].causes.set(static_cast<std::size_t>(measure::Cause::kInterrupted));
  }
  EXPECT_EQ(AboveFloorOf(samples), State::kPass);
  for (measure::PairedRound& round : samples.rounds) {
    if (round.limit > 0) Set(round, round.limit, 1.05, 0.8);
  }
  EXPECT_EQ(AboveFloorOf(samples), State::kFail);
}

TEST(AboveFloorTest, TheBandIsATenth) {
  DepthSamples samples = Rounds(8);
  for (measure::PairedRound& round : samples.rounds) round.limit = 20;
  for (const auto& [a, b, state] : {std::tuple(1.0, 0.91, State::kPass), std::tuple(1.0, 0.89, State::kFail),
                                    std::tuple(0.91, 1.0, State::kPass), std::tuple(0.89, 1.0, State::kFail)}) {
    for (measure::PairedRound& round : samples.rounds) Set(round, 20, a, b);
    EXPECT_EQ(AboveFloorOf(samples), state) << a << " " << b;
  }
}

TEST(AboveFloorTest, OfFewReadingsNothingIsKnown) {
  DepthSamples samples = Rounds(8);
  for (measure::PairedRound& round : samples.rounds) Set(round, 20, 0.5, 0.5);
  EXPECT_EQ(AboveFloorOf(samples), State::kUnknown);
  for (std::size_t i = 0; i < 4; ++i) samples.rounds[i].limit = 20;
  EXPECT_EQ(AboveFloorOf(samples), State::kUnknown);
  samples.rounds[5].limit = 20;
  EXPECT_EQ(AboveFloorOf(samples), State::kFail);
  samples.rounds[0].windows[3].causes.set(0);
  EXPECT_EQ(AboveFloorOf(samples), State::kUnknown) << "a spoiled reading is none";
}

State TimedOutputOf(const DepthSamples& samples) { return TimedOutput({samples}).state; }

TEST(TimedOutputTest, OnePlansBitsAreEqual) {
  DepthSamples samples = Rounds(100);
  EXPECT_EQ(TimedOutputOf(samples), State::kPass);
  samples.rounds[7].output_difference = 1e-7;
  EXPECT_EQ(TimedOutputOf(samples), State::kFail);
}

TEST(TimedOutputTest, AnotherPlanMayRoundOtherwiseNowAndThen) {
  DepthSamples samples = Rounds(100);
  samples.same_plan = false;
  samples.rounds[7].output_difference = 2e-3;
  EXPECT_EQ(TimedOutputOf(samples), State::kPass);
  samples.rounds[8].output_difference = 2e-2;
  EXPECT_EQ(TimedOutputOf(samples), State::kPass);
  samples.rounds[9].output_difference = 2e-3;
  EXPECT_EQ(TimedOutputOf(samples), State::kFail) << "three of a hundred are no stray ones";
  samples.rounds[9].output_difference = samples.rounds[8].output_difference = 0;
  samples.rounds[7].output_difference = 0.3;
  EXPECT_EQ(TimedOutputOf(samples), State::kFail) << "further than rounding goes";
}

TEST(TimedOutputTest, WhereBitsDifferedTheirDistanceCounts) {
  DepthSamples samples = Rounds(100);
  samples.same_plan = samples.same_bits = false;
  samples.output_difference = 0.01;
  for (measure::PairedRound& round : samples.rounds) round.output_difference = 0.015;
  EXPECT_EQ(TimedOutputOf(samples), State::kPass);
  for (measure::PairedRound& round : samples.rounds) round.output_difference = 0.03;
  EXPECT_EQ(TimedOutputOf(samples), State::kFail);
  for (measure::PairedRound& round : samples.rounds) round.output_difference = 0.015;
  samples.rounds[7].output_difference = 0.04;
  EXPECT_EQ(TimedOutputOf(samples), State::kPass);
  samples.rounds[7].output_difference = 0.3;
  EXPECT_EQ(TimedOutputOf(samples), State::kFail) << "one round with wrong work";
  samples.output_difference = 0.2;
  EXPECT_EQ(TimedOutputOf(samples), State::kPass);
}

}  // namespace
}  // namespace boltbeam::judge
