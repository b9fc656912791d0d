// Tokens of two programs in turns, and what is made of them.
#include "audit/compare/live.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "measure/fake_engine.h"
#include "model/model.h"
#include "report/compare_format.h"
#include "test_model.h"

namespace boltbeam::audit {
namespace {

using nlohmann::json;

LiveFindings Findings() {
  LiveFindings findings;
  findings.account.token = {.now_ns = 1000,
                            .floor_ns = 500,
                            .lost_ns = 400,
                            .gaps_ns = 90,
                            .unaccounted_ns = 10,
                            .wait_ns = 60,
                            .host_ns = 30};
  Part down, norm;
  down.role = "ffn_down";
  down.format = "Q4_K";
  down.now_ns = 700;
  norm.role = "norm";
  norm.format = "F32";
  norm.now_ns = 200;
  findings.account.parts = {down, norm};
  findings.one_thread = {{1020, 1010, 1030}, {2000, 2000, 2000}};
  findings.fastest = {{600, 600, 600}, {900, 900, 900}};
  findings.theirs_repacked_ns = 1600;
  findings.threads = 2;
  findings.matching.regions = {{"ffn_down", "Q4_K", 4, 1500, 4000, 1200},
                               {"norm", "", 9, 100, 10, 100},
                               {"attn_qo", "residual", 2, 300, 8, 300}};
  findings.matching.unmatched_ns = 20;
  findings.matching.unmatched = {"DUP"};
  return findings;
}

TEST(Live, RegionsTermsAndResidualMakeTheDifference) {
  const LiveFindings findings = Findings();
  const Comparison comparison = CompareLive(findings, "llama.cpp");
  EXPECT_NEAR(comparison.DifferenceNs(), 1020 - 2000, 1e-9);
  ASSERT_EQ(comparison.paired.size(), 2U);
  EXPECT_EQ(comparison.paired[0].pairs, findings.one_thread.ours_ns.size());
  EXPECT_EQ(comparison.paired[0].ours_faster, comparison.paired[0].pairs);
  EXPECT_NEAR(comparison.paired[0].ratio.estimate, 2000.0 / 1020, 0.05);
  EXPECT_NEAR(comparison.ResidualNs(), -(2000 - 1500 - 100 - 300 - 20), 1e-9);
  EXPECT_NEAR(TieOut(findings), 1920.0 / 2000 - 1, 1e-9);
  EXPECT_FALSE(comparison.regions.back().in_ours);
  EXPECT_NEAR(*comparison.beside[0].theirs_ns, -300, 1e-9);  // hot
  EXPECT_NEAR(*comparison.beside[1].theirs_ns, -400, 1e-9);
  EXPECT_NEAR(*comparison.beside[2].theirs_ns, -700, 1e-9);
  EXPECT_NEAR(*comparison.beside[2].ours_ns, -420, 1e-9);
  EXPECT_NE(comparison.Sentence().find("boltbeam wins in ffn_down Q4_K (0.8 µs)"), std::string::npos)
      << comparison.Sentence();
  EXPECT_NE(comparison.Sentence().find("llama.cpp wins in norm F32 (0.1 µs)"), std::string::npos);
}

TEST(Live, TiesOutAgainstTheTokensAmongItsParts) {
  LiveFindings findings = Findings();
  findings.among_parts = {{1800}, {2000}, {9000, true}};
  EXPECT_NEAR(TieOut(findings), 1920.0 / 1900 - 1, 1e-9);
  const Comparison comparison = CompareLive(findings, "llama.cpp");
  const auto term = [&](const std::string& name) { return *std::ranges::find(comparison.terms, name, &Term::name); };
  EXPECT_NEAR(*term("parts to windows").theirs_ns, 100, 1e-9);
  EXPECT_NEAR(comparison.ResidualNs(), -(1900 - 1920), 1e-9);  // what is left is its token among them less its parts
  EXPECT_TRUE(term("account to windows").IsWithinBudget());
  EXPECT_NEAR(term("account to windows").budget_ns.value_or(0), 102, 1e-9);
  EXPECT_TRUE(RequireTieOut(comparison, findings));
  findings.account.token.now_ns = 1200;  // 180 beyond its windows
  const Comparison moved = CompareLive(findings, "llama.cpp");
  const auto account = std::ranges::find(moved.terms, "account to windows", &Term::name);
  EXPECT_FALSE(account->IsWithinBudget());
  EXPECT_NE(account->note.find("beyond the budget of 10 %"), std::string::npos);
  const Result<void> wrong = RequireTieOut(moved, findings);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(CodeGroup(wrong.error().code), Group::kMeasurement);
  EXPECT_EQ(wrong.error().where, "account to windows");
}

// A token of 700 at its floor and 820 in all, read at 50 GB/s: at 40 its bytes take 175 more, and it took 200 more.
TEST(Live, TokensAreComparedAtOneSpeedOfTheMemory) {
  LiveFindings findings = Findings();
  findings.account.token.now_ns = 820;
  findings.account.token.floor_ns = 700;
  findings.account.read_bandwidth_gb_s = 50;
  const auto terms = [&](double beside_gb_s) {
    findings.one_thread.read_gb_s = beside_gb_s;
    const Comparison comparison = CompareLive(findings, "llama.cpp");
    const auto of = [&](const char* name) {
      return std::ranges::find(comparison.terms, name, &Term::name)->ours_ns.value_or(0);
    };
    EXPECT_NEAR(of("memory's speed") + of("account to windows"), 200, 1e-9);
    EXPECT_NEAR(comparison.ResidualNs(), -80 - (700 + 200 + 60 + 30 + 10 + 200 - 1020), 1e-9);
    EXPECT_EQ(RequireTieOut(comparison, findings).has_value(), of("account to windows") <= 102);
    return of("memory's speed");
  };
  EXPECT_NEAR(terms(40), 175, 1e-9);
  EXPECT_NEAR(terms(50), 0, 1e-9) << "the same speed explains nothing";
  EXPECT_NEAR(terms(60), 0, 1e-9) << "a faster memory does not explain a longer token";
  EXPECT_NEAR(terms(25), 200, 1e-9) << "no more than what is there";
  EXPECT_NEAR(terms(0), 0, 1e-9) << "not read";

  findings.account.token.now_ns = 1020;
  findings.among_parts = {{1900}};
  findings.among_gb_s = {60};
  findings.one_thread.read_gb_s = 50;
  const Comparison theirs = CompareLive(findings, "llama.cpp");
  EXPECT_NEAR(*std::ranges::find(theirs.terms, "memory's speed", &Term::name)->theirs_ns, 100, 1e-9);
  EXPECT_NEAR(*std::ranges::find(theirs.terms, "parts to windows", &Term::name)->theirs_ns, 0, 1e-9);
}

// Windows of an engine whose tokens take no computing, of which one in three waits for a CPU.
class InTurns : public testing::Test {
 protected:
  // disturbed: theirs, of a window's number; ours: of each third window.
  Interleaved Run(const std::function<std::optional<bool>(int window)>& disturbed, double seconds) {
    model::TestModel file("llama");
    measure::FakeEngine engine(model::Model::Load(file.Write()).value());
    measure::FakeSession session;
    session.token_ns = 1000;
    InterleaveOptions options;
    options.tokens = 2;
    options.seconds = seconds;
    int readings = 0;
    measure::Counters counters;
    counters.waits_known = true;
    options.counters = [&] {
      if (readings++ % 6 == 1) counters.waited_ns += 1'000'000'000;  // within the first, the fourth, ... window
      return counters;
    };
    int windows = 0;
    const auto theirs = [&]() -> Result<PeerWindow> {
      ++windows;
      return PeerWindow{static_cast<double>(windows), disturbed(windows)};
    };
    Interleaved interleaved = Interleave(engine, session, theirs, options).value();
    ran_ = static_cast<std::size_t>(windows) - 1;  // the first warms up
    return interleaved;
  }
  std::size_t ran_ = 0;
};

TEST_F(InTurns, PairsThatACauseDisturbedAreLeftOut) {
  const Interleaved left = Run([](int window) { return window % 2 == 0; }, 0.02);
  EXPECT_GE(left.ours_ns.size(), 6U);
  EXPECT_EQ(left.ours_ns.size(), left.theirs_ns.size());
  EXPECT_EQ(left.left_out + left.ours_ns.size(), ran_);
  EXPECT_GE(left.left_out, ran_ / 2);
  for (const double ns : left.theirs_ns) EXPECT_EQ(std::lround(ns) % 2, 1) << ns;
  // Ours in the pairs 3, 6, ...: theirs of these are the windows 4, 7, ...
  for (const double ns : left.theirs_ns) EXPECT_NE(std::lround(ns) % 3, 1) << ns;
}

TEST_F(InTurns, WhereTheirsIsNotKnownOursIsNotJudged) {
  const Interleaved all = Run([](int) { return std::nullopt; }, 0.02);
  EXPECT_EQ(all.left_out, 0U);
  EXPECT_EQ(all.ours_ns.size(), ran_);
}

TEST_F(InTurns, WhereAllAreDisturbedAllCount) {
  const Interleaved all = Run([](int) { return true; }, 0.005);
  EXPECT_EQ(all.left_out, 0U);
  EXPECT_EQ(all.disturbed, ran_);
  Comparison comparison;
  comparison.paired = {all.Paired("one thread each")};
  EXPECT_NE(report::CompareReport({&comparison, 1}, "md").find("of them one of the programs was kept from computing"),
            std::string::npos);
  EXPECT_EQ(all.ours_ns.size(), ran_);
}

// 1920 of 2000 are parts; the skeleton takes 70 beyond its own.
TEST(Live, WhatIsBetweenOperationsJoinsThePartsInTheTieOut) {
  LiveFindings findings = Findings();
  findings.between = Between{270, 200};
  EXPECT_NEAR(PartsTieOut(findings), 1920.0 / 2000 - 1, 1e-9);
  EXPECT_NEAR(TieOut(findings), 1990.0 / 2000 - 1, 1e-9);
  const Comparison comparison = CompareLive(findings, "llama.cpp");
  EXPECT_NEAR(comparison.ResidualNs(), -(2000 - 1920 - 70), 1e-9);
  const auto term = std::ranges::find(comparison.terms, "between operations", &Term::name);
  ASSERT_NE(term, comparison.terms.end());
  EXPECT_NEAR(term->theirs_ns.value_or(0), 70, 1e-9);
  const std::string text = report::CompareReport({&comparison, 1}, "text");
  for (const char* shown : {"between operations", "Its parts alone,", "are 96.0 %", "are 99.5 %"}) {
    EXPECT_NE(text.find(shown), std::string::npos) << shown << " in " << text;
  }
  const json shown = json::parse(report::CompareReport({&comparison, 1}, "json"));
  EXPECT_NE(std::ranges::find_if(
                shown["terms"],
                [](const json& row) { return row["term"] == "between operations" && row["theirs_ns"] == 70.0; }),
            shown["terms"].end());
  EXPECT_NEAR(shown["parts_alone"].get<double>(), 0.96, 1e-9);
  EXPECT_NEAR(shown["parts_and_between"].get<double>(), 0.995, 1e-9);
}

TEST(Live, WithoutASkeletonWhatIsBetweenIsUnknownAndInTheResidual) {
  LiveFindings findings = Findings();
  findings.between_unknown = "no room";
  EXPECT_EQ(TieOut(findings), PartsTieOut(findings));
  const Comparison comparison = CompareLive(findings, "llama.cpp");
  const auto term = std::ranges::find(comparison.terms, "between operations", &Term::name);
  ASSERT_NE(term, comparison.terms.end());
  EXPECT_FALSE(term->theirs_ns);
  EXPECT_EQ(term->note, "unknown: no room");
  EXPECT_NEAR(comparison.ResidualNs(), -(2000 - 1920), 1e-9);
  EXPECT_FALSE(comparison.parts_and_between);
  EXPECT_NE(report::CompareReport({&comparison, 1}, "text").find("unknown (no room)"), std::string::npos);
}

}  // namespace
}  // namespace boltbeam::audit
