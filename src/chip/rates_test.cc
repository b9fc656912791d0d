#include "chip/rates.h"

#include <gtest/gtest.h>

#include "chip/test_facts.h"

namespace boltbeam::chip {
namespace {

constexpr const char* kRate = "vector_instructions_s";

Chip With(std::initializer_list<std::pair<const char*, double>> facts) {
  Chip chip;
  AddMeasured(chip, facts);
  return chip;
}

TEST(Rates, AsMeasuredOnThatNumberOfThreads) {
  const Chip chip =
      With({{kRate, 10}, {"vector_instructions_s.threads_1", 7}, {"vector_instructions_s.threads_4", 10}});
  EXPECT_DOUBLE_EQ(*RateOn(chip, kRate, 1), 7);
  EXPECT_DOUBLE_EQ(*RateOn(chip, kRate, 4), 10);
  EXPECT_DOUBLE_EQ(*RateOn(chip, kRate, 3), 9);   // on the line between them
  EXPECT_DOUBLE_EQ(*RateOn(chip, kRate, 8), 10);  // no more than was measured
  EXPECT_EQ(RatesByThreads(chip, kRate).size(), 2U);
}

// Two threads a core: the rate of all is that of four threads, whatever the number of cores.
TEST(Rates, AShareOfAllIsByTheThreadsThatWereMeasured) {
  const std::initializer_list<std::pair<const char*, double>> facts = {
      {kRate, 12}, {"cores", 2}, {"threads", 8}, {"usable_cpus", 4}};
  EXPECT_EQ(ThreadsMeasured(With(facts), kRate), 4U);
  EXPECT_DOUBLE_EQ(*RateOn(With(facts), kRate, 1), 3);
  EXPECT_DOUBLE_EQ(*RateOn(With(facts), kRate, 4), 12);
  EXPECT_DOUBLE_EQ(*RateOn(With({{kRate, 12}, {"cores", 2}}), kRate, 1), 6);
  // The memory's curve says on how many threads the machine was measured.
  EXPECT_EQ(ThreadsMeasured(With({{kRate, 12}, {"cores", 8}, {"read_bandwidth_gb_s.threads_2", 40}}), kRate), 2U);
  EXPECT_FALSE(RateOn(With({{"cores", 2}}), kRate, 1));
}

TEST(Rates, NarrowerVectorsHaveARateOfTheirOwn) {
  const Chip chip =
      With({{kRate, 12}, {"usable_cpus", 2}, {"vector_bits", 512}, {"vector_instructions_s.bits_256", 20}});
  EXPECT_DOUBLE_EQ(*RateOn(chip, kRate, 2, 512), 12);
  EXPECT_DOUBLE_EQ(*RateOn(chip, kRate, 2, 256), 20);
  EXPECT_DOUBLE_EQ(*RateOn(chip, kRate, 1, 256), 10);
  EXPECT_FALSE(RateOn(chip, kRate, 2, 128));
}

}  // namespace
}  // namespace boltbeam::chip
