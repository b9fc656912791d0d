#include "lab/predict.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "test_model.h"

namespace boltbeam::lab {
namespace {

/// A ladder of a millisecond and 100 GB/s with a scatter of some hundredths of a millisecond.
std::vector<Row> Ladder() {
  std::vector<Row> rows;
  const double scatter[] = {3e-5, -2e-5, 1e-5, -4e-5, 2e-5};
  for (int i = 0; i < 5; ++i) {
    Row row;
    row.model = "m" + std::to_string(i);
    row.alias = "here";
    row.device = "a chip";
    row.engine = "boltbeam";
    row.architecture = "qwen3";
    row.quantization = "Q4_K";
    row.weight_bytes_per_token = 1e9 * (i + 1);
    row.generation_tps = 1 / (1e-3 + 0.01 * (i + 1) + scatter[i]);
    rows.push_back(row);
  }
  return rows;
}

MachineFit Fit(const std::vector<Row>& rows = Ladder()) { return FitMachines(rows, {}).value().front(); }

TEST(ModelFacts, OfAFileOfAKnownArchitecture) {
  const ModelFacts facts = ReadModelFacts(model::Qwen3EightB().Write()).value();
  EXPECT_EQ(facts.weight_bytes, 4670533632);
  EXPECT_EQ(facts.kv_bytes(512, {}), 75497472);
  EXPECT_EQ(facts.architecture, "qwen3");
  EXPECT_EQ(facts.quantization, "Q4_K");
  EXPECT_EQ(facts.layers, 36U);
  EXPECT_EQ(facts.header_sha256.size(), 64U);
}

TEST(ModelFacts, OfAShapeWithoutAFile) {
  const ModelFacts facts = ShapeFacts("qwen3-8b:Q4_K_M").value();
  EXPECT_EQ(facts.weight_bytes, 4670533632);
  EXPECT_EQ(facts.kv_bytes(512, {}), 75497472);
  EXPECT_LT(ShapeFacts("qwen3-8b:Q4_K_M", 12)->weight_bytes, 2.1e9);
  EXPECT_EQ(ShapeFacts("nobody-8b:Q4_K_M").error().code, Code::kSynthName);
  EXPECT_TRUE(IsShapeName("qwen3-8b:Q4_K_M"));
  EXPECT_FALSE(IsShapeName("folder/model.gguf"));
}

TEST(ModelFacts, OfAnArchitectureThatNobodyKnows) {
  model::TestModel model("newfangled");
  const ModelFacts dense = ReadModelFacts(model.Write()).value();
  EXPECT_NE(dense.bytes_from.find("newfangled"), std::string::npos);
  EXPECT_EQ(dense.kv_bytes(0, {}), 0);
  EXPECT_FALSE(dense.kv_bytes(512, {}));
  // Eight experts of which two are used: a quarter of their bytes are read.
  model::TestModel mixture("newfangled");
  mixture.Set("expert_count", 8U);
  mixture.Set("expert_used_count", 2U);
  mixture.AddTable("blk.0.ffn_up_exps.weight", "Q8_0", {256, 512, 8});
  const ModelFacts sparse = ReadModelFacts(mixture.Write()).value();
  EXPECT_EQ(sparse.experts, 8U);
  EXPECT_NEAR(sparse.weight_bytes - dense.weight_bytes, 256 * 512 * 2 * 34.0 / 32, 1);
  mixture.Set("expert_used_count", 9U);
  EXPECT_EQ(ReadModelFacts(mixture.Write()).error().code, Code::kModelExpertCount);
}

TEST(ModelFacts, AFileThatIsNotWhole) {
  const std::string path = model::TestModel("qwen3").Write();
  const auto missing = ReadModelFacts(path);  // the model above is gone
  EXPECT_EQ(missing.error().code, Code::kFileNotFound);
}

/// A model in three files, written into a folder: its tables shared out over the parts.
class SplitModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/boltbeam-shards-" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    model::TestModel model("qwen3");
    const std::size_t count = model.tensors.size();
    const auto all = model.tensors;
    model.keys["split.count"] = 3U;
    model.keys["split.tensors.count"] = static_cast<std::uint32_t>(count);
    for (std::size_t part = 0; part < 3; ++part) {
      model.keys["split.no"] = static_cast<std::uint32_t>(part);
      model.tensors.assign(all.begin() + static_cast<std::ptrdiff_t>(count * part / 3),
                           all.begin() + static_cast<std::ptrdiff_t>(count * (part + 1) / 3));
      std::filesystem::rename(model.Write(), Part(part + 1));
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Part(std::size_t number) const { return folder_ + "/m-0000" + std::to_string(number) + "-of-00003.gguf"; }

  std::string folder_;
};

TEST_F(SplitModel, WholeItIsReadAndOfItsFirstPartAloneIsSaidWhatIsThere) {
  const ModelFacts whole = ReadModelFacts(Part(1)).value();
  EXPECT_GT(whole.weight_bytes, 0);
  std::filesystem::remove(Part(2));
  std::filesystem::remove(Part(3));
  const auto refused = ReadModelFacts(Part(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kGgufSplitMissing);
  const std::string message = refused.error().Message();
  for (const std::string& part : {std::string("1 of 3 parts"), std::string("m-00002-of-00003.gguf"),
                                  std::string("m-00003-of-00003.gguf"), std::string("--bytes N")}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
  // With the bytes of somebody it can be foretold.
  const ModelFacts stated = ReadModelFacts(Part(1), whole.weight_bytes).value();
  EXPECT_EQ(stated.name, "m-00001-of-00003.gguf");
  EXPECT_EQ(stated.weight_bytes, whole.weight_bytes);
  EXPECT_TRUE(stated.path.empty());  // nothing that could be run
  EXPECT_EQ(ReadModelFacts(folder_ + "/none.gguf", 1e9).error().code, Code::kFileNotFound);
}

TEST_F(SplitModel, AFirstPartThatIsMissingIsNamed) {
  std::filesystem::remove(Part(1));
  const auto refused = ReadModelFacts(Part(2));
  EXPECT_EQ(refused.error().code, Code::kGgufSplitMissing);
  EXPECT_NE(refused.error().found.find("missing: m-00001-of-00003.gguf"), std::string::npos);
}

TEST(Predict, ARateWithAnInterval) {
  const MachineFit fit = Fit();
  ForecastOptions options;
  options.depths = {0, 512};
  const auto forecasts = Predict(fit, ReadModelFacts(model::Qwen3EightB().Write()).value(), options);
  ASSERT_TRUE(forecasts) << forecasts.error().Message();
  ASSERT_EQ(forecasts->size(), 2U);
  const Forecast& empty = (*forecasts)[0];
  EXPECT_NEAR(empty.seconds.estimate, 1e-3 + 4.670533632 / 100, 1e-4);
  EXPECT_LT(empty.tok_s_low(), empty.tok_s());
  EXPECT_GT(empty.tok_s_high(), empty.tok_s());
  EXPECT_TRUE(empty.extrapolations.empty());
  EXPECT_EQ((*forecasts)[1].bytes - empty.bytes, 75497472);
  ASSERT_EQ((*forecasts)[1].extrapolations.size(), 1U);
  EXPECT_NE((*forecasts)[1].extrapolations[0].find("depth 0"), std::string::npos);
  // The cache's bytes, whose cost nobody has measured, widen it by all that they are taken to cost.
  EXPECT_EQ(empty.depth_half_s, 0);
  EXPECT_NEAR((*forecasts)[1].depth_half_s, 75497472 / fit.line.bandwidth_bytes_s(), 1e-9);
  const auto half = [](const measure::Interval& interval) { return interval.high - interval.estimate; };
  EXPECT_GT(half((*forecasts)[1].in_session), 1.5 * half(empty.in_session));
  EXPECT_GT(half(empty.seconds), 2 * half(empty.in_session));  // another session is further off
}

TEST(Predict, TheCacheIsCountedInItsForm) {
  const MachineFit fit = Fit();
  const ModelFacts model = ReadModelFacts(model::Qwen3EightB().Write()).value();
  ForecastOptions options;
  options.depths = {512};
  options.cache = {formats::FindFormat("Q8_0"), formats::FindFormat("Q8_0")};
  EXPECT_EQ(Predict(fit, model, options)->front().kv_bytes, 40108032);  // docs/formulas.md
  options.cache.values = formats::FindFormat("F16");
  EXPECT_EQ(Predict(fit, model, options)->front().kv_bytes, (40108032 + 75497472) / 2);
}

TEST(Predict, RowsAtSeveralDepthsSayWhatTheCacheCosts) {
  std::vector<Row> rows = Ladder();
  // At 2,048 tokens: half a gigabyte more, each byte of which costs twice one of weights, give or take a tenth.
  const double scatter[] = {0.1, -0.1, 0.05, -0.05, 0};
  for (std::size_t i = 0; i < 5; ++i) {
    Row deep = rows[i];
    deep.depth = 2048;
    deep.kv_bytes_per_token = 0.5e9;
    deep.generation_tps = 1 / (rows[i].Seconds() + 0.5 / 100 * (2 + scatter[i]));
    rows.push_back(deep);
  }
  const auto fits = FitMachines(rows, {}).value();
  ASSERT_EQ(fits.size(), 2U);
  const MachineFit& fit = fits[0];
  ASSERT_EQ(fit.depths.size(), 5U);
  const CacheCost cost = CostOfCache(fit);
  EXPECT_EQ(cost.pairs, 5U);
  EXPECT_NEAR(cost.factor, 2, 0.01);
  ModelFacts model = StatedFacts(3e9);
  model.kv_bytes = [](std::uint64_t depth, const model::CacheFormats&) { return static_cast<double>(depth) * 1e5; };
  ForecastOptions options;
  options.depths = {1000, 4096};
  const auto forecasts = Predict(fit, model, options).value();
  EXPECT_NEAR(forecasts[0].seconds.estimate - fit.line.SecondsAt(3e9), 2e-3, 2e-5);
  // A tenth of what it costs, not all of it, and within the ladder; deeper than its rows is beyond.
  EXPECT_LT(forecasts[0].depth_half_s, 0.2 * 2e-3);
  EXPECT_GT(forecasts[0].depth_half_s, 0.05 * 2e-3);
  EXPECT_TRUE(forecasts[0].extrapolations.empty());
  ASSERT_EQ(forecasts[1].extrapolations.size(), 1U);
  EXPECT_NE(forecasts[1].extrapolations[0].find("deepest rows are at 2048"), std::string::npos);
  // Two rows are too few to learn from; they are no line either, and nothing is said of that.
  rows.resize(7);
  const auto few = FitMachines(rows, {}).value();
  EXPECT_EQ(CostOfCache(few[0]).pairs, 0U);
}

TEST(Predict, BothMissesAreTold) {
  std::vector<Row> rows = Ladder();
  for (Row& row : rows) row.streamed_gb_s = {110};
  const MachineFit fit = Fit(rows);
  const ModelFacts model = StatedFacts(3e9);
  ForecastOptions options;
  options.depths = {0};
  const Forecast forecast = Predict(fit, model, options)->front();
  // An hour later the memory streams half as much, and the token follows it.
  Visit visit;
  visit.streamed_gb_s = {55};
  visit.token_s = {forecast.seconds.estimate + 3.0 / 55 - 3.0 / 110};
  const Miss miss = Compare(fit, model, forecast, visit);
  EXPECT_NEAR(miss.miss_s, 0, 1e-9);
  EXPECT_TRUE(miss.is_inside);
  EXPECT_NEAR(miss.raw_miss_s, 3.0 / 110, 1e-9);
  EXPECT_NEAR(miss.raw_miss_share, 3.0 / 110 / forecast.seconds.estimate, 1e-9);
  EXPECT_EQ(miss.beside_gb_s, 55);
  EXPECT_EQ(miss.at_gb_s, *fit.reference_gb_s);
  // 4 % off at one speed: outside what the ladder's own session said, inside what another may be.
  visit.token_s[0] += 0.04 * forecast.seconds.estimate;
  const Miss other = Compare(fit, model, forecast, visit);
  EXPECT_FALSE(other.is_inside_session);
  EXPECT_TRUE(other.is_inside);
  // Of a forecast for another memory speed.
  options.at_gb_s = 55;
  const Forecast slow = Predict(fit, model, options)->front();
  visit.token_s = {slow.seconds.estimate};
  EXPECT_NEAR(Compare(fit, model, slow, visit, options.at_gb_s).miss_s, 0, 1e-9);
}

TEST(Predict, BeyondTheLadderIsLabelled) {
  const MachineFit fit = Fit();
  const auto beyond = [&](ModelFacts model) { return Predict(fit, model, {})->front().extrapolations; };
  ModelFacts model = StatedFacts(1e10);
  EXPECT_NE(beyond(model).at(0).find("2.00 times the bytes of the largest"), std::string::npos);
  EXPECT_NE(beyond(StatedFacts(2e8)).at(0).find("0.20 times the bytes of the smallest"), std::string::npos);
  EXPECT_TRUE(beyond(StatedFacts(3e9)).empty());
  model = StatedFacts(3e9);
  model.architecture = "another";
  model.quantization = "Q8_0";
  EXPECT_EQ(beyond(model).size(), 2U);
}

TEST(Predict, AtAnotherMemorySpeed) {
  std::vector<Row> rows = Ladder();
  ForecastOptions options;
  options.at_gb_s = 55;
  EXPECT_EQ(Predict(Fit(rows), StatedFacts(3e9), options).error().code, Code::kUsage);
  for (Row& row : rows) row.streamed_gb_s = {110};
  const auto forecasts = Predict(Fit(rows), StatedFacts(3e9), options);
  ASSERT_TRUE(forecasts) << forecasts.error().Message();
  EXPECT_NEAR(forecasts->front().seconds.estimate, 1e-3 + 0.03 + 3.0 / 55 - 3.0 / 110, 2e-4);
}

TEST(Predict, AMixtureIsRefused) {
  ModelFacts model = StatedFacts(3e9);
  model.experts = 64;
  EXPECT_EQ(Predict(Fit(), model, {}).error().code, Code::kLabLine);
}

TEST(Predict, TheMissIsToldInMillisecondsAndInParts) {
  const MachineFit fit = Fit();
  const ModelFacts model = StatedFacts(3e9);
  const Forecast forecast = Predict(fit, model, {})->front();
  Visit visit;
  visit.token_s = {forecast.seconds.estimate + 2e-5, forecast.seconds.estimate + 2e-5};
  const Miss small = Compare(fit, model, forecast, visit);
  EXPECT_NEAR(small.miss_s, 2e-5, 1e-12);
  EXPECT_TRUE(small.is_inside);
  EXPECT_FALSE(small.is_large);
  visit.token_s = {forecast.seconds.estimate + 4e-3};
  ModelFacts other = model;
  other.architecture = "hybrid";
  const Miss large = Compare(fit, other, forecast, visit);
  EXPECT_TRUE(large.is_large);
  EXPECT_FALSE(large.is_inside);
  ASSERT_EQ(large.notes.size(), 2U);
  EXPECT_NE(large.notes[0].find("+4.00 ms"), std::string::npos);
  EXPECT_NE(large.notes[1].find("hybrid"), std::string::npos);
}

// 30 November 2026, one machine whose memory is shared: four sessions a quarter of an hour apart, three passes over
// five models each. A model that was left out, in a session that was left out, is met by what the others foretell.
TEST(Predict, ARecordedSessionIsForetoldByTheOthers) {
  const auto rows = ReadRows(std::string(BOLTBEAM_TEST_DATA) + "/lab/zen4-sessions.jsonl").value();
  const MachineFit whole = Fit(rows);
  ASSERT_EQ(whole.sessions.factors.size(), 4U);
  ASSERT_EQ(whole.points.size(), 5U);
  std::vector<const Row*> pointers;
  for (const Row& row : rows) pointers.push_back(&row);
  const std::vector<std::size_t> session = SplitSessions(pointers);
  int inside = 0, inside_own = 0, count = 0;
  for (std::size_t left_out = 0; left_out < 4; ++left_out) {
    for (const ModelPoint& point : whole.points) {
      std::vector<Row> others;
      Visit visit;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool is_model = rows[i].ShortModel() == point.model;
        if (!is_model && session[i] != left_out) others.push_back(rows[i]);
        if (!is_model || session[i] != left_out) continue;
        visit.token_s.insert(visit.token_s.end(), rows[i].token_s.begin(), rows[i].token_s.end());
        visit.streamed_gb_s.insert(visit.streamed_gb_s.end(), rows[i].streamed_gb_s.begin(),
                                   rows[i].streamed_gb_s.end());
      }
      const MachineFit fit = Fit(others);
      const Forecast forecast = Predict(fit, StatedFacts(point.bytes), {})->front();
      const Miss miss = Compare(fit, StatedFacts(point.bytes), forecast, visit);
      inside += miss.is_inside ? 1 : 0;
      inside_own += miss.is_inside_session ? 1 : 0;
      ++count;
    }
  }
  EXPECT_EQ(count, 20);
  EXPECT_GE(inside, 19);
  RecordProperty("inside_own", inside_own);
}

TEST(Predict, WhatTheLedgerKeeps) {
  const MachineFit fit = Fit();
  const ModelFacts model = StatedFacts(3e9);
  const Forecast forecast = Predict(fit, model, {})->front();
  const ledger::Prediction prediction = ToRecord(fit, model, forecast, 0.95);
  EXPECT_TRUE(ledger::Check(prediction));
  EXPECT_EQ(prediction.quantity, "token_ns");
  EXPECT_NEAR(prediction.value, forecast.seconds.estimate * 1e9, 1);
  Visit visit;
  visit.token_s = {0.0310, 0.0312, 0.0311};
  const Miss miss = Compare(fit, model, forecast, visit);
  const ledger::Measurement measurement = ToRecord(fit, model, forecast, miss, visit, std::string(64, 'a'));
  EXPECT_TRUE(ledger::Check(measurement));
  EXPECT_EQ(measurement.repetitions, 3U);
  EXPECT_NEAR(measurement.value, 0.0311e9, 1);
}

}  // namespace
}  // namespace boltbeam::lab
