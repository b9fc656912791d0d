// A damaged chain is mended without losing a byte in silence, whatever fails meanwhile.
#include "ledger/repair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "ledger/merge.h"
#include "ledger/testing/scenario.h"
#include "ledger/verify.h"

namespace boltbeam::ledger {
namespace {

constexpr const char* kOtherChain = "/data/boltbeam/ledger/other.jsonl";

struct Damage {
  const char* name;
  const char* chain;       // that it is done to
  std::uint64_t good = 0;  // records that stay
  std::function<void(SimulatedDisk&)> make;
};

void Replace(SimulatedDisk& disk, const char* path, const std::string& from, const std::string& to) {
  std::string bytes = disk.Bytes(path);
  const std::size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos);
  disk.SetBytes(path, bytes.replace(at, from.size(), to));
}

std::vector<Damage> Damages() {
  const auto cut = [](SimulatedDisk& disk) {
    const std::string bytes = disk.Bytes(kDiskChain);
    disk.SetBytes(kDiskChain, bytes.substr(0, bytes.rfind("{\"kind\"")));
  };
  return {
      {"an edited line", kDiskChain, 1, [](auto& disk) { Replace(disk, kDiskChain, "before 2", "before 9"); }},
      {"the first line", kDiskChain, 0, [](auto& disk) { Replace(disk, kDiskChain, "before 1", "before 9"); }},
      {"the end cut off", kDiskChain, 5, cut},
      {"the file gone", kDiskChain, 0, [](auto& disk) { disk.Erase(kDiskChain); }},
      {"no anchor's text", kDiskChain, 6, [](auto& disk) { disk.SetBytes(kDiskAnchor, "anchor\n"); }},
      {"another chain's line", kOtherChain, 1, [](auto& disk) { Replace(disk, kOtherChain, "other 2", "other 9"); }},
  };
}

/// Six records of this writer and three of another one.
SimulatedDisk TwoChains() {
  std::vector<Said> said;
  SimulatedDisk disk = MakeDisk(Start::kRecords, said);
  AppendThree(disk, "more", said);
  Ledger other = *Ledger::Open(DiskOptions(disk, "other"));
  for (const char* marker : {"other 1", "other 2", "other 3"}) {
    EXPECT_TRUE(other.AppendPrediction(MarkedPrediction(marker)));
  }
  disk.Restart(Survives::kAll, 0);
  return disk;
}

/// Every byte of the damaged chain and its anchor is in the chain or in a blob that a recovery record names.
void ExpectNothingDropped(SimulatedDisk& disk, const Damage& damage, const std::string& bytes,
                          const std::string& anchor) {
  const Verification verified = *Verify(disk, kDiskFolder);
  ASSERT_TRUE(verified.faults.empty()) << damage.name << ": " << verified.faults.front().Message();
  Ledger ledger = *Ledger::Open(DiskOptions(disk));
  std::set<std::string> kept;
  for (const Chain& chain : verified.chains) {
    if (chain.path == damage.chain) {
      EXPECT_GE(chain.entries.size(), damage.good) << damage.name;
    }
    for (const Entry& entry : chain.entries) {
      if (entry.record.kind != Kind::kRecovery) continue;
      for (const std::string& hash : BlobsOf(entry.record)) kept.insert(*ledger.LoadSamples(hash));
    }
  }
  const std::string now = disk.Bytes(damage.chain);
  const auto together = [&](const std::string& blob) {
    return bytes.ends_with(blob) && now.starts_with(bytes.substr(0, bytes.size() - blob.size()));
  };
  EXPECT_TRUE(now.starts_with(bytes) || std::ranges::any_of(kept, together)) << damage.name;
  EXPECT_TRUE(kept.contains(anchor)) << damage.name;
}

TEST(LedgerRepair, KeepsTheGoodBeginningAndNamesWhatWasCut) {
  for (const Damage& damage : Damages()) {
    SimulatedDisk disk = TwoChains();
    damage.make(disk);
    const std::string bytes = disk.Bytes(damage.chain), anchor = disk.Bytes(AnchorPath(damage.chain));
    const std::string fault = Verify(disk, kDiskFolder)->faults.at(0).Message();
    Ledger ledger = *Ledger::Open(DiskOptions(disk));
    const Result<std::vector<Repaired>> repaired = Repair(ledger, "");
    ASSERT_TRUE(repaired) << damage.name << ": " << repaired.error().Message();
    ASSERT_EQ(repaired->size(), 1U) << damage.name;
    EXPECT_EQ(repaired->front().fault, fault);
    EXPECT_EQ(repaired->front().records, damage.good) << damage.name;
    ExpectNothingDropped(disk, damage, bytes, anchor);
    EXPECT_TRUE(ledger.AppendPrediction(MarkedPrediction("afterwards"))) << damage.name;
    EXPECT_TRUE(Repair(ledger, "")->empty()) << "nothing is left to mend";
  }
}

TEST(LedgerRepair, CountsTheWholeRecordsBehindTheDamage) {
  SimulatedDisk disk = TwoChains();
  Damages().front().make(disk);
  Ledger ledger = *Ledger::Open(DiskOptions(disk));
  EXPECT_EQ(Repair(ledger, "")->at(0).whole_records, 4U);
}

TEST(LedgerRepair, ASoundCopyContinuesAnotherWritersChain) {
  SimulatedDisk disk = TwoChains();
  const std::string sound = *Export(*Ledger::Open(DiskOptions(disk)), "other", true);
  Damages().back().make(disk);
  Ledger ledger = *Ledger::Open(DiskOptions(disk));
  ASSERT_TRUE(Repair(ledger, "other"));
  EXPECT_EQ(Import(ledger, sound, "copy")->records, 2U);
  EXPECT_EQ(ReadChain(disk, kOtherChain)->entries.size(), 3U);
}

// What looks torn until the lock is ours may be a record that its writer is adding.
TEST(LedgerRepair, ARecordThatAnotherWriterIsAddingIsNoDamage) {
  SimulatedDisk disk = TwoChains();
  const std::string whole = disk.Bytes(kOtherChain);
  disk.SetBytes(kOtherChain, whole.substr(0, whole.size() - 20));
  Ledger ledger = *Ledger::Open(DiskOptions(disk));
  disk.BeforeALock([&](SimulatedDisk& other) { other.SetBytes(kOtherChain, whole); });
  EXPECT_TRUE(Repair(ledger, "other")->empty());
  EXPECT_EQ(disk.Bytes(kOtherChain), whole);
  EXPECT_TRUE(Verify(disk, kDiskFolder)->faults.empty());
}

TEST(LedgerRepair, AWriterThatIsNotThereIsNamed) {
  SimulatedDisk disk = TwoChains();
  Ledger ledger = *Ledger::Open(DiskOptions(disk));
  EXPECT_EQ(Repair(ledger, "nobody").error().code, Code::kLedgerNoRecord);
}

}  // namespace
}  // namespace boltbeam::ledger
