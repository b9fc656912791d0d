// Taking a ledger to another machine: chains are extended, never mixed; what can't be taken changes nothing.
#include "ledger/merge.h"

#include <gtest/gtest.h>

#include "base/paths.h"
#include "ledger/reopen.h"
#include "ledger/repair.h"
#include "ledger/testing/scenario.h"
#include "ledger/verify.h"

namespace boltbeam::ledger {
namespace {

Ledger On(SimulatedDisk& disk, const std::string& writer) { return *Ledger::Open(DiskOptions(disk, writer)); }

void AppendWithSamples(Ledger& ledger, const std::string& marker) {
  Verdict verdict = MarkedVerdict(marker);
  verdict.samples = {*ledger.StoreSamples(marker + std::string("\0\x80 bytes", 8)), "test.v1"};
  ASSERT_TRUE(ledger.AppendVerdict(verdict));
}

std::uint64_t Records(SimulatedDisk& disk) {
  const Result<Verification> verified = Verify(disk, kDiskFolder);
  EXPECT_TRUE(verified->faults.empty()) << verified->faults.at(0).Message();
  return verified->records;
}

TEST(LedgerMerge, AChainArrivesWithItsSamplesAndGrowsLater) {
  SimulatedDisk first, second;
  Ledger a = On(first, "a"), b = On(second, "b");
  AppendWithSamples(a, "one");
  AppendWithSamples(b, "own");
  ImportResult result = *Import(b, *Export(a, "", true), "a.jsonl");
  EXPECT_EQ(result.new_chains, std::vector<std::string>{"a"});
  EXPECT_EQ(result.records, 1U);
  EXPECT_EQ(result.blobs, 1U);
  EXPECT_EQ(Records(second), 2U);
  AppendWithSamples(a, "two");
  const std::string both = *Export(a, "", true);
  result = *Import(b, both, "a.jsonl");
  EXPECT_EQ(result.extended_chains, std::vector<std::string>{"a"});
  EXPECT_EQ(Records(second), 3U);
  result = *Import(b, both, "a.jsonl");
  EXPECT_EQ(result.known_chains, std::vector<std::string>{"a"});
  EXPECT_EQ(Records(second), 3U);
  // And back: everything that b has.
  EXPECT_EQ(Import(a, *Export(b, "", true), "b.jsonl")->records, 1U);
  EXPECT_EQ(Records(first), 3U);
  ASSERT_TRUE(a.AppendPrediction(MarkedPrediction("goes on")));
  EXPECT_EQ(Records(first), 4U);
}

TEST(LedgerMerge, AForkIsRefusedByNameAndChangesNothing) {
  SimulatedDisk first, second;
  Ledger a = On(first, "twin"), b = On(second, "twin");
  AppendWithSamples(a, "the same");
  ASSERT_TRUE(Import(b, *Export(a, "", true), "a.jsonl"));
  AppendWithSamples(a, "one way");
  AppendWithSamples(b, "another way");
  const Result<ImportResult> result = Import(b, *Export(a, "", true), "a.jsonl");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kLedgerFork);
  EXPECT_NE(result.error().Message().find("the writer twin: record 2"), std::string::npos) << result.error().Message();
  EXPECT_EQ(Records(second), 2U);
}

TEST(LedgerMerge, DamagedLinesAreRefusedBeforeAnythingIsWritten) {
  SimulatedDisk first, second;
  Ledger a = On(first, "a"), b = On(second, "b");
  AppendWithSamples(a, "one");
  AppendWithSamples(a, "two");
  const std::string text = *Export(a, "", true);
  std::string edited = text;
  edited.replace(edited.find("\"two\""), 5, "\"six\"");
  EXPECT_EQ(Import(b, edited, "a.jsonl").error().code, Code::kLedgerImport);
  const std::string gap = text.substr(text.find('\n') + 1);
  EXPECT_EQ(Import(b, gap, "a.jsonl").error().code, Code::kLedgerDamaged);
  std::string other_samples = text;
  const std::size_t at = other_samples.find("base64\":\"") + 9;
  other_samples[at] = other_samples[at] == 'A' ? 'B' : 'A';
  EXPECT_EQ(Import(b, other_samples, "a.jsonl").error().code, Code::kLedgerImport);
  for (const char* wrong : {"", "\n", "{}", "no JSON", "[1]", "{\"schema\":5}"}) {
    EXPECT_EQ(Import(b, wrong, "wrong").error().code, Code::kLedgerImport) << wrong;
  }
  EXPECT_EQ(Records(second), 0U);
}

TEST(LedgerMerge, WithoutSamplesItSaysWhatIsMissing) {
  SimulatedDisk first, second;
  Ledger a = On(first, "a"), b = On(second, "b");
  AppendWithSamples(a, "one");
  EXPECT_EQ(Import(b, *Export(a, "", false), "a.jsonl")->missing_blobs, 1U);
  EXPECT_EQ(Export(a, "nobody", true).error().code, Code::kLedgerNoRecord);
}

TEST(LedgerMerge, ThePythonToolsEntriesBecomeVerdictsOnce) {
  SimulatedDisk disk;
  Ledger ledger = On(disk, "writer");
  const std::string text = *base::ReadWholeFile(BOLTBEAM_TEST_DATA "/ledger/route_entries.jsonl");
  EXPECT_EQ(Import(ledger, text, "entries")->foreign, 3U);
  const ImportResult again = *Import(ledger, text, "entries");
  EXPECT_EQ(again.foreign, 0U);
  EXPECT_EQ(again.known_foreign, 3U);
  EXPECT_EQ(Records(disk), 3U);
  Index index = *Index::Open(ledger);
  EXPECT_TRUE(*IsRefuted(index, "example_norm_fold", "chip_a", "any shape"));
  EXPECT_FALSE(*IsRefuted(index, "example_speculation", "chip_a", ""));
  const Verdict refuted = *VerdictFrom(index.Find("1")->payload);
  EXPECT_EQ(refuted.reason, "Q4_K decode: exact, and 82 us a token slower.");
  EXPECT_EQ(refuted.reopen_when.at(0).text, "the normalised activation is staged once");
  EXPECT_EQ(refuted.conditions.at(0).state, State::kUnknown);
  // A promotion of others is a candidate here.
  EXPECT_EQ(VerdictFrom(index.Find("3")->payload)->ruling, Ruling::kCandidate);
  EXPECT_EQ(Import(ledger, R"({"schema":"boltbeam.route_ledger_entry.v1","status":"great"})", "x").error().code,
            Code::kLedgerImport);
  EXPECT_EQ(Import(ledger, R"({"schema":"boltbeam.route_ledger_entry.v1","status":"deferred"})", "x").error().code,
            Code::kLedgerImport);
}

// Another import of the same goes on at the same time: it comes first whenever a lock is waited for.
TEST(LedgerMerge, TwoImportsAtTheSameTimeEnterAnEntryOnce) {
  SimulatedDisk disk;
  Ledger ledger = On(disk, "writer");
  const std::string text = *base::ReadWholeFile(BOLTBEAM_TEST_DATA "/ledger/route_entries.jsonl");
  disk.BeforeALock([&](SimulatedDisk& shared) {
    Ledger other = On(shared, "other");
    EXPECT_EQ(Import(other, text, "entries")->foreign, 3U);
  });
  EXPECT_EQ(Import(ledger, text, "entries")->known_foreign, 3U);
  EXPECT_EQ(Records(disk), 3U);
}

// An import that was cut between the chain and its anchor: the next one, which brings nothing new, moves the anchor.
TEST(LedgerMerge, AnAnchorThatWasLeftBehindFollows) {
  SimulatedDisk first, second;
  Ledger a = On(first, "a"), b = On(second, "b");
  const std::string anchor_path = AnchorPath(ChainPath(kDiskFolder, "a"));
  AppendWithSamples(a, "one");
  const std::string one = *Export(a, "", true);
  ASSERT_TRUE(Import(b, one, "a.jsonl"));
  const std::string behind = second.Bytes(anchor_path);
  AppendWithSamples(a, "two");
  const std::string two = *Export(a, "", true);
  ASSERT_TRUE(Import(b, two, "a.jsonl"));
  const std::string end = second.Bytes(anchor_path);
  for (const std::string& arriving : {two, one}) {
    second.SetBytes(anchor_path, behind);
    EXPECT_EQ(Import(b, arriving, "a.jsonl")->records, 0U);
    EXPECT_EQ(second.Bytes(anchor_path), end);
    second.Erase(anchor_path);
    EXPECT_EQ(Import(b, arriving, "a.jsonl")->records, 0U);
    ASSERT_TRUE(second.Exists(anchor_path));
    EXPECT_EQ(second.Bytes(anchor_path), end);
  }
  EXPECT_EQ(Records(second), 2U);
}

TEST(LedgerMerge, ThePublicSeedLedgerOfThePythonTool) {
  SimulatedDisk disk;
  Ledger ledger = On(disk, "writer");
  const std::string text = *base::ReadWholeFile(BOLTBEAM_TEST_DATA "/ledger/nv_decode_seed_ledger.jsonl");
  const Result<ImportResult> imported = Import(ledger, text, "seed");
  ASSERT_TRUE(imported) << imported.error().Message();
  EXPECT_EQ(imported->foreign, 13U);
  EXPECT_TRUE(Verify(disk, kDiskFolder)->faults.empty());
  Index index = *Index::Open(ledger);
  EXPECT_EQ(index.StandingRefutations()->size(), 12U);
  EXPECT_TRUE(*IsRefuted(index, "nv_decode_norm_once_fold", "nvidia_sm120", ""));
  EXPECT_FALSE(*IsRefuted(index, "nv_decode_norm_once_fold", "another_chip", ""));
  EXPECT_FALSE(*IsRefuted(index, "nv_decode_spec_decoding", "nvidia_sm120", ""));
  const Verdict last = *VerdictFrom(index.Find("13")->payload);
  EXPECT_EQ(last.subject.candidate, "nv_decode_fused_reduce_scale_smem");
  EXPECT_NE(last.reason.find("best half4 arm +38.3% over the no-norm GEMV"), std::string::npos);
  EXPECT_NE(last.reopen_when.at(0).text.find("E_32_32_4_f14a5cc0"), std::string::npos);
}

// Bytes that are no record are not written over in silence: the import refuses, and a repair keeps them.
TEST(LedgerMerge, ATornEndIsNotWrittenOver) {
  SimulatedDisk first, second;
  Ledger a = On(first, "a"), b = On(second, "b");
  AppendWithSamples(a, "one");
  ASSERT_TRUE(Import(b, *Export(a, "", true), "a.jsonl"));
  const std::string chain = ChainPath(kDiskFolder, "a"), torn = R"({"kind":"verdict","payl)";
  second.SetBytes(chain, second.Bytes(chain) + torn);
  const std::string before = second.Bytes(chain);
  EXPECT_TRUE(Import(b, *Export(a, "", true), "a.jsonl")) << "nothing new: nothing is written over";
  AppendWithSamples(a, "two");
  const Result<ImportResult> refused = Import(b, *Export(a, "", true), "a.jsonl");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLedgerDamaged);
  for (const char* word : {"a.jsonl", "nothing was imported", "ledger verify", "repair"}) {
    EXPECT_NE(refused.error().Message().find(word), std::string::npos) << refused.error().Message();
  }
  EXPECT_EQ(second.Bytes(chain), before);
  const Result<std::vector<Repaired>> repaired = Repair(b, "a");
  ASSERT_TRUE(repaired);
  ASSERT_EQ(repaired->size(), 1U);
  EXPECT_EQ(*b.LoadSamples(repaired->front().kept), torn);
  EXPECT_EQ(Import(b, *Export(a, "", true), "a.jsonl")->records, 1U);
  EXPECT_TRUE(Verify(second, kDiskFolder)->faults.empty());
}

}  // namespace
}  // namespace boltbeam::ledger
