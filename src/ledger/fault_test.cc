// One fault at a time on a ledger with records: the quick part of fault_slow_test.cc.
#include <gtest/gtest.h>

#include "ledger/testing/fault_loops.h"

namespace boltbeam::ledger {
namespace {

constexpr Start kQuick[] = {Start::kTornShort};

TEST(LedgerFaults, EveryOperationWithEveryFaultWhileATornEndIsRecovered) {
  const LoopResult result = LoopOverFaults(kQuick);
  EXPECT_EQ(result.wrong, "");
  EXPECT_GE(result.cases, 500U);
}

TEST(LedgerFaults, PowerLossAtEveryOperationWhileATornEndIsRecovered) {
  const LoopResult result = LoopOverPowerLosses(kQuick, 2);
  EXPECT_EQ(result.wrong, "");
  EXPECT_GE(result.cases, 300U);
}

}  // namespace
}  // namespace boltbeam::ledger
