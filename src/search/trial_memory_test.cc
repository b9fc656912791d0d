#include "search/trial_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "kernel/knobs.h"

namespace boltbeam::search {
namespace {

class TrialMemoryTest : public testing::Test {
 protected:
  TrialMemoryTest() : folder_(std::filesystem::path(testing::TempDir()) / ("trials-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    part_.table = "Q8_0.1024x1024";
    part_.format = formats::FindFormat("Q8_0");
    part_.rows = part_.cols = 1024;
  }
  ~TrialMemoryTest() override { std::filesystem::remove_all(folder_); }

  ledger::Ledger& Ledger() {
    if (!ledger_) {
      ledger::Options options;
      options.folder = folder_.string();
      ledger_.emplace(ledger::Ledger::Open(options).value());
    }
    return *ledger_;
  }
  TrialMemory Open(const TrialConditions& conditions = {"a-chip", 2, 1000}) {
    return TrialMemory::Open(Ledger(), conditions).value();
  }
  static Settled Slower() {
    Settled settled;
    settled.ratio = {1.2, 1.1, 1.3};
    settled.against = "gemv:best";
    settled.is_refuted = true;
    settled.reason = "slower by 20 %";
    settled.ns = 1234;
    settled.windows = 9;
    return settled;
  }

  std::filesystem::path folder_;
  Part part_;
  std::optional<ledger::Ledger> ledger_;
  const TrialKey slow_{"gemv:slow", "code-1"};
};

TEST_F(TrialMemoryTest, KnowsWhatWasRefutedAsLongAsItsGroundsStand) {
  {
    TrialMemory memory = Open();
    EXPECT_FALSE(memory.Find(part_, slow_)->has_value());
    ASSERT_TRUE(memory.Settle(part_, slow_, Slower()));
  }
  TrialMemory memory = Open();
  const std::optional<Settled> known = memory.Find(part_, slow_).value();
  ASSERT_TRUE(known);
  EXPECT_TRUE(known->is_refuted);
  EXPECT_EQ(known->ratio.estimate, 1.2);
  EXPECT_EQ(known->ns, 1234);
  // Another shape, another chip, another candidate: nothing is known about them.
  Part other = part_;
  other.table = "Q8_0.2048x1024";
  EXPECT_FALSE(memory.Find(other, slow_)->has_value());
  EXPECT_FALSE(memory.Find(part_, {"gemv:other", "code-1"})->has_value());
  EXPECT_FALSE(Open({"another-chip", 2, 1000}).Find(part_, slow_)->has_value());
}

TEST_F(TrialMemoryTest, AChangeReopensExactlyWhatDependedOnIt) {
  const TrialKey other{"gemv:other", "code-2"};
  {
    TrialMemory memory = Open();
    ASSERT_TRUE(memory.Settle(part_, slow_, Slower()));
    ASSERT_TRUE(memory.Settle(part_, other, Slower()));
  }
  {
    // The compiler makes other code of one of them.
    TrialMemory memory = Open();
    EXPECT_FALSE(memory.Find(part_, {"gemv:slow", "code-1b"})->has_value());
    EXPECT_TRUE(memory.Find(part_, other)->has_value());
  }
  {
    // That was recorded: it stays open though the old code comes back.
    TrialMemory memory = Open();
    EXPECT_FALSE(memory.Find(part_, slow_)->has_value());
    EXPECT_TRUE(memory.Find(part_, other)->has_value());
  }
  // Another cache size reopens all that was timed with the old one.
  EXPECT_FALSE(Open({"a-chip", 2, 2000}).Find(part_, other)->has_value());
}

TEST_F(TrialMemoryTest, AWrongKernelIsRefutedUntilItsCodeChanges) {
  ASSERT_TRUE(Open().SettleWrong(part_, slow_, "its result is wrong"));
  TrialMemory memory = Open();
  EXPECT_TRUE(memory.Find(part_, slow_).value()->is_refuted);
  EXPECT_FALSE(memory.Find(part_, {"gemv:slow", "code-2"})->has_value());
}

TEST_F(TrialMemoryTest, GivesBackTheRoundsOfTheSameCandidatesAlone) {
  const std::vector<TrialKey> keys{{"gemv:a", "1"}, {"gemv:b", "2"}, {"gemv:c", "3"}};
  const double out = std::nan("");
  {
    TrialMemory memory = Open();
    ASSERT_TRUE(memory.AddRound(part_, keys, 0, {{0, {10, 11, 12}}, {0, {20, 21, out}}}, 40));
    ASSERT_TRUE(memory.AddRound(part_, keys, 1, {{1, {30, 31, out}}}, 41));
  }
  const TrialMemory memory = Open();
  const std::vector<Sweep> sweeps = memory.Rounds(part_, keys);
  ASSERT_EQ(sweeps.size(), 3U);
  EXPECT_EQ(sweeps[0].ns, (std::vector<double>{10, 11, 12}));
  EXPECT_EQ(sweeps[1].ns[1], 21);
  EXPECT_TRUE(std::isnan(sweeps[1].ns[2]));
  EXPECT_EQ(sweeps[2].round, 1U);
  EXPECT_EQ(sweeps[2].ns[0], 30);
  EXPECT_TRUE(memory.Rounds(part_, {keys[0], keys[1]}).empty());
  EXPECT_TRUE(memory.Rounds(part_, {keys[0], keys[1], {"gemv:c", "another code"}}).empty());
  EXPECT_TRUE(Open({"a-chip", 1, 1000}).Rounds(part_, keys).empty());
}

TEST_F(TrialMemoryTest, WithoutALedgerNothingIsKept) {
  TrialMemory memory;
  ASSERT_TRUE(memory.Settle(part_, slow_, Slower()));
  ASSERT_TRUE(memory.AddRound(part_, {slow_}, 0, {{0, {1}}}, 0));
  EXPECT_FALSE(memory.Find(part_, slow_)->has_value());
  EXPECT_TRUE(memory.Rounds(part_, {slow_}).empty());
}

}  // namespace
}  // namespace boltbeam::search
