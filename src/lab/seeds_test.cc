// The figures of the documents that the lab follows, each computed here and held against the file of recorded ones:
// tests/data/golden/seed-tie-outs.json. The lines and the gaps are in fit_test, the rest of the prices in price_test.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "chip/facts.h"
#include "lab/fit.h"
#include "lab/prices.h"
#include "roofline/bound.h"
#include "roofline/formulas.h"
#include "test_model.h"

namespace boltbeam::lab {
namespace {

using nlohmann::json;

const json& Golden() {
  static const json kGolden =
      json::parse(std::ifstream(std::string(BOLTBEAM_TEST_DATA) + "/golden/seed-tie-outs.json"));
  return kGolden;
}

double At(const json& object, const char* key) { return object.at(key).get<double>(); }

double Rounded(double value, int places) { return std::round(value * std::pow(10, places)) / std::pow(10, places); }

roofline::Bound BoundOn(const char* chip_name, double bandwidth_gb_s, std::uint64_t batch = 1) {
  static const model::Model kModel = model::Model::Load(model::Qwen3EightB().Write()).value();
  const chip::Chip chip = chip::FindChip(chip_name, "").value();
  roofline::BoundOptions options;
  options.depths = {0, 512};
  options.batch = batch;
  return roofline::ComputeBound(kModel, roofline::RoofOf(chip, bandwidth_gb_s).value(), options).value();
}

TEST(Seeds, TheFloorOfATokenAndItsLimit) {
  const json& rtx = Golden().at("rtx_5090_llama_512");
  double bytes = 0, floor_us = 0;
  for (const json& part : rtx.at("parts")) {
    const double floor_ns = roofline::MemoryFloorNs(At(part, "weight_bytes"), At(rtx, "bandwidth_gb_s"));
    EXPECT_NEAR(floor_ns / 1e3, At(part, "floor_us"), 5e-4) << part.at("name");
    bytes += At(part, "weight_bytes");
    floor_us += floor_ns / 1e3;
  }
  EXPECT_EQ(bytes, 4670533632);
  EXPECT_NEAR(floor_us, At(rtx.at("account"), "floor_us"), 0.05);
  const roofline::Bound bound = BoundOn("rtx-5090", At(rtx, "bandwidth_gb_s"));
  EXPECT_EQ(bound.pass.weight_bytes, bytes);
  EXPECT_EQ(Rounded(bound.pass.floor_ns / 1e6, 2), At(rtx.at("recorded"), "floor_ms"));
  EXPECT_EQ(std::round(bound.pass.limit_tok_s()), 364);
}

TEST(Seeds, LimitsAt512Tokens) {
  const json& limits = Golden().at("depth_limits");
  const roofline::Bound rtx = BoundOn("rtx-5090", At(Golden().at("rtx_5090_llama_512"), "bandwidth_gb_s"));
  const roofline::Bound m3 = BoundOn("apple-m3-10c", At(Golden().at("m3_llama_512"), "bandwidth_gb_s"));
  EXPECT_EQ(rtx.depths[1].kv_bytes, At(limits, "kv_bytes_at_512"));
  EXPECT_EQ(Rounded(rtx.depths[1].limit_tok_s(), 2), At(limits, "rtx_5090_tok_s"));
  EXPECT_EQ(Rounded(m3.depths[1].limit_tok_s(), 3), At(limits, "m3_tok_s"));
  EXPECT_EQ(Rounded(m3.depths[1].limit_tok_s(), 1), At(limits, "recorded_m3_tok_s"));
}

TEST(Seeds, BytesInFlight) {
  const json& little = Golden().at("little").at("bytes_in_flight_per_us_of_wait");
  constexpr double kMicrosecondNs = 1000;
  const double rtx = At(Golden().at("rtx_5090_llama_512"), "bandwidth_gb_s");
  EXPECT_EQ(roofline::BytesInFlight(rtx, kMicrosecondNs), At(little, "rtx_5090"));
  EXPECT_EQ(roofline::BytesInFlight(At(Golden().at("m3_llama_512"), "bandwidth_gb_s"), kMicrosecondNs),
            At(little, "m3"));
}

TEST(Seeds, WhereABatchTurnsComputeBound) {
  const double peak = At(Golden().at("prefill"), "tensor_flop_s");
  const double bandwidth = At(Golden().at("rtx_5090_llama_512"), "bandwidth_gb_s");
  const roofline::Bound one = BoundOn("rtx-5090", bandwidth);
  EXPECT_EQ(one.roof.peak_flop_s, peak);
  EXPECT_EQ(Rounded(roofline::CrossoverBatch(4.5, roofline::Ridge(peak, bandwidth)), 2), 42.25);
  EXPECT_EQ(Rounded(*one.crossover_batch, 2), 46.36);
  // bound turns from memory to sums there.
  EXPECT_EQ(BoundOn("rtx-5090", bandwidth, 40).pass.limit, roofline::Limit::kMemory);
  EXPECT_EQ(BoundOn("rtx-5090", bandwidth, 60).pass.limit, roofline::Limit::kCompute);
}

TEST(Seeds, ThePriceOfTheGap) {
  const json& price = Golden().at("price");
  PriceList list = LoadPrices("", "").value();
  list.Set("rent_usd_per_hour", At(price, "rent_usd_per_hour"));
  PriceQuestion question;
  question.tok_s = 247.8;
  question.floor_tok_s = BoundOn("rtx-5090", 1700).pass.limit_tok_s();
  const Price gap = ComputePrice(question, list).value();
  EXPECT_EQ(Rounded(gap.rented.usd_per_million, 3), 3.363);
  EXPECT_EQ(Rounded(*gap.rented.usd_per_million_at_floor, 3), 2.292);
  EXPECT_EQ(std::round(gap.months_to_buy), std::round(At(price, "months_to_own")));
  EXPECT_EQ(std::round(At(price, "months_to_own")), 16);
  const json& hosted = price.at("hosted_usd_per_million");
  // "Near 50 million tokens a day" lies between what both of its prices give.
  list.Set("hosted_usd_per_million", hosted[0].get<double>());
  EXPECT_GT(ComputePrice(question, list)->rented_against_hosted.tokens_per_day, 50e6);
  list.Set("hosted_usd_per_million", hosted[1].get<double>());
  EXPECT_LT(ComputePrice(question, list)->rented_against_hosted.tokens_per_day, 50e6);
}

}  // namespace
}  // namespace boltbeam::lab
