#include "roofline/price.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "lab/prices.h"

namespace boltbeam::lab {
namespace {

using nlohmann::json;

json Golden() {
  std::ifstream stream(std::string(BOLTBEAM_TEST_DATA) + "/golden/seed-tie-outs.json");
  return json::parse(stream).at("price");
}

PriceList Prices() { return LoadPrices("", "").value(); }

Price PriceOf(double tok_s, const PriceList& list = Prices()) {
  PriceQuestion question;
  question.tok_s = tok_s;
  const auto price = ComputePrice(question, list);
  EXPECT_TRUE(price) << price.error().Message();
  return *price;
}

double Rounded(double value, int places) { return std::round(value * std::pow(10, places)) / std::pow(10, places); }

// The worked examples that stand in the list of prices itself.
TEST(Price, EveryExampleOfTheListHolds) {
  using Arguments = std::vector<double>;
  const std::map<std::string, std::function<double(const Arguments&)>> formulas = {
      {"UsdPerMillion", [](const Arguments& a) { return roofline::UsdPerMillion(a.at(0), a.at(1), a.at(2)); }},
      {"BreakEvenTokensPerDay", [](const Arguments& a) { return roofline::BreakEvenTokensPerDay(a.at(0), a.at(1)); }},
      {"UsdPerYear", [](const Arguments& a) { return roofline::UsdPerYear(a.at(0)); }},
      {"PowerUsdPerYear", [](const Arguments& a) { return roofline::PowerUsdPerYear(a.at(0), a.at(1)); }},
      {"MonthsToBuy", [](const Arguments& a) { return roofline::MonthsToBuy(a.at(0), a.at(1)); }},
      {"RentUsd", [](const Arguments& a) { return roofline::RentUsd(a.at(0), a.at(1)); }},
      {"OwnUsd", [](const Arguments& a) { return roofline::OwnUsd(a.at(0), a.at(1), a.at(2), a.at(3)); }}};
  const PriceList list = Prices();
  ASSERT_GE(list.examples.size(), 11U);
  for (const PriceExample& example : list.examples) {
    ASSERT_TRUE(formulas.contains(example.formula)) << example.formula;
    const double value = formulas.at(example.formula)(example.arguments);
    EXPECT_NEAR(Rounded(value, example.places), example.printed, 1e-9) << example.what << ": " << value;
  }
}

TEST(Price, TheArticlesFigures) {
  const json golden = Golden();
  // The rate that $0.76 at $3 an hour implies makes $7.58 at a tenth of the load.
  PriceList list = Prices();
  EXPECT_EQ(list.Get("rent_usd_per_hour"), golden.at("rent_usd_per_hour").get<double>());
  constexpr double kRate = 1100;
  EXPECT_EQ(Rounded(PriceOf(kRate).rented.usd_per_million, 2), golden.at("owned_full_usd_per_million").get<double>());
  list.Set("load", 0.1);
  EXPECT_EQ(Rounded(PriceOf(kRate, list).rented.usd_per_million, 2),
            golden.at("owned_at_10_pct_usd_per_million").get<double>());
  const Price price = PriceOf(kRate);
  EXPECT_NEAR(price.rented_against_hosted.tokens_per_day / 1e6, 48, 1e-9);  // "near 50 million"
  EXPECT_NEAR(price.rented_against_hosted.load, 0.505, 0.001);
  EXPECT_NEAR(price.owned_against_hosted.tokens_per_day / 1e6, 22.35, 0.005);  // 1.397 dollars an hour
  EXPECT_NEAR(price.months_to_buy, golden.at("months_to_own").get<double>(), 0.005);
  EXPECT_NEAR(*price.months_to_own, 16.34, 0.005);  // the power paid meanwhile included
  EXPECT_EQ(price.years[2].rent_usd, golden.at("three_years").at("rent_usd").get<double>());
  EXPECT_NEAR(price.years[2].own_usd, golden.at("three_years").at("own_usd").get<double>(), 1e-6);
  EXPECT_EQ(std::round(price.years[2].rent_usd / 1000), 79);
  EXPECT_EQ(std::round(price.years[2].own_usd / 1000), 37);
  EXPECT_NEAR(price.years[0].rent_usd, golden.at("rent_usd_per_year").get<double>(), 1e-9);
  EXPECT_EQ(list.Get("reseller_fee_pct"), golden.at("reseller_fee_pct").get<double>());
  EXPECT_NEAR(price.hosted_with_fee, 1.5 * 1.055, 1e-12);
}

TEST(Price, TheGapToTheFloorHasAPrice) {
  PriceQuestion question;
  question.tok_s = 247.8;
  question.floor_tok_s = 363.54;
  const Price price = ComputePrice(question, Prices()).value();
  EXPECT_EQ(Rounded(price.rented.usd_per_million, 3), 3.363);
  EXPECT_EQ(Rounded(*price.rented.usd_per_million_at_floor, 3), 2.292);
  EXPECT_NEAR(price.rented.microsecond_usd_per_year, 26280 * 247.8e-6, 1e-9);  // 6.51 dollars
}

TEST(Price, BatchServesAllOfThemUntilTheSumsBind) {
  PriceQuestion question;
  question.tok_s = 100;
  question.batch = 16;
  EXPECT_EQ(ComputePrice(question, Prices())->tok_s, 1600);
  question.crossover = 10;
  EXPECT_EQ(ComputePrice(question, Prices())->tok_s, 1000);
}

// Beyond M* a pass takes as long as its sums: bound says so of that batch, whatever the flags' M* would allow.
TEST(Price, ABatchKeepsItsShareOfBoundsOwnFloor) {
  PriceQuestion question;
  question.tok_s = 15;
  question.floor_tok_s = 20;
  question.batch = 16;
  question.crossover = 10.8;
  question.batch_floor_tok_s = 180;
  const Price price = ComputePrice(question, Prices()).value();
  EXPECT_EQ(*price.floor_tok_s, 180);
  EXPECT_NEAR(price.tok_s, 0.75 * 180, 1e-9);
  // A microsecond more in each pass, of which there are as many as each sequence has tokens.
  EXPECT_NEAR(price.rented.microsecond_usd_per_year, 26280 * 0.75 * 180 / 16 * 1e-6, 1e-9);
  question.batch = 2.5;
  EXPECT_EQ(ComputePrice(question, Prices()).error().where, "batch");
}

TEST(Price, PromptAndGenerationApart) {
  PriceQuestion question;
  question.tok_s = 250;
  question.prompt_tok_s = 10000;
  question.prompt_tokens = 2000;
  question.generated_tokens = 500;
  const Price price = ComputePrice(question, Prices()).value();
  EXPECT_NEAR(*price.rented.prompt_usd_per_million, 3 / 3.6e7 * 1e6, 1e-9);
  EXPECT_NEAR(*price.rented.request_usd, 3.0 / 3600 * (2000.0 / 10000 + 500.0 / 250), 1e-12);
}

TEST(Price, OwningMayNeverPay) {
  PriceList list = Prices();
  list.Set("rent_usd_per_hour", 0.05);
  EXPECT_FALSE(PriceOf(100, list).months_to_own);
}

TEST(Price, NonsenseIsRefusedByName) {
  const auto refused = [](auto change) {
    PriceQuestion question;
    question.tok_s = 100;
    PriceList list = Prices();
    change(question, list);
    const auto price = ComputePrice(question, list);
    EXPECT_FALSE(price);
    if (price) return std::string();
    EXPECT_EQ(price.error().code, Code::kPriceInput);
    return price.error().where;
  };
  for (const double rate : {0.0, -1.0, 1e-320, std::nan(""), std::numeric_limits<double>::infinity(), 1e12}) {
    EXPECT_EQ(refused([&](PriceQuestion& question, PriceList&) { question.tok_s = rate; }), "rate") << rate;
  }
  for (const double load : {0.0, -0.5, 1e-300, 1.01}) {
    EXPECT_EQ(refused([&](PriceQuestion&, PriceList& list) { list.Set("load", load); }), "load");
  }
  EXPECT_EQ(refused([](PriceQuestion&, PriceList& list) { list.Set("rent_usd_per_hour", -3); }), "rent_usd_per_hour");
  EXPECT_EQ(refused([](PriceQuestion&, PriceList& list) { list.Set("reseller_fee_pct", 101); }), "reseller_fee_pct");
  EXPECT_EQ(refused([](PriceQuestion&, PriceList& list) { list.Set("amortisation_years", 0); }), "amortisation_years");
  EXPECT_EQ(refused([](PriceQuestion& question, PriceList&) { question.floor_tok_s = 50; }), "rate");
  EXPECT_EQ(refused([](PriceQuestion& question, PriceList&) { question.batch = 0.5; }), "batch");
  EXPECT_EQ(refused([](PriceQuestion& question, PriceList&) { question.prompt_tokens = 5; }), "prompt tokens");
}

TEST(Price, AListOfOnesOwn) {
  const std::string folder = testing::TempDir() + "/boltbeam-prices-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/prices.json";
  const auto write = [&](const std::string& inputs) {
    std::ofstream(path) << R"({"schema": "boltbeam.prices.v1", "inputs": [)" << inputs << "]}";
    return LoadPrices("", path);
  };
  const auto list = write(R"({"name": "usd_per_kwh", "value": 0.4, "source": "my bill", "date": "2026-11"})");
  ASSERT_TRUE(list) << list.error().Message();
  EXPECT_EQ(list->Get("usd_per_kwh"), 0.4);
  EXPECT_EQ(list->Find("usd_per_kwh")->source, "my bill");
  EXPECT_EQ(list->Find("usd_per_kwh")->unit, "USD/kWh");
  EXPECT_EQ(list->Get("rent_usd_per_hour"), 3);
  EXPECT_EQ(LoadPrices(folder, "")->Get("usd_per_kwh"), 0.4);  // as prices.json of a config folder
  EXPECT_EQ(write(R"({"name": "gold", "value": 1, "source": "s", "date": "d"})").error().code, Code::kLabRow);
  EXPECT_FALSE(write(R"({"name": "card_usd", "value": "much", "source": "s", "date": "d"})"));
  EXPECT_FALSE(write(R"({"name": "card_usd", "value": 1})"));  // no source
  EXPECT_FALSE(ParsePrices("{}", "f"));
  EXPECT_FALSE(ParsePrices("nonsense", "f"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace boltbeam::lab
