// Every way in which a ledger is found, every file operation, every fault; power loss at each of them; and both again
// while the ledger recovers from the first: of records, repairs and imports. docs/ledger.md states how many cases these
// are.
#include <gtest/gtest.h>

#include "ledger/testing/fault_loops.h"

namespace boltbeam::ledger {
namespace {

void Report(const char* what, const LoopResult& result, std::uint64_t expected) {
  std::printf("%llu %s, %zu different ledgers left\n", static_cast<unsigned long long>(result.cases), what,
              result.states.size());
  EXPECT_EQ(result.wrong, "");
  EXPECT_EQ(result.cases, expected) << "as docs/ledger.md states";
}

std::vector<Task> Appends() { return AppendTasks({std::begin(kStarts), std::end(kStarts)}); }

TEST(LedgerFaultsSlow, RecordsAndEveryFaultOnceAndForEver) {
  Report("cases of a fault while records are written", LoopOverFaults(Appends()), 5'780);
}

TEST(LedgerFaultsSlow, RecordsAndPowerLoss) {
  Report("cases of a power loss while records are written", LoopOverPowerLosses(Appends(), 8), 10'404);
}

TEST(LedgerFaultsSlow, RecordsAndASecondFaultDuringTheRecovery) {
  Report("cases of a second fault after records", LoopOverSecondFaults(Appends(), 1, 1), 117'768);
}

TEST(LedgerFaultsSlow, RepairsAndEveryFaultOnceAndForEver) {
  Report("cases of a fault during a repair", LoopOverFaults(RepairTasks()), 7'060);
}

TEST(LedgerFaultsSlow, RepairsAndPowerLoss) {
  Report("cases of a power loss during a repair", LoopOverPowerLosses(RepairTasks(), 8), 12'708);
}

TEST(LedgerFaultsSlow, RepairsAndASecondFaultDuringTheNext) {
  Report("cases of a second fault after a repair", LoopOverSecondFaults(RepairTasks(), 1, 2), 204'995);
}

TEST(LedgerFaultsSlow, ImportsAndEveryFaultOnceAndForEver) {
  Report("cases of a fault during an import", LoopOverFaults(ImportTasks()), 9'670);
}

TEST(LedgerFaultsSlow, ImportsAndPowerLoss) {
  Report("cases of a power loss during an import", LoopOverPowerLosses(ImportTasks(), 8), 17'406);
}

TEST(LedgerFaultsSlow, ImportsAndASecondFaultDuringTheNext) {
  Report("cases of a second fault after an import", LoopOverSecondFaults(ImportTasks(), 1, 7), 222'719);
}

}  // namespace
}  // namespace boltbeam::ledger
