#include "measure/paired.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "measure/signed_rank.h"

namespace boltbeam::measure {
namespace {

TEST(SignedRankTest, TailsOfThePublishedTables) {
  // Wilcoxon's table: at 2.5 % one way, T = 3 of 8 values and T = 8 of 10.
  EXPECT_EQ(SignedRankCritical(8, 0.025), 36 - 3);
  EXPECT_EQ(SignedRankCritical(10, 0.025), 55 - 8);
  EXPECT_DOUBLE_EQ(SignedRankTail(8, 33), 5.0 / 256);
  EXPECT_DOUBLE_EQ(SignedRankTail(3, 6), 1.0 / 8);
  EXPECT_EQ(SignedRankTail(3, 0), 1);
  EXPECT_EQ(SignedRankTail(3, 7), 0);
  EXPECT_EQ(SignedRankCritical(4, 0.01), 11) << "four values can't show it";
}

TEST(SignedRankTest, TheNormalLawTakesOverOnTheSafeSide) {
  for (const double z : {1.0, 2.0, 2.6}) {
    const auto tail = [z](double n) {
      const double w = n * (n + 1) / 4 + z * std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
      return SignedRankTail(static_cast<std::size_t>(n), w);
    };
    EXPECT_LE(tail(40), tail(41) * 1.01) << z;
    EXPECT_GE(tail(40), tail(41) * 0.8) << z;
  }
}

TEST(SignedRankTest, IntervalAgreesWithAllMeansOfPairs) {
  std::mt19937_64 random(3);
  for (const std::size_t n : {1U, 2U, 7U, 12U, 30U}) {
    std::vector<double> values(n), means;
    for (double& value : values) value = static_cast<double>(random() % 1000) / 100 - 4;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i; j < n; ++j) means.push_back((values[i] + values[j]) / 2);
    }
    std::ranges::sort(means);
    const Interval interval = HodgesLehmann(values, 0.025);
    EXPECT_NEAR(interval.estimate, Median(means), 1e-9);
    const auto critical = static_cast<std::size_t>(SignedRankCritical(n, 0.025));
    if (critical > means.size()) {
      EXPECT_TRUE(std::isinf(interval.low) && std::isinf(interval.high));
    } else {
      EXPECT_NEAR(interval.low, means[means.size() - critical], 1e-9);
      EXPECT_NEAR(interval.high, means[critical - 1], 1e-9);
    }
  }
  EXPECT_TRUE(std::isnan(HodgesLehmann({}, 0.025).estimate));
  const std::vector<double> same(20, 0.5);
  EXPECT_EQ(HodgesLehmann(same, 0.025).low, 0.5);
  EXPECT_EQ(HodgesLehmann(same, 0.025).high, 0.5);
  const std::vector<double> not_a_number = {1, std::nan("")};
  EXPECT_TRUE(std::isnan(HodgesLehmann(not_a_number, 0.025).low));
}

TEST(SignedRankTest, NormalLaw) {
  EXPECT_NEAR(NormalQuantile(0.975), 1.959964, 1e-6);
  EXPECT_NEAR(NormalBelow(-1.644854), 0.05, 1e-6);
  EXPECT_TRUE(std::isinf(NormalQuantile(0)) && std::isinf(NormalQuantile(1)));
}

TEST(SpentErrorTest, LittleEarlyAllAtTheEnd) {
  EXPECT_EQ(SpentError(0.025, 0), 0);
  EXPECT_EQ(SpentError(0.025, 1), 0.025);
  EXPECT_NEAR(SpentError(0.025, 0.5), 0.00153, 1e-5);  // Lan and DeMets, 1983
  double before = 0;
  for (double share = 0.05; share <= 1; share += 0.05) {
    EXPECT_GE(SpentError(0.025, share), before);
    before = SpentError(0.025, share);
  }
}

// Rounds of a tenth of a second with a true difference and a little noise.
class Rounds : public RoundSource {
 public:
  double ratio = 1;
  double noise = 0.02;
  double round_s = 0.1;
  std::function<void(PairedRound&)> change;

  Result<PairedRound> Next(bool b_first) override {
    PairedRound round;
    round.b_first = b_first;
    for (std::size_t i = 0; i < 4; ++i) {
      const double wobble = 1 + noise * (static_cast<double>(random_() % 2001) / 1000 - 1);
      round.windows[i].ns = 1e7 * (round.IsB(i) ? ratio : 1) * wobble;
    }
    round.limit = 20;
    spent_ += round_s;
    round.at_s = spent_;
    if (change) change(round);
    return round;
  }

 private:
  std::mt19937_64 random_{11};
  double spent_ = 0;
};

PairedResult Measure(Rounds source, const PairedRules& rules = {}) {
  const auto session = RunPaired(source, rules);
  EXPECT_TRUE(session) << session.error().Message();
  const auto again = ReplayPaired(session->rounds, rules);
  EXPECT_TRUE(again);
  EXPECT_EQ(again->outcome, session->result.outcome);
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  EXPECT_TRUE(same(again->ratio.low, session->result.ratio.low));
  EXPECT_TRUE(same(again->median.high, session->result.median.high));
  return session->result;
}

TEST(PairedTest, ThreeOutcomes) {
  Rounds source;
  source.ratio = 1.05;
  PairedResult result = Measure(source);
  EXPECT_EQ(result.outcome, Outcome::kSlower);
  EXPECT_LT(result.spent_s, 29) << "a plain difference ends early";
  EXPECT_NEAR(result.ratio.estimate, 1.05, 0.005);
  EXPECT_NEAR(result.median.estimate, 1.05, 0.005);
  source.ratio = 1 / 1.05;
  result = Measure(source);
  EXPECT_EQ(result.outcome, Outcome::kFaster);
  EXPECT_LT(result.ratio.high, 0.99);
  source.ratio = 1;
  result = Measure(source);
  EXPECT_EQ(result.outcome, Outcome::kNoDifference);
  EXPECT_TRUE(result.equivalent);
  EXPECT_GT(result.smallest, 0.01);
  EXPECT_LT(result.smallest, 0.03);
  EXPECT_EQ(result.limit, 20);
}

TEST(PairedTest, OrderOfARoundIsUndone) {
  for (const bool b_first : {false, true}) {
    PairedRound round;
    round.b_first = b_first;
    for (std::size_t i = 0; i < 4; ++i) round.windows[i].ns = round.IsB(i) ? 120 : 100;
    EXPECT_NEAR(round.LogRatio(), std::log(1.2), 1e-12);
  }
}

TEST(PairedTest, SpoiledRoundsAreKeptCountedAndLeftOut) {
  Rounds source;
  std::size_t count = 0;
  source.change = [&count](PairedRound& round) {
    if (++count % 10 != 0) return;
    round.windows[2].ns *= 3;
    round.windows[2].causes.set(static_cast<std::size_t>(Cause::kSteal));
  };
  const PairedResult result = Measure(source);
  EXPECT_TRUE(result.stable);
  EXPECT_EQ(result.used, result.rounds - result.rounds / 10);
  EXPECT_EQ(result.spoiled.at("steal"), result.rounds / 10);
}

TEST(PairedTest, SpoiledRoundsAreMadeUpForWhereRoundsAreFew) {
  Rounds source;
  source.round_s = 10;
  std::size_t count = 0;
  source.change = [&count](PairedRound& round) {
    if (++count % 2 == 0) round.windows[0].causes.set(0);
  };
  const PairedResult result = Measure(source);
  EXPECT_EQ(result.used, PairedRules{}.least_rounds);
  source.change = [](PairedRound& round) { round.windows[0].causes.set(0); };
  EXPECT_EQ(Measure(source).rounds, PairedRules{}.patience * PairedRules{}.least_rounds) << "but not for ever";
}

TEST(PairedTest, ALongWindowWithoutACauseStays) {
  Rounds source;
  source.change = [](PairedRound& round) { round.windows[0].ns *= 5; };
  const PairedResult result = Measure(source);
  EXPECT_EQ(result.used, result.rounds);
}

TEST(PairedTest, TooManySpoiledWindowsMakeItUnstable) {
  Rounds source;
  std::size_t count = 0, spoiled = 0;  // windows of every third round
  source.change = [&](PairedRound& round) {
    if (++count % 3 != 0) return;
    for (std::size_t i = 0; i < spoiled; ++i) round.windows[i].causes.set(static_cast<std::size_t>(Cause::kQuota));
  };
  spoiled = 2;
  const PairedResult few = Measure(source);
  EXPECT_NEAR(few.spoiled_share, 1.0 / 6, 0.01);
  EXPECT_TRUE(few.stable);
  spoiled = 3;
  EXPECT_FALSE(Measure(source).stable);
  source.change = [](PairedRound& round) { round.windows[0].causes.set(0); };
  const PairedResult none = Measure(source);
  EXPECT_FALSE(none.stable);
  EXPECT_EQ(none.outcome, Outcome::kNoDifference);
}

TEST(PairedTest, NoTimeIsRefused) {
  for (const double ns : {0.0, -5.0, std::nan("")}) {
    Rounds source;
    source.change = [ns](PairedRound& round) { round.windows[3].ns = ns; };
    const auto session = RunPaired(source, {});
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().code, Code::kMeasurementImpossible);
  }
}

TEST(PairedTest, ANoisyControlRaisesTheMargin) {
  Rounds source;
  source.noise = 0.6;
  const PairedResult result = Measure(source);
  EXPECT_GT(result.margin, 0.01);
  EXPECT_FALSE(result.equivalent);
  EXPECT_GT(result.smallest, 0.03);
}

TEST(PairedTest, SlowRoundsStillGetTheLeastNumber) {
  Rounds source;
  source.round_s = 12;  // of whole programs
  source.ratio = 0.7;
  const PairedResult result = Measure(source);
  EXPECT_GE(result.rounds, 8U);
  EXPECT_EQ(result.outcome, Outcome::kFaster);
}

TEST(PairedTest, StoredRoundsThatEndTooEarlyAreRefused) {
  Rounds source;
  const auto session = RunPaired(source, {});
  ASSERT_TRUE(session);
  std::vector<PairedRound> cut(session->rounds.begin(), session->rounds.begin() + 5);
  EXPECT_EQ(ReplayPaired(cut, {}).error().code, Code::kMeasurementUnstable);
}

}  // namespace
}  // namespace boltbeam::measure
