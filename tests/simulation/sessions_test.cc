#include "simulation/sessions_test.h"

namespace boltbeam::simulation {
namespace {

TEST(SimulatedSessions, OfTheRecordedMachineFew) { ExpectStatedRates("fitted", Modelled(Recorded().fitted), 60, true); }

}  // namespace
}  // namespace boltbeam::simulation
