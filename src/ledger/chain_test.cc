// Lines and chains: what is written can be read, and every damage to a byte or a line is found and named.
#include "ledger/chain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ledger/testing/scenario.h"
#include "ledger/verify.h"

namespace boltbeam::ledger {
namespace {

Record SomeRecord() {
  Record record;
  record.seq = 1;
  record.time = "2026-11-29T12:00:00.000Z";
  record.writer = "host-user";
  record.prev = kNoHash;
  record.kind = Kind::kMeasurement;
  record.payload = {{"b", 0.1}, {"a", {1, "\u00e9", nullptr}}, {"c", 18446744073709551615U}};
  return record;
}

/// One chain of six records and its anchor.
SimulatedDisk SixRecords() {
  std::vector<Said> said;
  SimulatedDisk disk = MakeDisk(Start::kRecords, said);
  AppendThree(disk, "more", said);
  return disk;
}

bool IsDamaged(SimulatedDisk& disk) { return !Verify(disk, kDiskFolder)->faults.empty(); }

TEST(LedgerLine, ReadsWhatItWrote) {
  Record record = SomeRecord();
  const Result<std::string> line = WriteLine(record);
  ASSERT_TRUE(line) << line.error().Message();
  ASSERT_EQ(line->back(), '\n');
  const Result<Record> read = ReadLine(std::string_view(*line).substr(0, line->size() - 1));
  ASSERT_TRUE(read) << read.error().Message();
  EXPECT_EQ(read->payload, record.payload);
  EXPECT_EQ(read->hash, record.hash);
  EXPECT_EQ(read->kind, Kind::kMeasurement);
  EXPECT_EQ(read->writer, "host-user");
}

TEST(LedgerLine, HashesWhatAnybodyCanHash) {
  // sha256sum over the line whose ,"hash":"…"} gave way to a brace.
  Record record = SomeRecord();
  record.payload = {{"x", 1}};
  EXPECT_EQ(
      *WriteLine(record),
      "{\"kind\":\"measurement\",\"payload\":{\"x\":1},\"prev\":\"" + std::string(kNoHash) +
          "\",\"schema\":\"boltbeam.ledger.v1\",\"seq\":1,\"time\":\"2026-11-29T12:00:00.000Z\","
          "\"writer\":\"host-user\",\"hash\":\"277edabd18b3cd6f678864e75cffa96ed0f125d61d44d62f7fc15a176688c955\"}\n");
}

TEST(LedgerLine, RefusesWhatJsonCannotHold) {
  Record record = SomeRecord();
  record.payload = {{"x", std::nan("")}};
  EXPECT_EQ(WriteLine(record).error().code, Code::kLedgerRecord);
  record.payload = {{"x", "\xff"}};
  EXPECT_EQ(WriteLine(record).error().code, Code::kLedgerRecord);
  record.payload = {{"x", std::string(kMostLineBytes, 'x')}};
  EXPECT_EQ(WriteLine(record).error().code, Code::kLedgerRecord);
  record.payload = nlohmann::json::array({1, 2});
  EXPECT_EQ(WriteLine(record).error().code, Code::kLedgerRecord);
}

TEST(LedgerLine, RefusesHostileNesting) {
  EXPECT_EQ(ParseJson(std::string(100'000, '['), "here").error().code, Code::kJson);
  EXPECT_TRUE(ParseJson("\"[[[[\\\"[[[[\"", "here"));
}

TEST(LedgerChain, EveryCutIsFound) {
  SimulatedDisk disk = SixRecords();
  const std::string whole = disk.Bytes(kDiskChain);
  ASSERT_FALSE(IsDamaged(disk));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    disk.SetBytes(kDiskChain, whole.substr(0, size));
    ASSERT_TRUE(IsDamaged(disk)) << "cut to " << size;
  }
  std::printf("%zu cuts of the chain\n", whole.size());
}

TEST(LedgerChain, EveryFlippedByteIsFound) {
  SimulatedDisk disk = SixRecords();
  std::size_t cases = 0;
  for (const char* file : {kDiskChain, kDiskAnchor}) {
    const std::string whole = disk.Bytes(file);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const int mask : {0x01, 0x20, 0x80}) {
        std::string flipped = whole;
        flipped[i] = static_cast<char>(flipped[i] ^ mask);
        disk.SetBytes(file, flipped);
        ASSERT_TRUE(IsDamaged(disk)) << file << " byte " << i << " mask " << mask;
        ++cases;
      }
    }
    disk.SetBytes(file, whole);
  }
  std::printf("%zu flipped bits\n", cases);
  ASSERT_FALSE(IsDamaged(disk));
}

TEST(LedgerChain, EveryLineRemovedDoubledOrMovedIsFound) {
  SimulatedDisk disk = SixRecords();
  std::vector<std::string> lines;
  const Result<Chain> chain = ReadChain(disk, kDiskChain);
  for (const Entry& entry : chain->entries) {
    lines.push_back(disk.Bytes(kDiskChain).substr(entry.offset, entry.size_bytes));
  }
  ASSERT_EQ(lines.size(), 6U);
  const auto expect_found = [&](const std::vector<std::string>& changed) {
    std::string bytes;
    for (const std::string& line : changed) bytes += line;
    disk.SetBytes(kDiskChain, bytes);
    EXPECT_TRUE(IsDamaged(disk));
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> changed = lines;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    expect_found(changed);
    changed = lines;
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
    // The last one doubled lies behind the anchor: the remains of a write, which the next record names and cuts off.
    if (i + 1 < lines.size()) expect_found(changed);
    for (std::size_t j = 0; j < i; ++j) {
      changed = lines;
      std::swap(changed[i], changed[j]);
      expect_found(changed);
    }
  }
}

TEST(LedgerChain, WithoutItsAnchorDamageInsideIsFoundAllTheSame) {
  SimulatedDisk disk = SixRecords();
  disk.Erase(kDiskAnchor);
  const std::string whole = disk.Bytes(kDiskChain);
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  // Up to the line feed before the last line: without an anchor, the last line may be one that nobody was told about.
  for (std::size_t i = 0; i + 1 < last_line; ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x01);
    disk.SetBytes(kDiskChain, flipped);
    ASSERT_TRUE(IsDamaged(disk)) << i;
  }
}

TEST(LedgerChain, ADamagedChainTakesNoRecord) {
  SimulatedDisk disk = SixRecords();
  const std::string whole = disk.Bytes(kDiskChain);
  Ledger ledger = *Ledger::Open(DiskOptions(disk));
  for (const std::string& damaged : {whole.substr(0, whole.size() - 1), std::string(), whole.substr(0, 10)}) {
    disk.SetBytes(kDiskChain, damaged);
    const Result<Receipt> receipt = ledger.AppendPrediction(MarkedPrediction("refused"));
    ASSERT_FALSE(receipt);
    EXPECT_EQ(receipt.error().code, Code::kLedgerDamaged) << receipt.error().Message();
    EXPECT_EQ(disk.Bytes(kDiskChain), damaged);
  }
}

TEST(LedgerChain, AHandEditedLineIsNamed) {
  SimulatedDisk disk = SixRecords();
  std::string bytes = disk.Bytes(kDiskChain);
  const std::size_t at = bytes.find("before 3");
  bytes.replace(at, 8, "better 3");
  disk.SetBytes(kDiskChain, bytes);
  const Result<Verification> verified = Verify(disk, kDiskFolder);
  ASSERT_EQ(verified->faults.size(), 1U);
  const std::string message = verified->faults[0].Message();
  EXPECT_NE(message.find(std::string(kDiskChain) + ": line 3"), std::string::npos) << message;
  EXPECT_NE(message.find("it was changed"), std::string::npos) << message;
}

TEST(LedgerChain, AnEditorsLineEndingsAreNamed) {
  SimulatedDisk disk = SixRecords();
  std::string bytes = disk.Bytes(kDiskChain);
  bytes.insert(bytes.find('\n'), "\r");
  disk.SetBytes(kDiskChain, bytes);
  EXPECT_NE(Verify(disk, kDiskFolder)->faults.at(0).Message().find("text editor"), std::string::npos);
}

TEST(LedgerChain, ARecoverySaysWhatWasCut) {
  std::vector<Said> said;
  SimulatedDisk disk = MakeDisk(Start::kTornShort, said);
  const std::string torn = disk.Bytes(kDiskChain);
  const Chain before = *ReadChain(disk, kDiskChain);
  ASSERT_EQ(before.state, ChainState::kTorn);
  AppendOne(disk, "next", said);
  const Chain after = *ReadChain(disk, kDiskChain);
  ASSERT_EQ(after.entries.size(), 5U);
  const Record& recovery = after.entries[3].record;
  EXPECT_EQ(recovery.kind, Kind::kRecovery);
  EXPECT_EQ(recovery.payload.at("cut_bytes"), before.torn_bytes);
  EXPECT_EQ(recovery.payload.at("cut_at_byte"), before.good_bytes);
  const Ledger ledger = *Ledger::Open(DiskOptions(disk));
  EXPECT_EQ(*ledger.LoadSamples(recovery.payload.at("cut_sha256")), torn.substr(before.good_bytes));
}

TEST(LedgerChain, ReadingNeverWrites) {
  std::vector<Said> said;
  SimulatedDisk disk = MakeDisk(Start::kTornLong, said);
  const std::string before = disk.Bytes(kDiskChain);
  EXPECT_TRUE(Verify(disk, kDiskFolder));
  EXPECT_EQ(disk.Bytes(kDiskChain), before);
}

TEST(LedgerChain, AMissingOrOtherBlobIsNamed) {
  SimulatedDisk disk = SixRecords();
  const std::string blob = BlobsOf(ReadChain(disk, kDiskChain)->entries[1].record).at(0);
  const std::string path = std::string(kDiskFolder) + "/blobs/" + blob;
  const std::string bytes = disk.Bytes(path);
  disk.SetBytes(path, bytes + "x");
  EXPECT_EQ(Verify(disk, kDiskFolder)->faults.at(0).code, Code::kLedgerBlob);
  disk.Erase(path);
  EXPECT_EQ(Verify(disk, kDiskFolder)->faults.at(0).code, Code::kLedgerBlob);
}

TEST(LedgerChain, ARecordMustNotNameSamplesThatAreNotThere) {
  SimulatedDisk disk = SixRecords();
  Ledger ledger = *Ledger::Open(DiskOptions(disk));
  Verdict verdict = MarkedVerdict("no samples");
  verdict.samples = {std::string(64, 'a'), "test.samples.v1"};
  EXPECT_EQ(ledger.AppendVerdict(verdict).error().code, Code::kLedgerBlob);
}

}  // namespace
}  // namespace boltbeam::ledger
