#include "lab/predict.h"

#include <gtest/gtest.h>

#include <cmath>

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
  EXPECT_EQ(facts.kv_bytes(512), 75497472);
  EXPECT_EQ(facts.architecture, "qwen3");
  EXPECT_EQ(facts.quantization, "Q4_K");
  EXPECT_EQ(facts.layers, 36U);
  EXPECT_EQ(facts.header_sha256.size(), 64U);
}

TEST(ModelFacts, OfAShapeWithoutAFile) {
  const ModelFacts facts = ShapeFacts("qwen3-8b:Q4_K_M").value();
  EXPECT_EQ(facts.weight_bytes, 4670533632);
  EXPECT_EQ(facts.kv_bytes(512), 75497472);
  EXPECT_LT(ShapeFacts("qwen3-8b:Q4_K_M", 12)->weight_bytes, 2.1e9);
  EXPECT_EQ(ShapeFacts("nobody-8b:Q4_K_M").error().code, Code::kSynthName);
  EXPECT_TRUE(IsShapeName("qwen3-8b:Q4_K_M"));
  EXPECT_FALSE(IsShapeName("folder/model.gguf"));
}

TEST(ModelFacts, OfAnArchitectureThatNobodyKnows) {
  model::TestModel model("newfangled");
  const ModelFacts dense = ReadModelFacts(model.Write()).value();
  EXPECT_NE(dense.bytes_from.find("newfangled"), std::string::npos);
  EXPECT_EQ(dense.kv_bytes(0), 0);
  EXPECT_FALSE(dense.kv_bytes(512));
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
