#include "lab/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

namespace boltbeam::lab {
namespace {

using nlohmann::json;

json Golden() {
  std::ifstream stream(std::string(BOLTBEAM_TEST_DATA) + "/golden/seed-tie-outs.json");
  return json::parse(stream).at("lab");
}

Row RowOn(const std::string& model, double gigabytes, double seconds) {
  Row row{.model = model, .alias = "here", .device = "a chip", .weight_bytes_per_token = gigabytes * 1e9};
  row.generation_tps = 1 / seconds;
  return row;
}

/// Rows of a line with a millisecond and 100 GB/s.
std::vector<Row> Ladder(std::initializer_list<double> sizes) {
  std::vector<Row> rows;
  for (const double size : sizes) rows.push_back(RowOn("m" + std::to_string(rows.size()), size, 1e-3 + size / 100));
  return rows;
}

MachineFit FitOne(const std::vector<Row>& rows, const FitOptions& options = {}) {
  const auto fits = FitMachines(rows, options);
  EXPECT_TRUE(fits) << fits.error().Message();
  return fits->front();
}

bool Mentions(const std::vector<std::string>& texts, const std::string& what) {
  return std::ranges::any_of(texts, [&](const std::string& text) { return text.contains(what); });
}

// The four machines of the document: rows drawn about their lines, with a scatter like the one that they print.
TEST(Fit, TheFourRecordedMachinesComeBack) {
  const std::vector<double> sizes = {0.5e9, 1.1e9, 2.3e9, 4.7e9, 15.0e9, 0.8e9};
  const json lines = Golden().at("lines");
  ASSERT_EQ(lines.size(), 4U);
  std::vector<Row> rows;
  std::uint64_t seed = 20260915;
  for (const json& line : lines) {
    std::mt19937_64 random(seed++);
    std::normal_distribution<double> noise(0, line.at("worst_residual_ms").get<double>() / 2 * 1e-3);
    for (std::size_t i = 0; i < line.at("models").get<std::size_t>(); ++i) {
      const double seconds = line.at("fixed_ms").get<double>() / 1e3 +
                             sizes[i] / (line.at("bandwidth_gb_s").get<double>() * 1e9) + noise(random);
      Row row{.model = "mlx/m" + std::to_string(i), .alias = line.at("alias"), .device = line.at("chip")};
      row.weight_bytes_per_token = sizes[i];
      row.generation_tps = 1 / seconds;
      row.spec_gb_s = line.at("spec_gb_s").get<double>();
      rows.push_back(row);
    }
  }
  const auto fits = FitMachines(rows, {});
  ASSERT_TRUE(fits) << fits.error().Message();
  ASSERT_EQ(fits->size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const MachineFit& fit = (*fits)[i];
    const double fixed = lines[i].at("fixed_ms").get<double>() / 1e3;
    const double bandwidth = lines[i].at("bandwidth_gb_s").get<double>();
    EXPECT_EQ(fit.alias, lines[i].at("alias").get<std::string>());
    EXPECT_EQ(fit.points.size(), lines[i].at("models").get<std::size_t>());
    EXPECT_LE(fit.fixed_s.low, fixed) << fit.alias;
    EXPECT_GE(fit.fixed_s.high, fixed) << fit.alias;
    EXPECT_LE(fit.bandwidth_gb_s.low, bandwidth) << fit.alias;
    EXPECT_GE(fit.bandwidth_gb_s.high, bandwidth) << fit.alias;
    // Drawn with half of the recorded worst residual as their deviation: five times that is beyond any draw.
    EXPECT_LT(fit.worst_residual_s, 2.5e-3 * lines[i].at("worst_residual_ms").get<double>()) << fit.alias;
    EXPECT_TRUE(Mentions(fit.warnings, "carries the line")) << fit.alias;  // one model of 15 GB above five small ones
  }
}

TEST(Fit, OneLineForEachMachineProgramAndDepth) {
  std::vector<Row> rows = Ladder({1, 2, 3, 4});
  for (Row row : Ladder({1, 2, 3, 4})) {
    row.engine = "another";
    rows.push_back(row);
  }
  EXPECT_EQ(FitMachines(rows, {}).value().size(), 2U);
}

TEST(Fit, VisitsOfAModelAreOnePoint) {
  std::vector<Row> rows = Ladder({1, 2, 3, 4});
  rows.push_back(RowOn("folder/m3", 4, 0.0412));
  rows.push_back(RowOn("m3", 4, 0.0411));
  const MachineFit fit = FitOne(rows);
  ASSERT_EQ(fit.points.size(), 4U);
  EXPECT_EQ(fit.points.back().visits, 3U);
  EXPECT_NEAR(fit.points.back().seconds, 0.0411, 1e-9);
}

TEST(Fit, AMixtureIsLeftOutAndShownAboveTheLine) {
  std::vector<Row> rows = Ladder({1, 2, 3, 4});
  Row mixture = RowOn("mixture", 1.5, 0.0205);
  mixture.experts = 128;
  rows.push_back(mixture);
  const MachineFit fit = FitOne(rows);
  EXPECT_EQ(fit.points.size(), 4U);
  EXPECT_NEAR(fit.fixed_s.estimate, 1e-3, 1e-9);
  ASSERT_EQ(fit.excluded.size(), 1U);
  EXPECT_NE(fit.excluded[0].reason.find("mixture of 128 experts"), std::string::npos);
  EXPECT_NEAR(fit.excluded[0].above_line_s, 0.0045, 1e-9);
}

TEST(Fit, ARateAboveThePublishedBandwidthIsNoSingleTokenRate) {
  std::vector<Row> rows = Ladder({1, 2, 3, 4});
  rows.push_back(RowOn("speculating", 2, 0.010));
  for (Row& row : rows) row.spec_gb_s = 120;
  const MachineFit fit = FitOne(rows);
  EXPECT_EQ(fit.points.size(), 4U);
  ASSERT_EQ(fit.excluded.size(), 1U);
  EXPECT_NE(fit.excluded[0].reason.find("above the published 120"), std::string::npos);
}

TEST(Fit, NoLineNamesWhatWasLeftOut) {
  FitOptions options;
  options.published_gb_s = 50;
  const std::vector<Row> rows = Ladder({1, 2, 3, 4});
  const Error error = FitMachines(rows, options).error();
  EXPECT_EQ(error.code, Code::kLabLine);
  EXPECT_NE(error.found.find("0 dense models; m0 is left out: "), std::string::npos) << error.Message();
  EXPECT_NE(error.found.find("above the published 50"), std::string::npos) << error.Message();
  EXPECT_NE(error.found.find("; and 3 more"), std::string::npos) << error.Message();
}

TEST(Fit, ARateAboveTheStreamedBandwidthIsCalledOut) {
  std::vector<Row> rows = Ladder({1, 2, 3, 4});
  rows.push_back(RowOn("two at once", 2, 0.0105));
  FitOptions options;
  options.streamed_gb_s = 110;
  EXPECT_TRUE(Mentions(FitOne(rows, options).findings, "more than one token per pass"));
}

TEST(Fit, FewerThanFourModelsAreAskedForMore) {
  EXPECT_TRUE(Mentions(FitOne(Ladder({1, 2, 3})).warnings, "at least 4"));
  EXPECT_TRUE(Mentions(FitOne(Ladder({1, 2})).warnings, "always a line"));
  EXPECT_TRUE(FitOne(Ladder({1, 2, 3, 4})).warnings.empty());
}

TEST(Fit, WhatGivesNoLineNamesTheMachine) {
  const auto one = FitMachines(Ladder({1}), {});
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, Code::kLabLine);
  EXPECT_NE(one.error().where.find("here"), std::string::npos);
  EXPECT_FALSE(FitMachines(Ladder({2, 2, 2, 2}), {}));
  // Beside a line they are a warning; so is another release, which has a line of its own.
  std::vector<Row> beside = Ladder({1, 2, 3, 4});
  beside.push_back(RowOn("lonely", 1, 0.02));
  beside.back().engine = "other";
  const auto both = FitMachines(beside, {});
  ASSERT_TRUE(both) << both.error().Message();
  ASSERT_EQ(both->size(), 1U);
  EXPECT_TRUE(Mentions(both->front().warnings, "no line of other rows: here, other"));
  std::vector<Row> releases = Ladder({1, 2, 3, 4});
  for (Row row : Ladder({1, 2, 3, 4})) {
    row.engine_version = "2";
    releases.push_back(row);
  }
  EXPECT_EQ(FitMachines(releases, {})->size(), 2U);
  const auto none = FitMachines({}, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kLabRow);
  FitOptions scaled;
  scaled.scale = Scale::kStreamed;
  EXPECT_NE(FitMachines(Ladder({1, 2, 3}), scaled).error().found.find("without a bandwidth"), std::string::npos);
}

TEST(Fit, AnotherFamilyOffTheLineIsAFinding) {
  std::vector<Row> rows = Ladder({1, 2, 3, 4, 5});
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 2e-5);
  for (Row& row : rows) {
    row.architecture = "dense";
    row.generation_tps = 1 / (row.Seconds() + noise(random));
  }
  Row hybrid = RowOn("hybrid", 2.5, 0.028);
  hybrid.architecture = "hybrid";
  rows.push_back(hybrid);
  const MachineFit fit = FitOne(rows);
  EXPECT_EQ(fit.architecture, "dense");
  EXPECT_TRUE(Mentions(fit.findings, "hybrid is of architecture hybrid")) << fit.findings.size();
  EXPECT_TRUE(Mentions(fit.findings, "a finding about the model"));
  EXPECT_TRUE(Mentions(fit.findings, "off the line of all others"));
}

TEST(Fit, AModelThatCarriesTheLineIsWarnedOf) {
  const MachineFit fit = FitOne(Ladder({0.5, 0.6, 0.7, 8}));
  EXPECT_TRUE(Mentions(fit.warnings, "m3 carries the line")) << fit.warnings.size();
}

TEST(Fit, TimesAreBroughtToOneMemorySpeed) {
  std::vector<Row> rows;
  const double speeds[] = {37, 60};
  for (int i = 0; i < 5; ++i) {
    Row row = RowOn("m" + std::to_string(i), 1.0 + i, 1);
    row.token_s.clear();
    for (int window = 0; window < 6; ++window) {
      const double speed = speeds[(window + i) % 5 < 1 + i % 3 ? 0 : 1];
      row.streamed_gb_s.push_back(speed);
      row.token_s.push_back(5e-4 + 1.1 * (1.0 + i) / speed);
    }
    rows.push_back(row);
  }
  const MachineFit fit = FitOne(rows);
  EXPECT_TRUE(fit.is_scaled);
  EXPECT_NEAR(fit.fixed_s.estimate, 5e-4, 1e-8);
  EXPECT_NEAR(*fit.reference_gb_s / fit.bandwidth_gb_s.estimate, 1.1, 1e-6);
  EXPECT_NEAR(fit.memory_factor, 1.1, 1e-9);
  FitOptions plain;
  plain.scale = Scale::kNone;
  EXPECT_GT(FitOne(rows, plain).worst_residual_s, 1e-3);
}

// 30 November 2026, two virtual CPUs of a Zen 4 whose memory jumps between 34 and 65 GB/s: seven passes over seven
// models.
TEST(Fit, EachModelOfARecordedLadderIsForetoldByTheOthers) {
  const auto rows = ReadRows(std::string(BOLTBEAM_TEST_DATA) + "/lab/zen4-ladder.jsonl");
  ASSERT_TRUE(rows) << rows.error().Message();
  const MachineFit fit = FitOne(*rows);
  EXPECT_EQ(fit.noise, Noise::kRelative);
  ASSERT_EQ(fit.points.size(), 7U);
  EXPECT_TRUE(fit.is_scaled);
  EXPECT_NEAR(fit.memory_factor, 0.96, 0.02);
  EXPECT_NEAR(1e3 * fit.fixed_s.estimate, 0.02, 0.05);
  EXPECT_NEAR(fit.bandwidth_gb_s.estimate / *fit.reference_gb_s, 0.963, 0.01);
  for (const ModelPoint& point : fit.points) {
    ASSERT_TRUE(point.left_out);
    EXPECT_TRUE(point.left_out->is_inside) << point.model;
    const measure::Interval& foretold = point.left_out->seconds;
    EXPECT_LT(foretold.high / foretold.estimate - 1, 0.06) << point.model;
    EXPECT_LT(std::abs(point.left_out->miss_s / foretold.estimate), 0.02) << point.model;
  }
  FitOptions options;
  options.noise = Noise::kRelative;
  options.scale = Scale::kNone;  // as they were, the times are no line
  EXPECT_GT(FitOne(*rows, options).line.sigma(), 5 * fit.line.sigma());
}

// Two CPUs of a Zen 5, nine passes: docs/lab.md has these figures.
TEST(Fit, ARecordedLadderOfANewerMachine) {
  const auto rows = ReadRows(std::string(BOLTBEAM_TEST_DATA) + "/lab/zen5-ladder.jsonl");
  ASSERT_TRUE(rows) << rows.error().Message();
  const MachineFit fit = FitOne(*rows);
  ASSERT_EQ(fit.points.size(), 7U);
  EXPECT_NEAR(1e3 * fit.fixed_s.estimate, 0.05, 0.005);
  EXPECT_NEAR(fit.bandwidth_gb_s.estimate / *fit.reference_gb_s, 0.957, 0.001);
  for (const ModelPoint& point : fit.points) {
    const LeftOut& left = point.left_out.value();
    EXPECT_TRUE(left.is_inside) << point.model;
    EXPECT_LT(left.seconds.high / left.seconds.estimate - 1, 0.06) << point.model;
    EXPECT_LT(std::abs(left.miss_s / left.seconds.estimate), 0.01) << point.model;
  }
}

// Minutes before on the same machine: a session's own interval of the fixed cost does not hold another session's.
TEST(Fit, TwoMoreLaddersOfThatMachine) {
  const auto fits_of = [](const char* file) {
    const auto rows = ReadRows(std::string(BOLTBEAM_TEST_DATA) + "/lab/" + file);
    EXPECT_TRUE(rows);
    return FitMachines(rows.value(), {}).value();
  };
  const MachineFit second = fits_of("zen5-ladder-second.jsonl").at(0);
  EXPECT_NEAR(1e3 * second.fixed_s.estimate, 0.53, 0.005);
  EXPECT_GT(second.fixed_s.low, fits_of("zen5-ladder.jsonl").at(0).fixed_s.high);
  const auto in_turns = fits_of("zen5-ladder-two-programs.jsonl");
  ASSERT_EQ(in_turns.size(), 2U);
  EXPECT_NEAR(1e3 * in_turns[0].fixed_s.estimate, 0.20, 0.005);
  EXPECT_EQ(in_turns[1].engine, "llama.cpp");
  EXPECT_NEAR(1e3 * in_turns[1].fixed_s.estimate, 3.03, 0.005);
  for (const MachineFit& fit : {second, in_turns[0], in_turns[1]}) {
    for (const ModelPoint& point : fit.points) EXPECT_TRUE(point.left_out->is_inside) << point.model;
  }
}

// The same machine, both programs in turns: docs/lab.md has these figures.
TEST(Fit, ARecordedLadderOfTwoPrograms) {
  const auto rows = ReadRows(std::string(BOLTBEAM_TEST_DATA) + "/lab/zen4-ladder-two-programs.jsonl");
  ASSERT_TRUE(rows) << rows.error().Message();
  const auto fits = FitMachines(*rows, {}).value();
  ASSERT_EQ(fits.size(), 2U);
  const auto largest_miss = [](const MachineFit& fit) {
    double largest = 0;
    for (const ModelPoint& point : fit.points) {
      largest = std::max(largest, std::abs(point.left_out->miss_s / point.left_out->seconds.estimate));
    }
    return largest;
  };
  EXPECT_NEAR(fits[0].memory_factor, 0.93, 0.01);
  EXPECT_NEAR(1e3 * fits[0].fixed_s.estimate, -0.2, 0.05);
  EXPECT_NEAR(fits[0].bandwidth_gb_s.estimate, 31.2, 0.05);
  EXPECT_NEAR(largest_miss(fits[0]), 0.030, 0.0005);
  // llama-bench runs between the readings: its times do not follow them, and are left as they were.
  EXPECT_EQ(fits[1].engine, "llama.cpp");
  EXPECT_EQ(fits[1].memory_factor, 0);
  EXPECT_NEAR(1e3 * fits[1].fixed_s.estimate, 3.4, 0.05);
  EXPECT_NEAR(fits[1].bandwidth_gb_s.estimate, 28.0, 0.05);
  EXPECT_NEAR(largest_miss(fits[1]), 0.070, 0.0005);
  for (const ModelPoint& point : fits[1].points) EXPECT_TRUE(point.left_out->is_inside) << point.model;
}

TEST(Fit, TheGapsAreExplainedAsTheDocumentDoes) {
  const json golden = Golden();
  const double m3 = golden.at("streaming_share_pct").at("M3 Ultra").get<double>() / 100;
  const double m2 = golden.at("streaming_share_pct").at("M2 Ultra").get<double>() / 100;
  // 61 % fitted, 78 % streamed: part memory system, part kernels.
  const Gap office = ExplainGap(497, m3 * 819, 819, golden.at("better_kernel_gb_s").begin()->get<double>());
  EXPECT_TRUE(Mentions(office.sentences, "61 % of the published 819"));
  EXPECT_TRUE(Mentions(office.sentences, "78 % of the published: part of the gap is the memory system"));
  EXPECT_NEAR(*office.memory_share, (819 - m3 * 819) / (819 - 497), 1e-9);
  EXPECT_TRUE(Mentions(office.sentences, "another kernel reached 605 GB/s, +22 %"));
  EXPECT_TRUE(Mentions(office.sentences, "a floor and not a limit"));
  // 68 % fitted, 92 % streamed: almost all the kernels'.
  const Gap music = ExplainGap(546, m2 * 800, 800);
  EXPECT_TRUE(Mentions(music.sentences, "68 % of the published 800"));
  EXPECT_TRUE(Mentions(music.sentences, "92 % of the published"));
  EXPECT_TRUE(Mentions(music.sentences, "the gap is almost all the decode kernels'"));
  EXPECT_TRUE(Mentions(ExplainGap(620, 630, 819).sentences, "the gap is the memory system's"));
  EXPECT_TRUE(Mentions(ExplainGap(347, {}, 400).sentences, "can't be told apart"));
  EXPECT_TRUE(Mentions(ExplainGap(497, {}, 819, 900).sentences, "above the published"));
  EXPECT_TRUE(Mentions(ExplainGap(49, 38.9, {}).sentences, "a cache kept bytes"));
  EXPECT_FALSE(Mentions(ExplainGap(620, 630, 819).sentences, "a cache kept bytes"));
}

TEST(Fit, RatesBesideTheMemory) {
  EXPECT_TRUE(CheckRate(4.67e9, 20, 100, 120).text.empty());
  EXPECT_TRUE(CheckRate(4.67e9, 23, 100, 120).is_above_streamed);
  EXPECT_FALSE(CheckRate(4.67e9, 23, 100, 120).is_above_published);
  EXPECT_TRUE(CheckRate(4.67e9, 26, 100, 120).is_above_published);
  EXPECT_NEAR(CheckRate(4.67e9, 26, {}, {}).implied_gb_s, 121.42, 1e-9);
}

}  // namespace
}  // namespace boltbeam::lab
