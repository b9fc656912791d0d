#include "report/lab_format.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/png.h"
#include "report/price_format.h"
#include "report/table.h"

namespace boltbeam::report {
namespace {

using nlohmann::json;

std::vector<lab::Row> Rows() {
  std::vector<lab::Row> rows;
  const double scatter[] = {1e-5, -2e-5, 2e-5, -1e-5, 3e-5};
  for (int i = 0; i < 5; ++i) {
    lab::Row row;
    row.model = "folder/model-of-a-rather-long-name-" + std::to_string(i) + ".gguf";
    row.alias = "office";
    row.device = "A chip <b>";
    row.weight_bytes_per_token = 1e9 * (i + 1);
    row.generation_tps = 1 / (1.67e-3 + (i + 1) / 497.0 + scatter[i]);
    row.spec_gb_s = 819;
    rows.push_back(row);
  }
  lab::Row mixture = rows.back();
  mixture.model = "mixture.gguf";
  mixture.experts = 64;
  rows.push_back(mixture);
  return rows;
}

std::vector<lab::MachineFit> Fits() {
  std::vector<lab::Row> rows = Rows();
  for (lab::Row row : Rows()) {
    row.alias = "attic";
    rows.push_back(row);
  }
  return lab::FitMachines(rows, {}).value();
}

void ExpectFits80(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), 80U) << line;
}

TEST(FitReport, IsPrintedInTheLabsForm) {
  const std::vector<lab::MachineFit> fits = Fits();
  const std::string text = FitReport(std::span(fits).first(1), Form::kText);
  EXPECT_NE(text.find("office   A chip <b>       5 dense models: fixed 1.66 ms/token + bytes / 49"), std::string::npos)
      << text;
  EXPECT_NE(text.find("of spec 819)"), std::string::npos);
  EXPECT_NE(text.find(" model-of-a-rather-long-name-1    2.00 GB measured   176.2 tok/s fit   175."),
            std::string::npos);
  EXPECT_NE(text.find("not on the line: mixture.gguf"), std::string::npos);
  ExpectFits80(text);
  ExpectFits80(FitReport(fits, Form::kText));
  EXPECT_NE(FitReport(fits, Form::kText).find("attic"), std::string::npos);
}

TEST(FitReport, JsonHasTheFieldsThatScriptsReadAndEveryModel) {
  const std::vector<lab::MachineFit> fits = Fits();
  const json document = json::parse(FitReport(fits, Form::kJson));
  EXPECT_NEAR(document["fixed_ms"].get<double>(), 1.67, 0.05);
  EXPECT_NEAR(document["bandwidth_gb_s"].get<double>(), 497, 5);
  EXPECT_GT(document["worst_residual_ms"].get<double>(), 0);
  ASSERT_EQ(document["machines"].size(), 2U);
  const json& machine = document["machines"][0];
  EXPECT_EQ(machine["models"].size(), 5U);
  EXPECT_TRUE(machine["models"][4]["left_out"]["inside"].is_boolean());
  EXPECT_EQ(machine["excluded"][0]["experts"], 64);
  EXPECT_LT(machine["fixed_ms_low"].get<double>(), machine["fixed_ms"].get<double>());
}

TEST(FitReport, CsvHasEveryInterval) {
  const std::string csv = FitReport(Fits(), Form::kCsv);
  std::istringstream lines(csv);
  std::string header, first;
  std::getline(lines, header);
  std::getline(lines, first);
  EXPECT_EQ(std::ranges::count(header, ','), std::ranges::count(first, ','));
  for (const char* key : {"fixed_ms_low", "fixed_ms_high", "bandwidth_gb_s_low", "bandwidth_gb_s_high",
                          "next_session_bandwidth_gb_s_low", "ordinary_fixed_ms_high", "robust_bandwidth_gb_s"}) {
    EXPECT_NE(header.find(key), std::string::npos) << key;
  }
}

TEST(FitReport, AdjustedTimesAreNotCalledMeasured) {
  std::vector<lab::Row> rows = Rows();
  EXPECT_NE(FitReport(lab::FitMachines(rows, {}).value(), Form::kText).find("GB measured"), std::string::npos);
  for (lab::Row& row : rows) row.streamed_gb_s = {638};
  const std::string text = FitReport(lab::FitMachines(rows, {}).value(), Form::kText);
  EXPECT_EQ(text.find("GB measured"), std::string::npos) << text;
  EXPECT_NE(text.find("GB adjusted"), std::string::npos);
  EXPECT_NE(text.find("adjusted: times at 638.0 GB/s"), std::string::npos);
}

TEST(FitReport, WhatTheIntervalsAreOfIsSaid) {
  std::vector<lab::Row> rows;
  for (int session = 0; session < 3; ++session) {
    for (lab::Row row : Rows()) {
      row.date = "2026-11-30T1" + std::to_string(session) + ":00:00Z";
      row.generation_tps *= 1 + 0.02 * session;
      rows.push_back(row);
    }
  }
  const std::string one = FitReport(lab::FitMachines(Rows(), {}).value(), Form::kText);
  EXPECT_NE(one.find("the one session of these rows"), std::string::npos) << one;
  EXPECT_NE(one.find("assumed"), std::string::npos);
  const auto fits = lab::FitMachines(rows, {}).value();
  const std::string three = FitReport(fits, Form::kText);
  EXPECT_NE(three.find("sessions: 3 that differ by 2.8 % from one another"), std::string::npos) << three;
  EXPECT_NE(three.find("2026-11-30 12:00"), std::string::npos) << three;
  ExpectFits80(three);
  const json sessions = json::parse(FitReport(fits, Form::kJson))["machines"][0]["sessions"];
  EXPECT_FALSE(sessions["assumed"].get<bool>());
  EXPECT_EQ(sessions["list"].size(), 3U);
}

TEST(ForecastReport, TextJsonAndTheMiss) {
  const std::vector<lab::MachineFit> fits = Fits();
  const lab::ModelFacts model = lab::StatedFacts(8e9);
  const auto forecasts = lab::Predict(fits[0], model, {}).value();
  lab::Visit visit;
  visit.token_s = {forecasts[0].seconds.estimate + 3e-3};
  ForecastSubject subject{model, fits[0], 1.67, 497, 0.03};
  subject.rows = {{forecasts[0], lab::Compare(fits[0], model, forecasts[0], visit), std::string(64, 'a')}};
  const auto report = [&](Form form) { return ForecastReport(std::span(&subject, 1), form); };
  const std::string text = report(Form::kText);
  EXPECT_NE(text.find("+3.00!"), std::string::npos) << text;
  EXPECT_NE(text.find("times the bytes of the largest"), std::string::npos);
  EXPECT_NE(text.find("above a millisecond"), std::string::npos);
  ExpectFits80(text);
  const json document = json::parse(report(Form::kJson));
  EXPECT_NEAR(document["tok_s"].get<double>(), 56.3, 0.5);
  EXPECT_LT(document["tok_s_low"].get<double>(), document["tok_s_high"].get<double>());
  EXPECT_TRUE(document["depths"][0]["extrapolated"].get<bool>());
  EXPECT_NEAR(document["depths"][0]["miss_ms"].get<double>(), 3, 1e-9);
  EXPECT_NEAR(document["depths"][0]["raw_miss_ms"].get<double>(), 3, 1e-9);
  EXPECT_TRUE(document["between_sessions_assumed"].get<bool>());
  // The interval of another session is the wider one.
  EXPECT_LT(document["tok_s_low"].get<double>(), document["same_session_tok_s_low"].get<double>());
  EXPECT_GT(document["tok_s_high"].get<double>(), document["same_session_tok_s_high"].get<double>());
  EXPECT_NE(report(Form::kCsv).find("raw_miss_pct"), std::string::npos);
  subject.rows[0].miss.reset();
  ExpectFits80(report(Form::kText));
}

TEST(ForecastReport, SeveralModelsAreOneTable) {
  const lab::MachineFit fit = Fits()[0];
  std::vector<ForecastSubject> subjects;
  for (const double bytes : {3e9, 8e9}) {
    ForecastSubject& subject = subjects.emplace_back(lab::StatedFacts(bytes), fit, 1.67, 497, 0.03);
    subject.model.name = fmt::format("a-model-of-a-rather-long-name-of-{}-gigabytes.gguf", bytes / 1e9);
    subject.own_rows_out = 5;
    subject.rows.push_back({lab::Predict(fit, subject.model, {}).value().front(), {}, {}});
  }
  const auto report = [&](Form form) { return ForecastReport(subjects, form); };
  const std::string before = report(Form::kText);
  ExpectFits80(before);
  EXPECT_NE(before.find("2 models, 95 % intervals"), std::string::npos) << before;
  EXPECT_NE(before.find("\nunseen, its own rows left out: 5"), std::string::npos)
      << "what is said of all has no name: " << before;
  EXPECT_NE(before.find("-8-gigabytes.gguf: depth 0 is extrapolated"), std::string::npos) << before;
  lab::Visit visit;
  visit.token_s = {2 * subjects[0].rows[0].forecast.seconds.estimate};
  subjects[0].rows[0].miss = lab::Compare(fit, subjects[0].model, subjects[0].rows[0].forecast, visit);
  const std::string text = report(Form::kText);
  ExpectFits80(text);
  EXPECT_NE(text.find("+100.0  NO"), std::string::npos) << text;
  EXPECT_NE(text.find("0 of 1 inside"), std::string::npos) << text;
  EXPECT_NE(report(Form::kCsv).find("model,depth,token_ms,half_width_pct,measured_raw_ms"), std::string::npos);
  const json document = json::parse(report(Form::kJson));
  EXPECT_EQ(document["models"].size(), 2U);
  EXPECT_EQ(document["models"][0]["own_rows_left_out"], 5);
  EXPECT_FALSE(document["models"][0]["depths"][0]["inside"].get<bool>());
}

// Of two points there is a line and no interval, which nothing may speak of; and the ledger keeps no forecast without.
TEST(ForecastReport, WithoutAnIntervalItIsSaidWhyNothingIsRecorded) {
  const std::vector<lab::Row> ladder = Rows();
  const lab::MachineFit fit = lab::FitMachines(std::span(ladder).first(2), {}).value().front();
  ForecastSubject subject{lab::StatedFacts(8e9), fit, 1.67, 497, 0};
  subject.rows.push_back({lab::Predict(fit, subject.model, {}).value().front(), {}, {}});
  const std::string text = ForecastReport(std::span(&subject, 1), Form::kText);
  EXPECT_EQ(text.find("95 %"), std::string::npos) << text;
  EXPECT_NE(text.find("no interval: through two models"), std::string::npos) << text;
  EXPECT_NE(text.find("is recorded"), std::string::npos) << text;
}

TEST(CardReport, CardsStandBesideEachOther) {
  const std::vector<lab::MachineFit> fits = Fits();
  chip::Chip machine;
  machine.facts = {{"barrier_ns", 700, "ns", chip::Provenance::kMeasured, "", "", 0, "", {}}};
  const std::vector<lab::Card> cards = {lab::MakeCard(fits[0], &machine), lab::MakeCard(fits[1], nullptr)};
  const std::string text = CardReport(cards, Form::kText);
  EXPECT_NE(text.find("700 ns"), std::string::npos) << text;
  EXPECT_NE(text.find("attic"), std::string::npos);
  EXPECT_NE(text.find("unknown"), std::string::npos);  // nobody streamed
  EXPECT_NE(text.find("streamed bandwidth, M* at 4.5 bits: unknown without rows"), std::string::npos) << text;
  EXPECT_NE(text.find("attic: dispatch, barrier: unknown without `boltbeam chip measure`"), std::string::npos) << text;
  ExpectFits80(text);
  std::vector<lab::Card> five(5, cards[0]);
  for (lab::Card& card : five) card.device = "A processor of a rather long name, with 96 cores of a kind";
  ExpectFits80(CardReport(five, Form::kText));
  const json document = json::parse(CardReport(cards, Form::kJson));
  EXPECT_NEAR(document["cards"][1]["fixed_ms"].get<double>(), 1.67, 0.05);
  EXPECT_TRUE(document["cards"][1]["barrier_ns"].is_null());
  for (const char* number : {"fixed_ms", "bandwidth_gb_s"}) {
    const std::string key = number;
    const json& card = document["cards"][0];
    EXPECT_LT(card[key + "_low"].get<double>(), card[key].get<double>()) << key;
    EXPECT_GT(card[key + "_high"].get<double>(), card[key].get<double>()) << key;
  }
  EXPECT_LT(document["cards"][0]["next_session_bandwidth_gb_s_low"].get<double>(),
            document["cards"][0]["bandwidth_gb_s_low"].get<double>());
  const std::string csv = CardReport(cards, Form::kCsv);
  for (const auto& [key, value] : document["cards"][0].items()) {
    if (key == "alias") continue;
    EXPECT_NE(csv.find(key), std::string::npos) << key;
  }
  const std::string svg = CardSvg(cards);
  EXPECT_NE(svg.find("<svg xmlns"), std::string::npos);
  EXPECT_NE(svg.find("A chip &lt;b&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
}

TEST(CardReport, AFixedCostBelowZeroIsNoCost) {
  std::vector<lab::Row> rows = Rows();
  rows.pop_back();
  for (lab::Row& row : rows) row.generation_tps = 1 / (row.Seconds() - 3e-3);
  std::vector<lab::Card> cards = {lab::MakeCard(lab::FitMachines(rows, {}).value().front(), nullptr)};
  const std::string remark = "a fixed cost below zero is no cost: a cache keeps a part";
  EXPECT_NE(CardReport(cards, Form::kText).find(remark), std::string::npos) << CardReport(cards, Form::kText);
  ExpectFits80(CardReport(cards, Form::kText));
  for (const std::string& shown : {CardReport(cards, Form::kMarkdown), CardReport(cards, Form::kJson),
                                   CardReport(cards, Form::kCsv), CardSvg(cards)}) {
    EXPECT_NE(shown.find("a fixed cost below zero is no cost"), std::string::npos) << shown;
  }
  // Where zero lies in the interval, no cache has to answer for it.
  for (lab::Row& row : rows) row.generation_tps = 1 / (row.Seconds() + 3e-3 - 1.68e-3);
  cards = {lab::MakeCard(lab::FitMachines(rows, {}).value().front(), nullptr)};
  EXPECT_NE(CardReport(cards, Form::kText).find("is no cost: zero lies in its interval"), std::string::npos)
      << CardReport(cards, Form::kText);
}

TEST(Png, OfACard) {
  const std::vector<lab::MachineFit> fits = Fits();
  const std::vector<lab::Card> cards = {lab::MakeCard(fits[0], nullptr)};
  const auto png = PngOf(CardSvg(cards), 1);
  ASSERT_TRUE(png) << png.error().Message();
  EXPECT_TRUE(png->starts_with("\x89PNG"));
  // Width and height of the first chunk, big-endian.
  EXPECT_EQ(png->substr(16, 4), std::string("\0\0\x01\x90", 4));  // 400
  EXPECT_EQ(PngOf("no drawing").error().code, Code::kImage);
  EXPECT_EQ(PngOf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1e7\" height=\"9\"/>").error().code, Code::kImage);
  setenv("BOLTBEAM_PNG_PLUGIN", "no/such/plugin.so", 1);
  EXPECT_NE(PngOf(CardSvg(cards)).error().found.find("does not exist"), std::string::npos);
  unsetenv("BOLTBEAM_PNG_PLUGIN");
}

TEST(PriceReport, AllForms) {
  lab::PriceQuestion question;
  question.tok_s = 247.8;
  const lab::PriceList list = lab::LoadPrices("", "").value();
  const std::string bare = PriceReport(lab::ComputePrice(question, list).value(), Form::kText);
  EXPECT_NE(bare.find("$3.363"), std::string::npos) << bare;
  EXPECT_NE(bare.find("the floor is not known"), std::string::npos);
  EXPECT_NE(bare.find("Breakeven Point"), std::string::npos) << bare;
  EXPECT_EQ(bare.find("…"), std::string::npos) << "a source is cut";
  EXPECT_NE(bare.find("owned beats hosted above 22.3 million tokens a day"), std::string::npos) << bare;
  ExpectFits80(bare);
  question.floor_tok_s = 363.54;
  question.prompt_tok_s = 9000;
  question.prompt_tokens = 100;
  const lab::Price price = lab::ComputePrice(question, list).value();
  ExpectFits80(PriceReport(price, Form::kText));
  const json document = json::parse(PriceReport(price, Form::kJson));
  EXPECT_NEAR(document["usd_per_million"].get<double>(), 3.3629, 1e-4);
  EXPECT_NEAR(document["usd_per_million_at_floor"].get<double>(), 2.2923, 1e-4);
  EXPECT_EQ(document["inputs"][0]["source"], "bex.co, The Self-Hosted GPU Breakeven Point");
  // It is a list to edit, too.
  EXPECT_EQ(lab::ParsePrices(document.dump(), "an answer").value().inputs.size(), list.inputs.size());
  const std::string page = PriceHtml(price);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("16.3 months"), std::string::npos);
  EXPECT_EQ(page.find("<?xml"), std::string::npos);
  EXPECT_NE(page.find("name=\"viewport\""), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(page.find("renting one H100"), std::string::npos);
  EXPECT_EQ(page.find("http-equiv"), std::string::npos);
}

}  // namespace
}  // namespace boltbeam::report
