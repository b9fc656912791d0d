// The ledger on this machine's file system: locks, threads, and what else may stand where a chain should be.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "ledger/testing/scenario.h"
#include "ledger/verify.h"

namespace boltbeam::ledger {
namespace {

namespace fs = std::filesystem;

class LedgerFiles : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  Ledger Open(std::chrono::milliseconds lock_timeout = std::chrono::seconds(60)) {
    Options options;
    options.folder = (folder_ / "data" / "ledger").string();
    options.writer = "writer";
    options.lock_timeout = lock_timeout;
    return *Ledger::Open(options);
  }
  [[nodiscard]] fs::path Chain() const { return folder_ / "data" / "ledger" / "writer.jsonl"; }

  fs::path folder_ = fs::path(testing::TempDir()) / ("boltbeam_ledger_files." + std::to_string(::getpid()));
};

TEST_F(LedgerFiles, WritesAndReadsBack) {
  Ledger ledger = Open();
  ASSERT_TRUE(ledger.CheckWritable());
  EXPECT_FALSE(fs::exists(Chain()));  // asking makes no chain
  Verdict verdict = MarkedVerdict("kept");
  verdict.samples = {*ledger.StoreSamples("1 2 3"), "test.v1"};
  const Receipt receipt = *ledger.AppendVerdict(verdict);
  EXPECT_EQ(receipt.seq, 1U);
  EXPECT_TRUE(receipt.anchored);
  const Verification verified = *Verify(RealFiles(), ledger.options().folder);
  EXPECT_TRUE(verified.faults.empty());
  EXPECT_EQ(verified.records, 1U);
  EXPECT_EQ(verified.blobs, 1U);
  EXPECT_EQ(*ledger.LoadSamples(verdict.samples.sha256), "1 2 3");
  // The clock's time, to the millisecond.
  EXPECT_EQ(verified.chains[0].entries[0].record.time.size(), std::string("2026-11-29T12:00:00.000Z").size());
}

TEST_F(LedgerFiles, ALockThatIsHeldIsWaitedForAndThenNamed) {
  Ledger ledger = Open(std::chrono::milliseconds(30));
  ASSERT_TRUE(ledger.AppendPrediction(MarkedPrediction("first")));
  {
    const Result<Lock> held = Lock::Take(RealFiles(), ledger.options().folder, std::chrono::seconds(1));
    ASSERT_TRUE(held);
    const Result<Receipt> refused = ledger.AppendPrediction(MarkedPrediction("second"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kLedgerLocked);
    EXPECT_NE(refused.error().Message().find("lock"), std::string::npos);
  }
  EXPECT_TRUE(ledger.AppendPrediction(MarkedPrediction("third")));
}

TEST_F(LedgerFiles, ALockFileThatIsReplacedWhileWaitingIsTakenAgain) {
  Ledger ledger = Open();
  ASSERT_TRUE(ledger.AppendPrediction(MarkedPrediction("first")));
  const fs::path lock = folder_ / "data" / "ledger" / "lock";
  auto held = std::make_unique<Result<Lock>>(Lock::Take(RealFiles(), ledger.options().folder, std::chrono::seconds(1)));
  std::thread waiting([&] { EXPECT_TRUE(ledger.AppendPrediction(MarkedPrediction("second"))); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  fs::remove(lock);
  held.reset();
  waiting.join();
  EXPECT_TRUE(fs::exists(lock));
}

TEST_F(LedgerFiles, ThreadsTakeTurns) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      Ledger ledger = Open();
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(ledger.AppendPrediction(MarkedPrediction(std::to_string(thread) + "/" + std::to_string(i))));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Verification verified = *Verify(RealFiles(), Open().options().folder);
  EXPECT_TRUE(verified.faults.empty());
  EXPECT_EQ(verified.records, 12U);
}

TEST_F(LedgerFiles, WhatIsNoFileIsRefused) {
  Ledger ledger = Open();
  fs::create_directories(Chain());
  EXPECT_EQ(ledger.AppendPrediction(MarkedPrediction("x")).error().code, Code::kLedgerNotRecorded);
  EXPECT_FALSE(ledger.ReadChains());
  fs::remove_all(Chain());
  ASSERT_EQ(::mkfifo(Chain().c_str(), 0644), 0);
  EXPECT_EQ(ledger.AppendPrediction(MarkedPrediction("x")).error().code, Code::kLedgerNotRecorded);
  EXPECT_FALSE(ledger.ReadChains());
  fs::remove(Chain());
  // A file where the folder should be.
  fs::remove_all(folder_);
  std::ofstream(folder_) << "a file";
  EXPECT_FALSE(ledger.CheckWritable());
  EXPECT_EQ(ledger.AppendPrediction(MarkedPrediction("x")).error().code, Code::kLedgerNotRecorded);
}

TEST_F(LedgerFiles, ADiskThatIsAlwaysFullRecordsNothing) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no such device";
  Ledger ledger = Open();
  ASSERT_TRUE(ledger.AppendPrediction(MarkedPrediction("first")));
  const fs::path blobs = folder_ / "data" / "ledger" / "blobs";
  fs::create_directories(blobs);
  // The device can't be synced or renamed to: anything may fail, but nothing may be said to be recorded.
  fs::rename(Chain(), folder_ / "kept");
  fs::create_symlink("/dev/full", Chain());
  EXPECT_FALSE(ledger.AppendPrediction(MarkedPrediction("second")));
  fs::remove(Chain());
  fs::rename(folder_ / "kept", Chain());
  EXPECT_EQ(Verify(RealFiles(), ledger.options().folder)->records, 1U);
}

TEST_F(LedgerFiles, TheWriterIsThisMachineAndUser) {
  EXPECT_TRUE(IsWriterName(ThisWriter())) << ThisWriter();
  Options options;
  options.writer = "../elsewhere";
  EXPECT_EQ(Ledger::Open(options).error().code, Code::kLedgerRecord);
}

}  // namespace
}  // namespace boltbeam::ledger
