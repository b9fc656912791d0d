#include "lab/ladder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "measure/fake_engine.h"
#include "test_model.h"

namespace boltbeam::lab {
namespace {

/// Foretold readings of the memory.
class FakeBandwidth : public audit::BandwidthSource {
 public:
  std::vector<double> rates{50};
  std::size_t reads = 0;
  std::vector<double> Read() override { return {1, rates[reads++ % rates.size()]}; }
  double CacheGbS() const override { return 100; }
  std::string Method() const override { return "told"; }
};

class FakeRunner : public Runner {
 public:
  explicit FakeRunner(std::vector<std::string>& log, std::string name = "fake") : log_(log), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string version() const override { return "1"; }
  Result<Visit> Run(const ModelFacts& model, const VisitOptions&) override {
    log_.push_back(name_ + " " + model.name);
    if (model.name == "unstable") return Fail(Code::kMeasurementUnstable, "fake", "a storm");
    if (model.name == "broken") return Fail(Code::kGgufMagic, "fake", "no file");
    return Visit{{0.1, 0.2, 0.3}, {50}, 0, 2};
  }

 private:
  std::vector<std::string>& log_;
  std::string name_;
};

std::vector<ModelFacts> Models(std::initializer_list<const char*> names) {
  std::vector<ModelFacts> models;
  for (const char* name : names) {
    ModelFacts facts = StatedFacts(1e9 * static_cast<double>(models.size() + 1));
    facts.name = name;
    models.push_back(facts);
  }
  return models;
}

struct Climber {
  std::vector<std::string> log;
  std::vector<Row> rows;
  std::vector<std::string> notes;
  Result<LadderState> state = LadderState{};

  void Climb(const std::vector<ModelFacts>& models, std::uint64_t passes, std::initializer_list<const char*> programs) {
    std::vector<std::unique_ptr<Runner>> runners;
    for (const char* program : programs) runners.push_back(std::make_unique<FakeRunner>(log, program));
    LadderOptions options;
    options.alias = "here";
    options.device = "a chip";
    options.passes = passes;
    LadderHooks hooks;
    hooks.append = [&](const Row& row) -> Result<void> {
      rows.push_back(row);
      return {};
    };
    hooks.note = [&](const std::string& note) { notes.push_back(note); };
    const std::vector<Row> earlier = rows;
    state = RunLadder(models, runners, earlier, options, hooks);
  }
};

TEST(Ladder, GoesUpAndDownWithAllPrograms) {
  Climber run;
  run.Climb(Models({"s", "l"}), 2, {"a", "b"});
  EXPECT_EQ(run.log, (std::vector<std::string>{"a s", "b s", "a l", "b l", "b l", "a l", "b s", "a s"}));
  ASSERT_EQ(run.rows.size(), 8U);
  EXPECT_EQ(run.state->done, 8U);
  EXPECT_EQ(run.rows[0].generation_tps, 5);
  EXPECT_EQ(run.rows[0].alias, "here");
  EXPECT_EQ(run.rows.back().pass, 2U);
}

TEST(Ladder, GoesOnWhereItWasStopped) {
  Climber run;
  run.Climb(Models({"s", "l"}), 1, {"a"});
  run.log.clear();
  run.Climb(Models({"s", "l"}), 3, {"a"});
  EXPECT_EQ(run.log, (std::vector<std::string>{"a l", "a s", "a s", "a l"}));
  EXPECT_EQ(run.state->done, 6U);
  std::vector<ModelFacts> changed = Models({"s", "l"});
  changed[0].header_sha256 = "another file of that name";
  run.log.clear();
  run.Climb(changed, 1, {"a"});
  EXPECT_EQ(run.log, std::vector<std::string>{"a s"});
}

TEST(Ladder, ADisturbedVisitIsNoRowAndAFaultEndsIt) {
  Climber run;
  run.Climb(Models({"s", "unstable"}), 1, {"a"});
  EXPECT_EQ(run.rows.size(), 1U);
  EXPECT_EQ(run.state->done, 1U);
  EXPECT_EQ(run.state->total, 2U);
  ASSERT_EQ(run.notes.size(), 1U);
  EXPECT_NE(run.notes[0].find("a storm"), std::string::npos);
  run.Climb(Models({"broken"}), 1, {"a"});
  EXPECT_EQ(run.state.error().code, Code::kGgufMagic);
}

class Windows : public testing::Test {
 protected:
  Result<Visit> Measure(VisitOptions options = {}) {
    engine_.engine_options.context = 600;
    options.seconds = 0.01;
    options.window_s = 0.001;
    session_.token_ns = 200'000;
    return MeasureWindows(engine_, session_, bandwidth_, options);
  }
  model::TestModel file_{"qwen3"};
  measure::FakeEngine engine_{model::Model::Load(file_.Write()).value()};
  measure::FakeSession session_;
  FakeBandwidth bandwidth_;
};

TEST_F(Windows, TimeTokensBetweenReadings) {
  const auto visit = Measure();
  ASSERT_TRUE(visit) << visit.error().Message();
  ASSERT_GE(visit->token_s.size(), 3U);
  EXPECT_EQ(visit->streamed_gb_s.size(), visit->token_s.size());
  for (const double seconds : visit->token_s) EXPECT_GE(seconds, 2e-4);
  for (const double rate : visit->streamed_gb_s) EXPECT_NEAR(rate, 50, 1e-9);
  EXPECT_EQ(session_.depth(), 0U);
}

TEST_F(Windows, AreLeftOutWhenTheMemoryChangesItsSpeed) {
  bandwidth_.rates = {40, 40, 60, 60};
  const auto visit = Measure();
  ASSERT_TRUE(visit) << visit.error().Message();
  EXPECT_GT(visit->left_out, 0U);
  EXPECT_NEAR(static_cast<double>(visit->left_out), static_cast<double>(visit->token_s.size()), 1);
  bandwidth_.rates = {40, 60};
  bandwidth_.reads = 0;
  EXPECT_EQ(Measure().error().code, Code::kMeasurementUnstable);
}

TEST_F(Windows, AtADepth) {
  VisitOptions options;
  options.depth = 64;
  ASSERT_TRUE(Measure(options));
  EXPECT_EQ(session_.prompted, 64U);
  EXPECT_EQ(session_.depth(), 64U);
}

TEST(Runners, ACommandIsGivenTheFileAndItsRatesAreRead) {
  FakeBandwidth bandwidth;
  ModelFacts model = StatedFacts(1e9);
  model.path = "a folder/it's.gguf";
  const auto runner =
      MakeCommandRunner("echo", "9", "f={}; [ \"$f\" = \"a folder/it's.gguf\" ] && echo 12.5 tok/s", &bandwidth);
  const auto visit = runner->Run(model, {});
  ASSERT_TRUE(visit) << visit.error().Message();
  EXPECT_EQ(visit->token_s, std::vector<double>{0.08});
  EXPECT_EQ(visit->streamed_gb_s, std::vector<double>{50});
  EXPECT_EQ(bandwidth.reads, 18U);
  EXPECT_TRUE(MakeCommandRunner("echo", "", "echo 3", nullptr)->Run(model, {})->streamed_gb_s.empty());
  EXPECT_FALSE(MakeCommandRunner("false", "", "false", nullptr)->Run(model, {}));
}

TEST(Runners, RatesOfEveryRepetition) {
  EXPECT_EQ(RatesIn(R"([{"avg_ts": 7, "samples_ts": [8, 10]}])").value(), (std::vector<double>{8, 10}));
  EXPECT_EQ(RatesIn("generated 5 tokens\n41.5 tok/s\n").value(), std::vector<double>{41.5});
  EXPECT_EQ(RatesIn(R"([{"avg_ts": 7, "samples_ts": [0]}])").error().code, Code::kMeasurementImpossible);
  EXPECT_FALSE(RatesIn("nothing"));
}

std::string ReadData(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(std::string(BOLTBEAM_TEST_DATA) + "/lab/" + name).rdbuf();
  return text.str();
}

TEST(Import, LlamaBenchsJsonInBothForms) {
  LadderOptions options;
  options.alias = "there";
  for (const char* name : {"llama-bench.json", "llama-bench.jsonl"}) {
    const auto rows = ImportBench(ReadData(name), name, options);
    ASSERT_TRUE(rows) << rows.error().Message();
    ASSERT_FALSE(rows->empty());
    for (const Row& row : *rows) {
      EXPECT_EQ(row.alias, "there");
      EXPECT_EQ(row.engine, "llama.cpp");
      EXPECT_GT(row.generation_tps, 0);
      EXPECT_EQ(row.weight_bytes_per_token, 478268416);  // all tensors: the file is not here
    }
  }
  EXPECT_EQ(ImportBench("[]", "f", options).error().code, Code::kLabRow);
  EXPECT_EQ(ImportBench("| table |", "f", options).error().code, Code::kLabRow);
  EXPECT_EQ(ImportBench(R"([{"n_gen": 8, "model_filename": "m", "avg_ts": 0}])", "f", options).error().code,
            Code::kLabRow);
}

}  // namespace
}  // namespace boltbeam::lab
