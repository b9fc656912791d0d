#include "measure/bench.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "measure/fake_engine.h"
#include "measure/statistics.h"
#include "report/bench_format.h"
#include "test_model.h"

namespace boltbeam::measure {
namespace {

std::vector<std::uint64_t> Ranges(std::string_view text) { return ParseRanges("-p", text).value(); }

TEST(RangesTest, ListsAndRangesAsLlamaBenchReadsThem) {
  using V = std::vector<std::uint64_t>;
  EXPECT_EQ(Ranges("512"), V{512});
  EXPECT_EQ(Ranges("1,2,4"), (V{1, 2, 4}));
  EXPECT_EQ(Ranges("1-4"), (V{1, 2, 3, 4}));
  EXPECT_EQ(Ranges("0-512+128"), (V{0, 128, 256, 384, 512}));
  EXPECT_EQ(Ranges("16-128*2"), (V{16, 32, 64, 128}));
  EXPECT_EQ(Ranges("1-10+4,7"), (V{1, 5, 9, 7}));
  EXPECT_EQ(Ranges("3-3"), V{3});
}

TEST(RangesTest, NonsenseIsRefusedByName) {
  for (const char* text : {"", ",", "1,", "a", "-1", "4-1", "1-", "1-4+", "1-4+0", "0-4*2", "1-4*1", "1-4/2", "1 2",
                           "1-4+2x", "99999999999999999999", "0-16777216"}) {
    const auto values = ParseRanges("-d", text);
    ASSERT_FALSE(values) << text;
    EXPECT_EQ(values.error().code, Code::kUsage);
    EXPECT_EQ(values.error().where, "-d");
  }
  EXPECT_TRUE(ParsePromptThenGenerated("512,128"));
  for (const char* text : {"512", "512,", "512;128", "512,128,1", ""}) EXPECT_FALSE(ParsePromptThenGenerated(text));
}

TEST(BenchTestsTest, OrderIsThreadsDepthsThenKinds) {
  BenchRequest request;
  request.prompts = {0, 64};
  request.generated = {16};
  request.depths = {0, 512};
  request.threads = {1, 2};
  request.prompt_then_generated = {{8, 4}};
  const std::vector<BenchTest> tests = BuildBenchTests(request);
  ASSERT_EQ(tests.size(), 12U);  // a prompt of 0 tokens is no test
  EXPECT_EQ(tests[0].n_prompt, 64U);
  EXPECT_EQ(tests[1].n_gen, 16U);
  EXPECT_EQ(tests[2].Positions(), 12U);
  EXPECT_EQ(tests[3].n_depth, 512U);
  EXPECT_EQ(tests[6].threads, 2U);
}

class BenchRun : public testing::Test {
 protected:
  model::TestModel file_{"llama"};
  FakeEngine engine_{model::Model::Load(file_.Write()).value()};
  FakeSession session_;
  BenchRequest request_;
};

TEST_F(BenchRun, TheContextIsComputedOnceAndRestored) {
  session_.token_ns = 10'000;
  request_.repetitions = 3;
  const auto samples = RunBenchTest(engine_, session_, {2, 0, 4, 100}, request_);
  ASSERT_TRUE(samples) << samples.error().Message();
  EXPECT_EQ(samples->ns.size(), 3U);
  EXPECT_EQ(session_.prompted, 100U);
  EXPECT_EQ(session_.decoded, 1U + 3 * 4);  // one to warm up
  EXPECT_EQ(session_.depth(), 100U);
  for (const double rate : samples->TokensPerSecond()) {
    EXPECT_GT(rate, 0);
    EXPECT_LE(rate, 1e5);
  }
  // A longer context extends this one, a shorter one is a part of it.
  const std::vector<std::int32_t> context = session_.context;
  ASSERT_TRUE(RunBenchTest(engine_, session_, {2, 0, 1, 150}, request_));
  EXPECT_EQ(session_.prompted, 150U);
  EXPECT_TRUE(std::equal(context.begin(), context.end(), session_.context.begin()));
  ASSERT_TRUE(RunBenchTest(engine_, session_, {2, 8, 0, 50}, request_));
  EXPECT_EQ(session_.prompted, 150U + 4 * 8);
}

TEST_F(BenchRun, TokensAreValidAndRepeatable) {
  const std::vector<std::int32_t> tokens = RandomTokens(320, 1000, 9);
  for (const std::int32_t token : tokens) {
    ASSERT_GE(token, 0);
    ASSERT_LT(token, 320);
  }
  EXPECT_EQ(RandomTokens(320, 500, 9), std::vector<std::int32_t>(tokens.begin(), tokens.begin() + 500));
}

TEST_F(BenchRun, StopsWhenToldTo) {
  BenchHooks hooks;
  hooks.cancelled = [] { return true; };
  EXPECT_EQ(RunBenchTest(engine_, session_, {2, 0, 4, 0}, request_, hooks).error().code, Code::kInterrupted);
}

TEST_F(BenchRun, SparseFilesAreRefused) {
  EXPECT_EQ(RefuseSparse(engine_.model()).error().code, Code::kSparseModel);  // the test's file holds shapes only
}

// The formats.

BenchSamples SomeSamples() { return {{2, 0, 16, 512}, "2026-11-29T13:06:58Z", {400'000'000, 500'000'000}}; }

report::BenchSubject SomeSubject() {
  report::BenchSubject subject;
  subject.cpu_info = "AMD EPYC";
  subject.model_filename = "models/a \"b\".gguf";
  subject.model_type = "qwen3 0.6B Q4_K - Medium";
  subject.model_bytes = 478268416;
  subject.model_parameters = 751632384;
  subject.batch = 64;
  subject.threads = 2;
  return subject;
}

std::string Written(const std::string& name, int rows) {
  report::BenchFormat format(name);
  std::string text = format.Begin();
  for (int row = 0; row < rows; ++row) text += format.Row(SomeSubject(), SomeSamples());
  return text + format.End();
}

// llama-bench's own fields in its own order, from its output (build 11669).
constexpr const char* kFields =
    "build_commit,build_number,cpu_info,gpu_info,backends,model_filename,model_type,model_size,model_n_params,n_batch,"
    "n_"
    "ubatch,n_threads,cpu_mask,cpu_strict,poll,type_k,type_v,n_gpu_layers,n_cpu_moe,split_mode,main_gpu,no_kv_offload,"
    "flash_attn,devices,tensor_split,tensor_buft_overrides,load_mode,lazy_mode,embeddings,no_op_offload,no_host,repack,"
    "fit_target,fit_min_ctx,n_prompt,n_gen,n_depth,test_time,avg_ns,stddev_ns,avg_ts,stddev_ts";

TEST(BenchFormatTest, JsonIsValidAfterAnyNumberOfRows) {
  for (int rows = 0; rows < 3; ++rows) {
    const nlohmann::json document = nlohmann::json::parse(Written("json", rows), nullptr, false);
    ASSERT_TRUE(document.is_array()) << rows;
    EXPECT_EQ(document.size(), static_cast<std::size_t>(rows));
  }
}

TEST(BenchFormatTest, JsonHasLlamaBenchsFields) {
  const nlohmann::ordered_json row = nlohmann::ordered_json::parse(Written("json", 1))[0];
  std::string names;
  for (const auto& [name, value] : row.items()) names += (names.empty() ? "" : ",") + name;
  EXPECT_EQ(names, std::string(kFields) + ",samples_ns,samples_ts");
  EXPECT_EQ(row["model_filename"], "models/a \"b\".gguf");
  EXPECT_EQ(row["avg_ns"], 450'000'000);
  EXPECT_EQ(row["stddev_ns"], 70710678);
  EXPECT_DOUBLE_EQ(row["avg_ts"].get<double>(), 36);
  EXPECT_EQ(row["samples_ns"], (std::vector<std::uint64_t>{400'000'000, 500'000'000}));
  EXPECT_EQ(row["samples_ts"], (std::vector<double>{40, 32}));
  EXPECT_TRUE(row["no_kv_offload"].is_boolean());
  EXPECT_TRUE(row["n_depth"].is_number_integer());
}

TEST(BenchFormatTest, JsonLinesAndCsv) {
  std::istringstream lines(Written("jsonl", 2));
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count) EXPECT_EQ(nlohmann::json::parse(line)["n_gen"], 16);
  EXPECT_EQ(count, 2);
  const std::string csv = Written("csv", 1);
  EXPECT_EQ(csv.substr(0, csv.find('\n')), kFields);
  EXPECT_NE(csv.find("\"models/a \"\"b\"\".gguf\""), std::string::npos);
  EXPECT_NE(csv.find("\"36.000000\""), std::string::npos);
}

TEST(BenchFormatTest, MarkdownLooksLikeLlamaBenchs) {
  const std::string expected =
      "| model                          |       size |     params | backend    | threads |            test |           "
      " "
      "      t/s |\n"
      "| ------------------------------ | ---------: | ---------: | ---------- | ------: | --------------: | "
      "-------------------: |\n"
      "| qwen3 0.6B Q4_K - Medium       | 456.11 MiB |   751.63 M | CPU        |       2 |     tg16 @ d512 |         "
      "36.00 ± 5.66 |\n";
  EXPECT_EQ(Written("md", 1).substr(0, expected.size()), expected);
}

}  // namespace
}  // namespace boltbeam::measure
