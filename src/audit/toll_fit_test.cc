#include "audit/toll_fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace boltbeam::audit {
namespace {

// The RTX 5090's weight kernels of tests/data/golden/seed-tie-outs.json: bytes and microseconds of all launches.
std::vector<Launches> FastMemory() {
  return {{"gate and up", 72, 2038431744.0 / 72, 1291116.0 / 72},
          {"down", 36, 1252786176.0 / 36, 880972.0 / 36},
          {"query, key, value", 108, 529072128.0 / 108, 536321.0 / 108},
          {"attention output", 36, 339738624.0 / 36, 284993.0 / 36},
          {"vocabulary", 1, 510504960, 301602}};
}

TEST(TollFit, FastMemoryPaysPerLaunch) {
  const TollFit fit = FitToll(FastMemory(), 1700);
  EXPECT_EQ(fit.loss, Loss::kToll) << DescribeToll(fit);
  EXPECT_NEAR(fit.excess_ns, 547632, 1);
  EXPECT_GT(fit.toll_ns, 1300);
  EXPECT_LT(fit.toll_ns, 2600);
  EXPECT_NEAR(fit.launches[0].excess_ns, 1278, 1);
  EXPECT_NEAR(fit.launches[4].excess_ns, 1305, 1);
  EXPECT_NEAR(fit.launches[3].share_of_rate, 0.7012, 1e-4);
}

TEST(TollFit, SlowMemoryLosesAShareAndSmallTablesStayInTheCache) {
  const std::vector<Launches> rows = {{"gate and up", 72, 28311552, 363000},
                                      {"query and output", 72, 9437184, 117000},
                                      {"vocabulary", 1, 510504960, 6006000},
                                      {"key and value", 54, 2359296, 25000}};
  const TollFit fit = FitToll(rows, 89.9);
  EXPECT_EQ(fit.loss, Loss::kRate) << DescribeToll(fit);
  EXPECT_GT(fit.rate, 0.08);
  EXPECT_TRUE(fit.launches[3].cached);
  EXPECT_FALSE(fit.launches[2].cached);
}

TEST(TollFit, RecoversWhatWasPutIn) {
  std::vector<Launches> rows;
  for (const double bytes : {1e6, 4e6, 16e6, 256e6}) rows.push_back({"t", 10, bytes, bytes / 50 * 1.04 + 800});
  const TollFit fit = FitToll(rows, 50);
  EXPECT_NEAR(fit.toll_ns, 800, 1e-6);
  EXPECT_NEAR(fit.rate, 0.04, 1e-9);
  EXPECT_NEAR(fit.misfit, 0, 1e-9);
}

TEST(TollFit, SaysWhatItCanNotTell) {
  const std::vector<Launches> one = {{"a", 5, 1e6, 30000}, {"b", 5, 1.2e6, 40000}};
  EXPECT_EQ(FitToll(one, 50).loss, Loss::kUnknown);
  EXPECT_EQ(FitToll({}, 50).loss, Loss::kUnknown);
  const std::vector<Launches> exact = {{"a", 5, 1e6, 20000}, {"b", 5, 8e6, 160500}};
  EXPECT_EQ(FitToll(exact, 50).loss, Loss::kNone);
  EXPECT_EQ(FitToll(std::vector<Launches>{{"a", 0, 0, 0}}, 50).launches.size(), 0U);
}

TEST(TollFit, ATableLargerThanTheCacheIsNotCalledCached) {
  const std::vector<Launches> rows = {{"big", 1, 64e6, 1e6}, {"small", 1, 1e6, 1e4}};
  const TollFit fit = FitToll(rows, 50, 0.02, 32e6);
  EXPECT_FALSE(fit.launches[0].cached);
  EXPECT_TRUE(fit.launches[1].cached);
}

}  // namespace
}  // namespace boltbeam::audit
