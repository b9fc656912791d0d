// What the ledger answers: filters over several chains, refutations and what reopens them, sightings, scores of
// predictions, figures computed again; and its index, which may be thrown away.
#include <gtest/gtest.h>

#include <fstream>

#include "ledger/rederive.h"
#include "ledger/reopen.h"
#include "ledger/score.h"
#include "ledger/testing/scenario.h"

namespace boltbeam::ledger {
namespace {

Verdict Refutation(const std::string& candidate, const std::string& shape = "shape") {
  Verdict verdict = MarkedVerdict("slower by 5 %", Ruling::kRefute);
  verdict.subject.candidate = candidate;
  verdict.subject.shape = shape;
  return verdict;
}

class LedgerMemory : public testing::Test {
 protected:
  Ledger Machine(const std::string& writer) { return *Ledger::Open(DiskOptions(disk_, writer)); }
  Index IndexOf(const Ledger& ledger) {
    Result<Index> index = Index::Open(ledger);
    if (!index) throw std::runtime_error(index.error().Message());
    return std::move(*index);
  }

  SimulatedDisk disk_;
  Ledger here_ = Machine("host-0123abcd-user");
  Ledger there_ = Machine("other-4567cdef-user");
};

TEST_F(LedgerMemory, TwoMachinesSideBySideAnswerOneQuery) {
  ASSERT_TRUE(here_.AppendVerdict(Refutation("slow")));
  ASSERT_TRUE(there_.AppendVerdict(Refutation("slow")));
  ASSERT_TRUE(there_.AppendVerdict(MarkedVerdict("undecided")));
  Index index = IndexOf(here_);
  Filter filter;
  filter.verdict = "refute";
  const std::vector<Row> rows = *index.List(filter);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NE(rows[0].writer, rows[1].writer);
  const Sightings sightings = *CountSightings(index, Refutation("slow"));
  EXPECT_EQ(sightings.sessions, 2U);
  EXPECT_EQ(sightings.machines, 2U);
  EXPECT_EQ(sightings.repetitions, 200U);
  EXPECT_EQ(Describe(sightings), "2 sessions, 2 machines, 200 repetitions");
  EXPECT_EQ(Describe(*CountSightings(index, MarkedVerdict("undecided"))), "seen once");
}

// What a candidate is counts, not what somebody called it.
TEST_F(LedgerMemory, SightingsAreOfWhatWasJudged) {
  const auto judged = [](const std::string& candidate, const std::string& words) {
    Verdict verdict = Refutation(candidate);
    verdict.subject.candidate_words = words;
    return verdict;
  };
  const Verdict one = judged("program 1111", "binary=/p"), other = judged("program 2222", "binary=/p");
  ASSERT_TRUE(here_.AppendVerdict(one));
  ASSERT_TRUE(here_.AppendVerdict(other));
  ASSERT_TRUE(there_.AppendVerdict(judged("program 1111", "binary=/elsewhere")));
  Index index = IndexOf(here_);
  EXPECT_EQ(CountSightings(index, one)->sessions, 2U) << "the same program at another path";
  EXPECT_TRUE(CountSightings(index, other)->SeenOnce()) << "another program at the same path";
  EXPECT_TRUE(*IsRefuted(index, "program 2222", one.subject.chip, one.subject.shape));
  EXPECT_FALSE(*IsRefuted(index, "program 3333", one.subject.chip, one.subject.shape));
  Filter filter;
  filter.candidate = "binary=/p";
  EXPECT_EQ(index.List(filter)->size(), 2U) << "but it is found by the words";
}

TEST_F(LedgerMemory, FiltersAndNumbers) {
  ASSERT_TRUE(here_.AppendPrediction(MarkedPrediction("first")));
  ASSERT_TRUE(here_.AppendVerdict(MarkedVerdict("second")));
  const Receipt third = *here_.AppendVerdict(Refutation("third"));
  ASSERT_TRUE(there_.AppendVerdict(Refutation("fourth")));
  Index index = IndexOf(here_);
  Filter filter;
  filter.kind = Kind::kVerdict;
  EXPECT_EQ(index.List(filter)->size(), 3U);
  filter.limit = 1;
  EXPECT_EQ(index.List(filter)->size(), 1U);
  filter = {};
  filter.chip = "another chip";
  EXPECT_EQ(index.List(filter)->size(), 0U);
  EXPECT_EQ(index.Find("3")->hash, third.hash);
  EXPECT_EQ(index.Find(third.hash.substr(0, 8))->seq, 3U);
  EXPECT_EQ(index.Find("other-4567cdef-user:1")->payload.at("subject").at("candidate"), "fourth");
  for (const char* wrong : {"0", "9", "x", "nobody:1", "", "00000000", "99999999999999999999"}) {
    EXPECT_EQ(index.Find(wrong).error().code, Code::kLedgerNoRecord) << wrong;
  }
}

TEST_F(LedgerMemory, ARefutedCandidateStaysOutUntilItIsReopened) {
  const Receipt refuted = *here_.AppendVerdict(Refutation("idea"));
  const Receipt everywhere = *here_.AppendVerdict(Refutation("anywhere", ""));
  Index index = IndexOf(here_);
  EXPECT_TRUE(*IsRefuted(index, "idea", "chip", "shape"));
  EXPECT_FALSE(*IsRefuted(index, "idea", "chip", "another shape"));
  EXPECT_FALSE(*IsRefuted(index, "idea", "another chip", "shape"));
  EXPECT_TRUE(*IsRefuted(index, "anywhere", "chip", "another shape"));

  EXPECT_EQ(Reopen(here_, index, "2", "").error().code, Code::kLedgerRecord);
  ASSERT_TRUE(Reopen(here_, index, refuted.hash, "a new lowering"));
  index = IndexOf(here_);
  EXPECT_FALSE(*IsRefuted(index, "idea", "chip", "shape"));
  EXPECT_TRUE(*IsRefuted(index, "anywhere", "chip", "shape"));
  EXPECT_EQ(Reopen(here_, index, refuted.hash, "again").error().code, Code::kUsage);
  // Nothing was promoted by it: the verdicts are what they were.
  Filter promoted;
  promoted.verdict = "promote";
  EXPECT_TRUE(index.List(promoted)->empty());
  EXPECT_EQ(everywhere.seq, 2U);
  // All that stands against the candidate is opened at once, whichever of its refutations is named.
  const Receipt again = *here_.AppendVerdict(Refutation("twice"));
  ASSERT_TRUE(here_.AppendVerdict(Refutation("twice")));
  index = IndexOf(here_);
  EXPECT_EQ(Reopen(here_, index, again.hash, "a new lowering")->size(), 2U);
  index = IndexOf(here_);
  EXPECT_FALSE(*IsRefuted(index, "twice", "chip", "shape"));

  ASSERT_TRUE(there_.AppendVerdict(Refutation("idea")));  // judged again, elsewhere, and refuted again
  index = IndexOf(here_);
  EXPECT_TRUE(*IsRefuted(index, "idea", "chip", "shape"));
}

TEST_F(LedgerMemory, ARefutationSaysWhenItsConditionHasComeTrue) {
  Verdict verdict = Refutation("idea");
  verdict.reopen_when = {{"llvm_version", Comparison::kAtLeast, "19.1.10", ""},
                         {"chip.l2_bytes", Comparison::kChanges, 1048576, ""},
                         {"", Comparison::kStated, nullptr, "a cheaper reduction"}};
  ASSERT_TRUE(here_.AppendVerdict(verdict));
  Index index = IndexOf(here_);
  const auto due = [&](const Facts& now) {
    return FindRefutation(index, "idea", "chip", "shape", now)->value().IsDue();
  };
  EXPECT_FALSE(due({}));
  EXPECT_FALSE(due({{"llvm_version", "19.1.7"}, {"chip.l2_bytes", 1048576.0}}));
  EXPECT_TRUE(due({{"llvm_version", "19.1.10"}}));
  EXPECT_TRUE(due({{"llvm_version", "20.0"}}));
  EXPECT_TRUE(due({{"chip.l2_bytes", 2097152}}));
  EXPECT_EQ(Holds(verdict.reopen_when[0], {{"llvm_version", "git"}}), Truth::kUnknown);
  EXPECT_EQ(Holds({"x", Comparison::kBelow, 3, ""}, {{"x", 2}}), Truth::kTrue);
  EXPECT_EQ(Describe(verdict.reopen_when[0], {{"llvm_version", "20.0"}}),
            "llvm_version is at least 19.1.10 (now 20.0)");
}

TEST_F(LedgerMemory, PredictionsAreScoredByWhatCameAfterThem) {
  const auto measure = [&](const std::string& prediction, double value) {
    Measurement measured;
    measured.subject = MarkedPrediction("").subject;
    measured.quantity = "token_ns";
    measured.value = measured.low = measured.high = value;
    measured.repetitions = 1;
    measured.prediction = prediction;
    ASSERT_TRUE(here_.AppendMeasurement(measured));
  };
  const std::string hit = here_.AppendPrediction(MarkedPrediction("line"))->hash;
  const std::string miss = here_.AppendPrediction(MarkedPrediction("line"))->hash;
  ASSERT_TRUE(here_.AppendPrediction(MarkedPrediction("line")));  // never measured
  measure(hit, 1.5e6);
  measure(hit, 9e6);  // a second answer does not count
  measure(miss, 6e6);
  Index index = IndexOf(here_);
  const Scores scores = *ScorePredictions(index);
  const Score& score = scores.by_method.at({"line", "token_ns"});
  EXPECT_EQ(score.answered, 2U);
  EXPECT_EQ(score.hits, 1U);
  EXPECT_EQ(score.unanswered, 1U);
  EXPECT_NEAR(score.bias, 1.0, 1e-12);  // geometric mean of 1 and 4 is 2
  EXPECT_NEAR(score.width, 1.0 / 3.0, 1e-12);
  EXPECT_NEAR(score.promised, 0.9, 1e-12);
}

TEST_F(LedgerMemory, AVerdictAnswersAPredictionOfItsRatioUnlessItWasRefused) {
  for (const bool refused : {true, false}) {
    Prediction prediction = MarkedPrediction("judge");
    prediction.quantity = "ratio";
    prediction.value = 0.9, prediction.low = 0.8, prediction.high = 1.0;
    Verdict verdict = MarkedVerdict("measured");
    verdict.prediction = here_.AppendPrediction(prediction)->hash;
    verdict.ratio = 0.95, verdict.ratio_low = 0.94, verdict.ratio_high = 0.96;
    verdict.refused = refused;
    ASSERT_TRUE(here_.AppendVerdict(verdict));
    Index index = IndexOf(here_);
    const Score score = ScorePredictions(index)->by_method.at({"judge", "ratio"});
    EXPECT_EQ(score.answered, refused ? 0U : 1U);
    EXPECT_EQ(score.hits, refused ? 0U : 1U);
    EXPECT_EQ(score.unanswered, 1U);
  }
}

TEST_F(LedgerMemory, FiguresAreComputedAgainFromTheSamples) {
  Verdict verdict = MarkedVerdict("with samples");
  verdict.ratio = 0.5, verdict.ratio_low = 0.4, verdict.ratio_high = 0.6;
  verdict.samples = {*here_.StoreSamples("1 2"), "test.pair.v1"};
  ASSERT_TRUE(here_.AppendVerdict(verdict));
  ASSERT_TRUE(here_.AppendVerdict(MarkedVerdict("without")));
  RederiveTable table;
  Index index = IndexOf(here_);
  const Record record = *LoadRecord(here_, *index.Find("1"));
  EXPECT_EQ(table.Run(here_, record).error().code, Code::kLedgerNotDerivable);
  double ratio = 0.5;
  table.Register("test.pair.v1", [&](const Record&, std::string_view samples) -> Result<DerivedFields> {
    EXPECT_EQ(samples, "1 2");
    return DerivedFields{{{"ratio", ratio}, {"conditions", nlohmann::json::array()}}, {"ratio"}, {"output"}};
  });
  EXPECT_TRUE(table.Run(here_, record)->AsRecorded("1"));
  ratio = 0.51;
  const Rederivation other = *table.Run(here_, record);
  ASSERT_EQ(other.differences.size(), 1U);
  EXPECT_EQ(other.differences[0].field, "/ratio");
  EXPECT_EQ(other.from_samples, std::vector<std::string>{"ratio"});
  EXPECT_EQ(other.from_record, (std::vector<std::string>{"output", "verdict"})) << "no samples of this form show it";
  EXPECT_EQ(other.AsRecorded("1").error().code, Code::kLedgerDiffers);
  EXPECT_EQ(table.Run(here_, *LoadRecord(here_, *index.Find("2"))).error().code, Code::kLedgerNotDerivable);
}

TEST_F(LedgerMemory, TheIndexIsMadeAnewWhateverHappensToIt) {
  Options options = DiskOptions(disk_, "host-0123abcd-user");
  options.index_file = testing::TempDir() + "boltbeam_ledger_index.sqlite";
  std::remove(options.index_file.c_str());
  Ledger ledger = *Ledger::Open(options);
  ASSERT_TRUE(ledger.AppendVerdict(Refutation("a")));
  ASSERT_TRUE(ledger.AppendVerdict(Refutation("b")));
  EXPECT_EQ(IndexOf(ledger).lines_read(), 2U);
  EXPECT_EQ(IndexOf(ledger).lines_read(), 0U);
  ASSERT_TRUE(ledger.AppendVerdict(Refutation("c")));
  ASSERT_TRUE(there_.AppendVerdict(Refutation("d")));
  EXPECT_EQ(IndexOf(ledger).lines_read(), 2U);  // only what is new
  for (const std::string& garbage : {std::string(), std::string("no database"), std::string(5000, '\xab')}) {
    std::ofstream(options.index_file, std::ios::binary | std::ios::trunc) << garbage;
    Index index = IndexOf(ledger);
    EXPECT_EQ(index.lines_read(), 4U);
    EXPECT_EQ(index.StandingRefutations()->size(), 4U);
  }
  // Another chain in the place of one: what is known of it is forgotten.
  disk_.Erase(ChainPath(kDiskFolder, "other-4567cdef-user"));
  disk_.Erase(AnchorPath(ChainPath(kDiskFolder, "other-4567cdef-user")));
  EXPECT_EQ(IndexOf(ledger).StandingRefutations()->size(), 3U);
  Options unwritable = options;
  unwritable.index_file = "/proc/nowhere/index.sqlite";
  const Ledger reader = *Ledger::Open(unwritable);
  EXPECT_EQ(IndexOf(reader).StandingRefutations()->size(), 3U);
  std::remove(options.index_file.c_str());
  EXPECT_EQ(Database::Open(unwritable.index_file).error().code, Code::kLedgerIndex);
}

TEST_F(LedgerMemory, ARecordIsShownFromItsChainNotFromTheIndex) {
  ASSERT_TRUE(here_.AppendVerdict(Refutation("a")));
  Index index = IndexOf(here_);
  const Row row = *index.Find("1");
  const std::string path = ChainPath(kDiskFolder, row.writer);
  std::string bytes = disk_.Bytes(path);
  bytes.replace(bytes.find("slower"), 6, "faster");
  disk_.SetBytes(path, bytes);
  EXPECT_EQ(LoadRecord(here_, row).error().code, Code::kLedgerDamaged);
}

}  // namespace
}  // namespace boltbeam::ledger
