#include "lab/ladder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "lab/fit.h"
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
  FakeRunner(std::vector<std::string>& log, std::string name, std::string version, Settings settings)
      : log_(log), name_(std::move(name)), version_(std::move(version)), settings_(std::move(settings)) {}
  std::string name() const override { return name_; }
  std::string version() const override { return version_; }
  Result<Settings> SettingsFor(const ModelFacts&) override { return settings_; }
  Result<Visit> Run(const ModelFacts& model, const VisitOptions&) override {
    log_.push_back(name_ + " " + model.name);
    if (model.name == "unstable") return Fail(Code::kMeasurementUnstable, "fake", "a storm");
    if (model.name == "broken") return Fail(Code::kGgufMagic, "fake", "no file");
    return Visit{{0.1, 0.2, 0.3}, {50}, 0, 2};
  }

 private:
  std::vector<std::string>& log_;
  std::string name_, version_;
  Settings settings_;
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
  std::string version = "1";
  Settings settings{"native", "default", 0, ""};
  VisitOptions visit{.threads = 2};

  void Climb(const std::vector<ModelFacts>& models, std::uint64_t passes, std::initializer_list<const char*> programs) {
    std::vector<std::unique_ptr<Runner>> runners;
    for (const char* program : programs)
      runners.push_back(std::make_unique<FakeRunner>(log, program, version, settings));
    LadderOptions options;
    options.alias = "here";
    options.device = "a chip";
    options.passes = passes;
    options.visit = visit;
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

TEST(Ladder, ARowOfOtherSettingsIsNotThisVisit) {
  const auto differs = [](auto change, const std::string& said) {
    Climber run;
    run.Climb(Models({"s"}), 1, {"a"});
    run.log.clear();
    run.Climb(Models({"s"}), 1, {"a"});
    EXPECT_TRUE(run.log.empty()) << "the same settings";
    EXPECT_TRUE(run.notes.empty());
    change(run);
    run.Climb(Models({"s"}), 1, {"a"});
    EXPECT_EQ(run.log, std::vector<std::string>{"a s"}) << said;
    ASSERT_EQ(run.notes.size(), 1U) << said;
    EXPECT_EQ(run.notes[0], "1 earlier row of other settings, visited again: " + said);
  };
  differs([](Climber& run) { run.version = "2"; }, "version 1 instead of 2");
  differs([](Climber& run) { run.visit.threads = 1; }, "threads 2 instead of 1");
  differs([](Climber& run) { run.settings.isa = "avx2"; }, "isa native instead of avx2");
  differs([](Climber& run) { run.settings.plan = "fast:1234"; }, "plan default instead of fast:1234");
  differs([](Climber& run) { run.settings.tokens = 32; }, "tokens 0 instead of 32");
  differs([](Climber& run) { run.settings.command = "x {}"; }, "command unknown instead of x {}");
  differs([](Climber& run) { run.visit.depth = 512; }, "depth 0 instead of 512");
  differs([](Climber& run) { run.visit.cache.keys = formats::FindFormat("Q8_0"); }, "cache_k f16 instead of q8_0");
  differs(
      [](Climber& run) {
        run.visit.cache.values = formats::FindFormat("Q8_0");
        run.settings.isa = "avx2";
      },
      "isa native instead of avx2, cache_v f16 instead of q8_0");
}

TEST(Ladder, RowsCountTheCacheInItsForm) {
  ModelFacts model = ReadModelFacts(model::Qwen3EightB().Write()).value();
  Climber run;
  run.visit.depth = 512;
  run.Climb({model}, 1, {"a"});
  run.visit.cache = {formats::FindFormat("Q8_0"), formats::FindFormat("Q8_0")};
  run.Climb({model}, 1, {"a"});
  ASSERT_EQ(run.rows.size(), 2U);
  EXPECT_EQ(run.rows[0].kv_bytes_per_token, 75497472);  // docs/formulas.md has both
  EXPECT_EQ(run.rows[1].kv_bytes_per_token, 40108032);
  EXPECT_EQ(run.rows[0].cache_k, "f16");
  EXPECT_EQ(run.rows[1].cache_v, "q8_0");
  EXPECT_EQ(run.rows[0].plan, "default");
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

TEST(Ladder, NothingMeasuredIsARefusedMeasurement) {
  Climber run;
  run.Climb(Models({"unstable"}), 3, {"a"});
  ASSERT_FALSE(run.state);
  EXPECT_EQ(run.state.error().code, Code::kMeasurementUnstable);
  EXPECT_NE(run.state.error().found.find("all of 3 visits were left out"), std::string::npos);
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
      MakeCommandRunner({"echo", "9", "f={}; [ \"$f\" = \"a folder/it's.gguf\" ] && echo 12.5 tok/s", {}}, &bandwidth);
  const auto visit = runner->Run(model, {});
  ASSERT_TRUE(visit) << visit.error().Message();
  EXPECT_EQ(visit->token_s, std::vector<double>{0.08});
  EXPECT_EQ(visit->streamed_gb_s, std::vector<double>{50});
  EXPECT_EQ(bandwidth.reads, 18U);
  EXPECT_TRUE(MakeCommandRunner({"echo", "", "echo 3", {}}, nullptr)->Run(model, {})->streamed_gb_s.empty());
  EXPECT_FALSE(MakeCommandRunner({"false", "", "false", {}}, nullptr)->Run(model, {}));
}

TEST(Runners, RatesOfEveryRepetition) {
  EXPECT_EQ(RatesIn(R"([{"avg_ts": 7, "samples_ts": [8, 10]}])").value(), (std::vector<double>{8, 10}));
  EXPECT_EQ(RatesIn("generated 5 tokens\n41.5 tok/s\n").value(), std::vector<double>{41.5});
  EXPECT_EQ(RatesIn(R"([{"avg_ts": 7, "samples_ts": [0]}])").error().code, Code::kMeasurementImpossible);
  EXPECT_FALSE(RatesIn("nothing"));
}

TEST(Runners, TheBuildOfALlamaBench) {
  EXPECT_EQ(LlamaBuild("load_backend: loaded\nversion: 0.7.0 (build 11669, commit Debian)\nbuilt with GNU"), "11669");
  EXPECT_EQ(LlamaBuild("version: 4567 (abcdef0)\nbuilt with cc"), "4567");
  EXPECT_EQ(LlamaBuild("error: invalid parameter for argument: --version"), "");
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
  const Row row = ImportBench(ReadData("llama-bench.json"), "f", options)->front();
  EXPECT_EQ(row.device, "AMD EPYC");
  EXPECT_EQ(row.setup, "CPU, fa -1");
  EXPECT_EQ(row.cache_k, "f16");
  EXPECT_EQ(row.experts, 0U);
  EXPECT_FALSE(row.token_s.empty());
  EXPECT_EQ(ImportBench("[]", "f", options).error().code, Code::kLabRow);
  EXPECT_EQ(ImportBench("| table |", "f", options).error().code, Code::kLabRow);
  EXPECT_EQ(ImportBench(R"([{"n_gen": 8, "model_filename": "m", "avg_ts": 0}])", "f", options).error().code,
            Code::kLabRow);
}

TEST(Import, WhatComputedAndExpertsAreRead) {
  const auto imported = [](const std::string& more) {
    const std::string test = R"({"n_gen": 8, "n_prompt": 0, "avg_ts": 20, "build_number": 9, "cpu_info": "a CPU", )"
                             R"("model_filename": "m.gguf", "model_size": 1000000000, )" +
                             more + "}";
    const auto rows = ImportBench(test, "f", {});
    EXPECT_TRUE(rows) << rows.error().Message();
    return rows->front();
  };
  const Row gpu = imported(R"("gpu_info": "a GPU", "backends": "CUDA", "n_gpu_layers": 99, "flash_attn": true)");
  EXPECT_EQ(gpu.device, "a GPU");
  EXPECT_EQ(gpu.setup, "CUDA, ngl 99, fa true");
  const Row none = imported(R"("gpu_info": "a GPU", "backends": "CUDA", "n_gpu_layers": 0)");
  EXPECT_EQ(none.device, "a CPU");
  EXPECT_EQ(none.setup, "CPU");
  EXPECT_EQ(imported(R"("gpu_info": "a GPU", "backends": "CPU", "n_gpu_layers": -1)").device, "a CPU");
  const Row older = imported(R"("gpu_info": "a GPU", "cuda": true, "n_gpu_layers": 20)");
  EXPECT_EQ(older.setup, "GPU, ngl 20");
  EXPECT_EQ(older.device, "a GPU");
  EXPECT_EQ(imported(R"("model_type": "llama 8x7B Q4_0")").experts, 8U);
  EXPECT_EQ(imported(R"("type_k": "q8_0", "type_v": "f16")").ShownCache(), "q8_0/f16");
  // Each is a line of its own: none is mixed with another.
  std::vector<Row> rows;
  for (const double size : {1e9, 2e9, 3e9, 4e9}) {
    for (Row row : {gpu, none, older}) {
      row.model = std::to_string(size);
      row.weight_bytes_per_token = size;
      row.generation_tps = 1e11 / size;
      rows.push_back(row);
    }
  }
  EXPECT_EQ(FitMachines(rows, {})->size(), 3U);
}

TEST(Import, ExpertsByTheNameOfAKind) {
  EXPECT_EQ(ExpertsInName("llama 8x7B Q4_0"), 8U);
  EXPECT_EQ(ExpertsInName("deepseek2 256x21B"), 256U);
  EXPECT_EQ(ExpertsInName("qwen3moe 30B.A3B Q4_K - Medium"), kUnknownExperts);
  EXPECT_EQ(ExpertsInName("olmoe A1.7B"), kUnknownExperts);
  EXPECT_EQ(ExpertsInName("qwen3 0.6B Q4_K - Medium"), 0U);
  EXPECT_EQ(ExpertsInName("mixed x 7"), 0U);
  EXPECT_EQ(ExpertsInName(""), 0U);
  EXPECT_EQ(MixtureName(kUnknownExperts), "a mixture of experts");
}

TEST(Import, ARowThatIsThereAlreadyIsNotTakenAgain) {
  const std::vector<Row> rows = ImportBench(ReadData("llama-bench.json"), "f", {}).value();
  std::vector<Row> twice = rows;
  twice.insert(twice.end(), rows.begin(), rows.end());
  const std::vector<Row> first = NewRows(twice, {});
  EXPECT_EQ(first.size(), rows.size());
  EXPECT_TRUE(NewRows(rows, first).empty());
  // The same model measured again later is another pass.
  std::vector<Row> later = {rows.front()};
  later[0].date = "2026-12-01T00:00:00Z";
  ASSERT_EQ(NewRows(later, first).size(), 1U);
  EXPECT_EQ(NewRows(later, first)[0].pass, 2U);
}

}  // namespace
}  // namespace boltbeam::lab
