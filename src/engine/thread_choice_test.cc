#include "engine/thread_choice.h"

#include <gtest/gtest.h>

namespace boltbeam::engine {
namespace {

chip::Chip Measured(std::initializer_list<std::pair<const char*, double>> facts) {
  chip::Chip chip;
  for (const auto& [name, value] : facts) {
    chip::Fact& fact = chip.facts.emplace_back();
    fact.name = name;
    fact.value = value;
  }
  return chip;
}

TEST(ThreadChoiceTest, TheFewestThreadsThatReadAsFastAsAny) {
  const chip::Chip chip = Measured({{"read_bandwidth_gb_s", 61},
                                    {"read_bandwidth_gb_s.threads_1", 30},
                                    {"read_bandwidth_gb_s.threads_2", 60.5},
                                    {"read_bandwidth_gb_s.threads_4", 61},
                                    {"read_bandwidth_gb_s.threads_8", 58}});
  EXPECT_EQ(ChooseThreads(chip, 8, "8 usable CPUs").threads, 2U);
  EXPECT_EQ(ChooseThreads(chip, 8, "8 usable CPUs").why, "60.5 GB/s, within 1 % of the best rate measured on up to 8");
  EXPECT_EQ(ChooseThreads(chip, 1, "a quota").threads, 1U);
}

TEST(ThreadChoiceTest, MoreOnlyWhereMoreReadsFaster) {
  const chip::Chip chip = Measured({{"read_bandwidth_gb_s.threads_1", 30},
                                    {"read_bandwidth_gb_s.threads_2", 45},
                                    {"read_bandwidth_gb_s.threads_3", 60}});
  EXPECT_EQ(ChooseThreads(chip, 3, "").threads, 3U);
  EXPECT_EQ(ChooseThreads(chip, 2, "").threads, 2U);  // what the others would give does not count
}

TEST(ThreadChoiceTest, WithoutACurveAllThatAreAllowed) {
  const ThreadChoice choice = ChooseThreads(Measured({{"read_bandwidth_gb_s", 61}}), 6, "6 usable CPUs");
  EXPECT_EQ(choice.threads, 6U);
  EXPECT_NE(choice.why.find("6 usable CPUs"), std::string::npos);
  EXPECT_NE(choice.why.find("chip measure"), std::string::npos);
}

TEST(ThreadChoiceTest, NeverMoreThanThisProcessMayUse) {
  const ThreadChoice choice = ChooseThreads(chip::Chip{});
  EXPECT_GE(choice.threads, 1U);
  EXPECT_LE(choice.threads, chip::UsableCpus().size());
}

}  // namespace
}  // namespace boltbeam::engine
