#include "search/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "chip/test_facts.h"
#include "ledger/testing/scenario.h"

namespace boltbeam::search {
namespace {

/// Timings of a machine whose costs are `truth`, each off by a few percent, and each table by a drift of its own.
std::vector<Sample> Timings(const Coefficients& truth, std::size_t each) {
  std::vector<Sample> samples;
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.02);
  for (const char* table : {"Q4_K.1024x1024", "Q6_K.1024x4096", "Q8_0.2048x1024"}) {
    const Part part = *PartOfTable(table);
    const Proposal proposal = ProposeProduct(part, chip::MeasuredTestCpu());
    Counter counter(part, chip::MeasuredTestCpu(), 2);
    const double drift = std::exp(5 * noise(random));
    const double read_gb_s = table[1] == '6' ? 70 : 40;  // one of the tables in a fast moment of the memory
    for (std::size_t i = 0; i < each; ++i) {
      const kernel::GemvGeometry& point = proposal.points[i * 37 % proposal.points.size()];
      Work work = *counter.Count(point);
      work.bandwidth_gb_s = read_gb_s;
      samples.push_back({part, point, 2, TimeOf(work, truth).ns * drift * std::exp(noise(random)), read_gb_s});
    }
  }
  return samples;
}

TEST(FitTest, FindsTheOrderOfATableThatItHasNotSeen) {
  Coefficients truth;
  truth.arithmetic = 1.6;
  truth.narrow = 0.4;
  truth.far = 0.06;
  truth.streams = 0.08;
  const auto fit = FitCoefficients(Timings(truth, 60), chip::MeasuredTestCpu(), 2);
  ASSERT_TRUE(fit) << fit.error().Message();
  EXPECT_EQ(fit->samples, 180U);
  EXPECT_EQ(fit->tables, 3U);
  EXPECT_LT(fit->error, 0.04);
  EXPECT_LT(fit->held_out_error, 0.08);
  EXPECT_GT(fit->held_out_rank, 0.9);
  EXPECT_LE(fit->worst_rank, fit->held_out_rank);
  EXPECT_TRUE(Describe(*fit).starts_with("predictor: fitted on 180 timings of 3 tables, error "));
}

TEST(FitTest, RefusesTooFewTimings) {
  const auto fit = FitCoefficients(Timings({}, 10), chip::MeasuredTestCpu(), 2);
  ASSERT_FALSE(fit);
  EXPECT_EQ(fit.error().code, Code::kMeasurementUnstable);
  EXPECT_FALSE(FitCoefficients(Timings({}, 60), chip::MeasuredTestCpu(), 1));  // all were taken with two threads
}

TEST(FitTest, RankCorrelationIsSpearmans) {
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3, 4}, {10, 20, 30, 40}), 1);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  // Worked by hand: ranks 0 1 2 3 and 1 0 3 2, squared differences 4 of 4 * 15 / 6.
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3, 4}, {2, 1, 4, 3}), 0.6);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 1, 1}, {1, 2, 3}), 0);  // no order
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2}, {1, 2}), 0);        // too few
}

TEST(FitTest, ReadsNamesBack) {
  const Part part = *PartOfTable("Q4_K.4096x14336");
  EXPECT_EQ(part.rows, 4096U);
  EXPECT_EQ(part.cols, 14336U);
  EXPECT_EQ(part.bytes, std::uint64_t{4096} * 14336 / 256 * 144);
  for (const char* wrong : {"", "Q4_K", "NO.1x2", "Q4_K.0x256", "Q4_K.axb"}) {
    EXPECT_EQ(PartOfTable(wrong).error().code, Code::kLedgerRecord) << wrong;
  }
  const Proposal proposal = ProposeProduct(part, chip::MeasuredTestCpu());
  EXPECT_EQ(*GeometryOfCandidate(CandidateName(proposal.points[5])), proposal.points[5]);
  EXPECT_EQ(GeometryOfCandidate("plan:x").error().code, Code::kLedgerRecord);
}

TEST(FitTest, ReadsTimingsAndRefutationsFromTheLedger) {
  ledger::SimulatedDisk disk;
  ledger::Ledger memory = *ledger::Ledger::Open(ledger::DiskOptions(disk, "host-0123abcd-user"));
  const Part part = *PartOfTable("Q4_K.1024x1024");
  const Proposal proposal = ProposeProduct(part, chip::MeasuredTestCpu());
  const auto time = [&](std::size_t point, double ns) {
    ledger::Measurement record;
    record.subject = SubjectOf(part, proposal.points[point], "test-cpu");
    record.quantity = kKernelQuantity;
    record.value = ns;
    record.low = 0.9 * ns;
    record.high = 1.1 * ns;
    record.repetitions = 5;
    record.environment[std::string(kThreadsField)] = 2;
    const auto receipt = memory.AppendMeasurement(record);
    ASSERT_TRUE(receipt) << receipt.error().Message();
  };
  time(0, 100);
  time(0, 300);
  time(0, 200);
  time(1, 50);
  ledger::Verdict verdict = ledger::MarkedVerdict("slower", ledger::Ruling::kRefute);
  verdict.subject = SubjectOf(part, proposal.points[2], "test-cpu");
  ASSERT_TRUE(memory.AppendVerdict(verdict));
  ledger::Index index = *ledger::Index::Open(memory);
  const auto samples = SamplesOf(index, "test-cpu");
  ASSERT_TRUE(samples);
  ASSERT_EQ(samples->size(), 2U);
  for (const Sample& sample : *samples) {
    EXPECT_EQ(sample.ns, sample.geometry == proposal.points[0] ? 200 : 50);
    EXPECT_EQ(sample.threads, 2U);
  }
  EXPECT_TRUE(SamplesOf(index, "another")->empty());
  const auto refuted = RefutedOn(index, "test-cpu");
  ASSERT_TRUE(refuted);
  EXPECT_TRUE(refuted->Has(SubjectOf(part, proposal.points[2], "test-cpu")));
  EXPECT_FALSE(refuted->Has(SubjectOf(part, proposal.points[1], "test-cpu")));
}

}  // namespace
}  // namespace boltbeam::search
