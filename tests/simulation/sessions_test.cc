#include "simulation/sessions_test.h"

namespace boltbeam::simulation {
namespace {

TEST(SimulatedSessions, OfTheRecordedMachineFew) { ExpectStatedRates("fitted", Modelled(Recorded().fitted), 60, true); }

TEST(SimulatedSessions, AtThreeDepthsFew) { ExpectStatedRatesOverDepths("fitted", Modelled(Recorded().fitted), 60); }

TEST(SimulatedSessions, OfCopiesThatDifferFew) {
  ExpectStatedRatesOverLoads("fitted, loads differ by 0.3 %", Modelled(Recorded().fitted), 0.003, 60, 0.8);
}

}  // namespace
}  // namespace boltbeam::simulation
