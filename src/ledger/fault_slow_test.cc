// Every way in which a ledger is found, every file operation, every fault; power loss at each of them; and both again
// while the ledger recovers from the first. docs/ledger.md states how many cases these are.
#include <gtest/gtest.h>

#include "ledger/testing/fault_loops.h"

namespace boltbeam::ledger {
namespace {

void Report(const char* what, const LoopResult& result) {
  std::printf("%llu %s, %zu different ledgers left\n", static_cast<unsigned long long>(result.cases), what,
              result.states.size());
  EXPECT_EQ(result.wrong, "");
}

TEST(LedgerFaultsSlow, EveryOperationWithEveryFaultOnceAndForEver) {
  const LoopResult result = LoopOverFaults(kStarts);
  Report("cases of a fault at an operation", result);
  EXPECT_GE(result.cases, 3'000U);
}

TEST(LedgerFaultsSlow, PowerLossAtEveryOperation) {
  const LoopResult result = LoopOverPowerLosses(kStarts, 8);
  Report("cases of a power loss at an operation", result);
  EXPECT_GE(result.cases, 5'000U);
}

TEST(LedgerFaultsSlow, ASecondFaultDuringTheRecovery) {
  const LoopResult result = LoopOverSecondFaults(kStarts, 1);
  Report("cases of a second fault or power loss during the recovery", result);
  EXPECT_GE(result.cases, 20'000U);
}

}  // namespace
}  // namespace boltbeam::ledger
