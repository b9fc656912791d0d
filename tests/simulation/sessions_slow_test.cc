#include "simulation/sessions_test.h"

namespace boltbeam::simulation {
namespace {

constexpr std::size_t kMany = 10'000, kSeveral = 2'000, kSome = 1'000;

TEST(SimulatedSessionsMany, OfTheRecordedMachine) {
  ExpectStatedRates("fitted", Modelled(Recorded().fitted), kMany, true);
}

TEST(SimulatedSessionsMany, WithThatNoiseDoubled) {
  ExpectStatedRates("doubled", Modelled(Recorded().fitted.Times(2)), kMany, true);
}

TEST(SimulatedSessionsMany, AtThreeDepths) {
  ExpectStatedRatesOverDepths("fitted", Modelled(Recorded().fitted), kSeveral);
  ExpectStatedRatesOverDepths("doubled", Modelled(Recorded().fitted.Times(2)), kSeveral);
}

// 0.3 % is what 40 loads of one plan on each side scattered by on a Zen 5, their measurement's own error in it.
TEST(SimulatedSessionsMany, OfCopiesThatDiffer) {
  ExpectStatedRatesOverLoads("fitted, loads differ by 0.3 %", Modelled(Recorded().fitted), 0.003, kSeveral, 0.9);
  ExpectStatedRatesOverLoads("doubled, loads differ by 0.6 %", Modelled(Recorded().fitted.Times(2)), 0.006, kSome, 0);
}

TEST(SimulatedSessionsMany, OfTheRecordingItself) {
  ExpectStatedRates("recorded", [](std::uint64_t seed) { return Noise(Recorded(), 0, 1, seed); }, kSome, true);
  ExpectStatedRates("recorded, doubled", [](std::uint64_t seed) { return Noise(Recorded(), 0, 2, seed); }, kSome, true);
  ExpectStatedRates("recorded, busy", [](std::uint64_t seed) { return Noise(Recorded(), 1, 1, seed); }, kSome, true);
}

// One kind of noise alone, far beyond what was recorded. Power is not asked for, only honesty.
TEST(SimulatedSessionsMany, OfOneKindOfNoise) {
  ExpectStatedRates("drift", Modelled({.white = 0.02, .drift = 1}), kSome, false);
  ExpectStatedRates("bursts", Modelled({.white = 0.02, .burst_rate = 0.05, .burst_windows = 4, .burst_size = 3}), kSome,
                    false);
  ExpectStatedRates("two speeds", Modelled({.white = 0.01, .mode_shift = 0.3, .mode_windows = 3}), kSome, false);
  ExpectStatedRates("heavy tails", Modelled({.white = 0.02, .tail_share = 0.3, .tail_scale = 20}), kSome, false);
}

}  // namespace
}  // namespace boltbeam::simulation
