// One fault at a time on a ledger with records: the quick part of fault_slow_test.cc.
#include <gtest/gtest.h>

#include "ledger/testing/fault_loops.h"

namespace boltbeam::ledger {
namespace {

TEST(LedgerFaults, EveryOperationWithEveryFaultWhileATornEndIsRecovered) {
  const LoopResult result = LoopOverFaults(AppendTasks({Start::kTornShort}));
  EXPECT_EQ(result.wrong, "");
  EXPECT_GE(result.cases, 500U);
}

TEST(LedgerFaults, PowerLossAtEveryOperationWhileATornEndIsRecovered) {
  const LoopResult result = LoopOverPowerLosses(AppendTasks({Start::kTornShort}), 2);
  EXPECT_EQ(result.wrong, "");
  EXPECT_GE(result.cases, 300U);
}

TEST(LedgerFaults, EveryOperationWithEveryFaultWhileADamagedChainIsRepaired) {
  const LoopResult result = LoopOverFaults({RepairTasks().front()});
  EXPECT_EQ(result.wrong, "");
  EXPECT_GE(result.cases, 200U);
}

TEST(LedgerFaults, EveryOperationWithEveryFaultWhileChainsArrive) {
  const LoopResult result = LoopOverFaults({ImportTasks().back()});
  EXPECT_EQ(result.wrong, "");
  EXPECT_GE(result.cases, 500U);
}

// The loops see a needless refusal: one interruption at a call that nobody repeats.
TEST(LedgerFaults, ARefusalWithoutNeedIsFound) {
  Task task = AppendTasks({Start::kRecords}).front();
  task.act = [](Case& now) {
    std::vector<std::string> names;
    now.is_done = now.disk.List(kDiskFolder, names) == 0;
  };
  const LoopResult result = LoopOverFaults({task});
  EXPECT_NE(result.wrong.find("refused without need"), std::string::npos) << result.wrong;
}

}  // namespace
}  // namespace boltbeam::ledger
