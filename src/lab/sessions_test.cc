#include "lab/sessions.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "lab/fit.h"

namespace boltbeam::lab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Variance, OfOnePartIsStudentsInterval) {
  // Tables of Student's law: 4.303 at two degrees of freedom, 2.228 at ten; 1.960 of the normal law.
  EXPECT_NEAR(HalfWidth(std::array{Variance{4, 2}}, 0.95), 2 * 4.303, 2e-3);
  EXPECT_NEAR(HalfWidth(std::array{Variance{1, 10}}, 0.95), 2.228, 1e-3);
  EXPECT_NEAR(HalfWidth(std::array{Variance{1, kInfinity}}, 0.95), 1.960, 1e-3);
  EXPECT_EQ(HalfWidth(std::array{Variance{0, 3}}, 0.95), 0);
  EXPECT_EQ(HalfWidth({}, 0.95), 0);
}

TEST(Variance, SeveralPartsLieBetweenTheirLaws) {
  const double both = HalfWidth(std::array{Variance{1, 2}, Variance{1, kInfinity}}, 0.95);
  EXPECT_GT(both, 1.960 * std::sqrt(2));
  EXPECT_LT(both, 4.303 * std::sqrt(2));
  // A part that is nothing changes nothing.
  EXPECT_NEAR(HalfWidth(std::array{Variance{1, 5}, Variance{0, 1}}, 0.9), HalfWidth(std::array{Variance{1, 5}}, 0.9),
              1e-12);
}

TEST(Sessions, DatesAreSeconds) {
  EXPECT_EQ(UtcSeconds("1970-01-02T00:00:10Z"), 86410);
  EXPECT_EQ(*UtcSeconds("2026-11-30T12:00:00Z") - *UtcSeconds("2026-11-30T11:00:00Z"), 3600);
  EXPECT_FALSE(UtcSeconds(""));
  EXPECT_FALSE(UtcSeconds("2026-13-01T00:00:00Z"));
  EXPECT_FALSE(UtcSeconds("yesterday"));
}

TEST(Sessions, APauseEndsOne) {
  std::vector<Row> rows(5);
  rows[0].date = "2026-11-30T13:00:00Z";  // files may be read in any order
  rows[1].date = "2026-11-30T11:00:00Z";
  rows[2].date = "2026-11-30T11:09:00Z";
  rows[3].date = "2026-11-30T11:18:00Z";  // a pause is from row to row
  std::vector<const Row*> pointers;
  for (const Row& row : rows) pointers.push_back(&row);
  EXPECT_EQ(SplitSessions(pointers), (std::vector<std::size_t>{1, 0, 0, 0, 0}));
}

TEST(Sessions, FactorsComeBackThoughNotAllCellsAreThere) {
  const double models[] = {0.01, 0.03, 0.05, 0.09}, sessions[] = {1.0, 1.1, 0.95};
  std::vector<Cell> cells;
  for (std::size_t model = 0; model < 4; ++model) {
    for (std::size_t session = 0; session < 3; ++session) {
      if (model == session) continue;
      cells.push_back({model, session, models[model] * sessions[session]});
    }
  }
  std::vector<double> seconds;
  const Sessions found = CompareSessions(cells, 4, 3, 0.05, seconds);
  EXPECT_TRUE(found.is_connected);
  EXPECT_FALSE(found.is_assumed);
  EXPECT_NEAR(found.factors[1] / found.factors[0], 1.1, 1e-9);
  EXPECT_NEAR(found.factors[2] / found.factors[0], 0.95, 1e-9);
  EXPECT_NEAR(seconds[3] / seconds[0], 9, 1e-9);
  EXPECT_NEAR(found.of_model.value, 0, 1e-18);
  const double deviation = measure::StandardDeviation(std::array{0.0, std::log(1.1), std::log(0.95)});
  EXPECT_NEAR(found.between, std::sqrt(2) * deviation, 1e-9);
  EXPECT_NEAR(found.spread.value, deviation * deviation * 4 / 3, 1e-9);
  EXPECT_EQ(found.spread.freedom, 2);
}

TEST(Sessions, OfOneOrTwoTheDifferenceIsAssumed) {
  std::vector<double> seconds;
  const std::vector<Cell> one = {{0, 0, 0.01}, {1, 0, 0.02}};
  const Sessions single = CompareSessions(one, 2, 1, 0.05, seconds);
  EXPECT_TRUE(single.is_assumed);
  EXPECT_NEAR(single.spread.value, 0.05 * 0.05, 1e-12);
  EXPECT_TRUE(std::isinf(single.spread.freedom));
  EXPECT_NEAR(seconds[1], 0.02, 1e-15);
  const std::vector<Cell> two = {{0, 0, 0.01}, {1, 0, 0.02}, {0, 1, 0.011}, {1, 1, 0.022}};
  EXPECT_NEAR(CompareSessions(two, 2, 2, 0.05, seconds).between, std::log(1.1), 1e-9);  // more than assumed
  EXPECT_NEAR(CompareSessions(two, 2, 2, 0.2, seconds).between, 0.2, 1e-12);
}

TEST(Sessions, WithoutAModelInCommonTheyCanNotBeToldApart) {
  std::vector<double> seconds;
  const std::vector<Cell> apart = {{0, 0, 0.01}, {1, 0, 0.02}, {2, 1, 0.03}, {3, 1, 0.04}};
  const Sessions found = CompareSessions(apart, 4, 2, 0.05, seconds);
  EXPECT_FALSE(found.is_connected);
  EXPECT_EQ(found.factors.size(), 1U);
  EXPECT_TRUE(found.is_assumed);
}

Row RowAt(std::size_t model, double seconds, const std::string& date) {
  Row row{.model = "m" + std::to_string(model), .alias = "here", .device = "a chip"};
  row.weight_bytes_per_token = 1e9 * static_cast<double>(model + 1);
  row.generation_tps = 1 / seconds;
  row.date = date;
  return row;
}

TEST(Sessions, AFitTellsThemAndWhatAnotherMayGive) {
  std::vector<Row> rows;
  const double factors[] = {1, 1.04, 0.97, 1.01};
  for (std::size_t session = 0; session < 4; ++session) {
    const std::string date = "2026-11-30T1" + std::to_string(session) + ":00:00Z";
    for (std::size_t model = 0; model < 5; ++model) {
      rows.push_back(RowAt(model, factors[session] * (1e-3 + 0.01 * static_cast<double>(model + 1)), date));
    }
  }
  const MachineFit fit = FitMachines(rows, {})->front();
  ASSERT_EQ(fit.sessions.factors.size(), 4U);
  EXPECT_EQ(fit.sessions.begins[3], "2026-11-30T13:00:00Z");
  EXPECT_FALSE(fit.sessions.is_assumed);
  ASSERT_TRUE(fit.next_session_gb_s);
  // The sessions' own bandwidths lie inside, the interval of their mean holds none but the nearest.
  for (const double factor : factors) {
    EXPECT_GT(100 / factor, fit.next_session_gb_s->low);
    EXPECT_LT(100 / factor, fit.next_session_gb_s->high);
  }
  EXPECT_GT(fit.next_session_gb_s->high - fit.next_session_gb_s->low,
            5 * (fit.bandwidth_gb_s.high - fit.bandwidth_gb_s.low));
}

TEST(Sessions, RowsThatStandTwiceCountOnce) {
  std::vector<Row> rows;
  for (std::size_t model = 0; model < 4; ++model) {
    rows.push_back(RowAt(model, 1e-3 + 0.01 * static_cast<double>(model + 1), "2026-11-30T10:00:00Z"));
  }
  rows.push_back(rows[2]);
  const MachineFit fit = FitMachines(rows, {})->front();
  EXPECT_EQ(fit.points[2].visits, 1U);
  ASSERT_FALSE(fit.warnings.empty());
  EXPECT_NE(fit.warnings[0].find("1 row left out that stand"), std::string::npos) << fit.warnings[0];
}

TEST(Sessions, AModelsNewestPlanCounts) {
  std::vector<Row> rows;
  for (std::size_t model = 0; model < 4; ++model) {
    for (const char* plan : {"default", "fast:12"}) {
      const double slow = std::string(plan) == "default" ? 2e-3 : 1e-3;
      rows.push_back(RowAt(model, slow + 0.01 * static_cast<double>(model + 1), "2026-11-30T10:00:00Z"));
      rows.back().plan = plan;
    }
  }
  const MachineFit fit = FitMachines(rows, {})->front();
  EXPECT_NEAR(fit.fixed_s.estimate, 1e-3, 1e-9);
  EXPECT_NE(fit.warnings.at(0).find("4 rows left out of models whose newer rows ran under another plan"),
            std::string::npos);
}

TEST(Sessions, AnotherInstructionSetOrCacheIsAnotherLine) {
  std::vector<Row> rows;
  for (const char* isa : {"", "native", "avx2"}) {
    for (std::size_t model = 0; model < 4; ++model) {
      rows.push_back(RowAt(model, 1e-3 + 0.01 * static_cast<double>(model + 1), "2026-11-30T10:00:00Z"));
      rows.back().isa = isa;
      rows.back().pass = *isa == 0 ? 1 : 2;
    }
  }
  const auto fits = FitMachines(rows, {}).value();  // a row that says nothing is of all that the machine has
  ASSERT_EQ(fits.size(), 2U);
  EXPECT_EQ(fits[0].points[0].visits, 2U);
  EXPECT_EQ(fits[1].isa, "avx2");
  for (Row& row : rows) row.cache_k = row.isa == "avx2" ? "q8_0" : "";
  EXPECT_EQ(FitMachines(rows, {})->at(1).cache, "q8_0/f16");
}

}  // namespace
}  // namespace boltbeam::lab
