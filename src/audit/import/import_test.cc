// Every file of tests/data/imports imports with the sums, rates and refusals that its SOURCES.md states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>

#include "audit/import/imported.h"
#include "audit/import/test_imports.h"

namespace boltbeam::imports {
namespace {

struct Expected {
  const char* file;
  RowKind kind;
  std::size_t rows;
  double calls, ns;
};

class Rows : public testing::TestWithParam<Expected> {};

TEST_P(Rows, HaveTheStatedSums) {
  const Imported imported = Good(GetParam().file);
  const Totals totals = TotalsOf(imported, GetParam().kind);
  EXPECT_EQ(totals.rows, GetParam().rows);
  EXPECT_EQ(totals.calls, GetParam().calls);
  EXPECT_NEAR(totals.ns, GetParam().ns, 0.5);
  EXPECT_EQ(totals.untimed, 0U);
}

constexpr RowKind kKernel = RowKind::kKernel, kCopy = RowKind::kCopy, kHost = RowKind::kHostCall;

INSTANTIATE_TEST_SUITE_P(
    Imports, Rows,
    testing::Values(Expected{"nsys/cuda_gpu_trace-2026.3.csv", kKernel, 4, 4, 27425},
                    Expected{"nsys/cuda_gpu_trace-2026.3.csv", kCopy, 12, 12, 6598425},
                    Expected{"nsys/cuda_gpu_trace-2025.3.csv", kKernel, 4, 4, 108448},
                    Expected{"nsys/cuda_gpu_trace-2025.3.csv", kCopy, 12, 12, 213024},
                    Expected{"nsys/cuda_gpu_kern_sum-2024.6-llama8b.csv", kKernel, 15, 679, 198511027},
                    Expected{"nsys/gpukernsum-2022.4-decode.csv", kKernel, 11, 660, 53641485},
                    Expected{"nsys/kernexecsum-2022.4-decode.csv", kKernel, 6, 374, 44438788},
                    Expected{"nsys/kern_sum-column-text-a100.txt", kKernel, 1, 1010, 1831281},
                    Expected{"nsys/kern_sum-column-text-a100.txt", kCopy, 2, 3, 2432 + 2336},
                    Expected{"nsys/nsys-2025.3-t4-excerpt.sqlite", kKernel, 20, 20, 2580421},
                    Expected{"nsys/nsys-2025.3-t4-excerpt.sqlite", kCopy, 6, 6, 22176},
                    Expected{"nsys/nsys-2026.1-rtx3080-tiny.sqlite", kKernel, 2, 2, 4129},
                    Expected{"nsys/tricky-preamble-cuda_gpu_trace.csv", kKernel, 4, 4, 108448},
                    Expected{"nsys/tricky-timeunit-us-cuda_gpu_trace.csv", kKernel, 4, 4, 108448},
                    Expected{"nsys/tricky-locale-de-kern_sum.csv", kKernel, 15, 679, 198511027},
                    Expected{"nsys/tricky-skipped-no-kernel-data.txt", kCopy, 2, 60, 76321 + 10656},
                    Expected{"nsys/tricky-kern_sum-truncated-name.txt", kKernel, 1, 45, 82112},
                    Expected{"ncu/details-csv-t4-thousands.csv", kKernel, 1, 1, 21058944},
                    Expected{"ncu/metrics-csv-gb10-na.csv", kKernel, 3, 3, 1619960},
                    Expected{"ncu/raw-wide-constructed.csv", kKernel, 3, 3, 2730350},
                    Expected{"ncu/tricky-ncu-locale-de.csv", kKernel, 3, 3, 1619960},
                    Expected{"rocprof/v1-results.csv", kKernel, 10, 10, 261124944},
                    Expected{"rocprof/v1-results.stats.csv", kKernel, 1, 10, 261124944},
                    Expected{"rocprof/v1-results.hip_stats.csv", kHost, 6, 52, 487363339},
                    Expected{"rocprof/v1-pmc-timestamp-results.csv", kKernel, 1, 1, 26326497},
                    Expected{"rocprof/v1-openmp-results.csv", kKernel, 4, 4, 69759},
                    Expected{"rocprof/v2-file-plugin.csv", kKernel, 3, 3, 78535224},
                    Expected{"rocprof/v2-hip-api-trace.csv", kHost, 3, 3, 34617},
                    Expected{"rocprof/v2-cli-plugin.txt", kKernel, 1, 1, 4397455488},
                    Expected{"rocprof/v3-kernel_trace-2025-stream.csv", kKernel, 8, 8, 93334},
                    Expected{"rocprof/v3-kernel_trace-agent-string.csv", kKernel, 9, 9, 96160},
                    Expected{"rocprof/v3-kernel_stats.csv", kKernel, 9, 17311, 95395329},
                    Expected{"rocprof/v3-hip_api_stats.csv", kHost, 17, 155, 308269675},
                    Expected{"rocprof/v3-memory_copy_trace.csv", kCopy, 2, 2, 1145680},
                    Expected{"rocprof/tricky-v3-kernel_trace-missing-end.csv", kKernel, 4, 4, 41360},
                    Expected{"chrome-trace/torch-h100-qwen1.5-0.5b.json", kKernel, 24, 24, 798972},
                    Expected{"chrome-trace/torch-h100-qwen1.5-0.5b.json", kCopy, 3, 3, 4193},
                    Expected{"chrome-trace/tricky-displayTimeUnit-ns-still-us.json", kKernel, 8, 8, 265000}),
    [](const testing::TestParamInfo<Expected>& one) {
      std::string name = one.param.file;
      std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name + "_" + std::to_string(one.index);
    });

struct ExpectedRate {
  const char* file;
  const char* test;
  double tok_s;
};

class Rates : public testing::TestWithParam<ExpectedRate> {};

TEST_P(Rates, HaveTheStatedNumbers) {
  const Imported imported = Good(GetParam().file);
  const auto near = [&](const Rate& rate) {
    return rate.test == GetParam().test && rate.tok_s && std::abs(*rate.tok_s - GetParam().tok_s) < 0.006;
  };
  EXPECT_TRUE(std::ranges::any_of(imported.rates, near)) << GetParam().file << " " << GetParam().test;
}

INSTANTIATE_TEST_SUITE_P(
    Imports, Rates,
    testing::Values(ExpectedRate{"llama-bench/batched-bench.md", "pp128 x 32", 1201.73},
                    ExpectedRate{"llama-bench/batched-bench.md", "tg128 @ d128 x 32", 465.40},
                    ExpectedRate{"llama-bench/batched-bench.md", "pp128+tg128 x 32", 670.96},
                    ExpectedRate{"llama-bench/batched-bench.jsonl", "pp128", 547.45},
                    ExpectedRate{"llama-bench/batched-bench.jsonl", "tg128 @ d128", 36.53},
                    ExpectedRate{"llama-bench/batched-bench.jsonl", "pp128 x 2", 605.77},
                    ExpectedRate{"llama-bench/batched-bench.jsonl", "tg128 @ d128 x 2", 23.05},
                    ExpectedRate{"llama-bench/llama-bench-2023.csv", "pp512", 2413.34},
                    ExpectedRate{"llama-bench/llama-bench-2023.csv", "tg128", 132.05},
                    ExpectedRate{"llama-bench/llama-bench-2023.json", "pp512", 2410.97},
                    ExpectedRate{"llama-bench/llama-bench-2023.json", "tg128", 130.97},
                    ExpectedRate{"llama-bench/llama-bench-2023.jsonl", "pp512", 2410.97},
                    ExpectedRate{"llama-bench/llama-bench-2023.jsonl", "tg128", 130.97},
                    ExpectedRate{"llama-bench/llama-bench-2023.md", "pp512", 2368.80},
                    ExpectedRate{"llama-bench/llama-bench-2023.md", "tg128", 131.42},
                    ExpectedRate{"llama-bench/llama-bench-2024fields-ik_llama.json", "pp512", 8.204},
                    ExpectedRate{"llama-bench/llama-bench-2024fields-ik_llama.json", "tg128", 2.968},
                    ExpectedRate{"llama-bench/tricky-llama-bench-ik-tg-at-pp.md", "tg64 @ d128", 34.04},
                    ExpectedRate{"llama-bench/tricky-llama-bench-ik-tg-at-pp.md", "tg64 @ d8192", 25.58},
                    ExpectedRate{"llama-bench/tricky-llama-bench-ik-tg-at-pp.md", "tg64 @ d8192", 26.12},
                    ExpectedRate{"llamacpp/llama-bench.csv", "tg16 @ d512", 29.019},
                    ExpectedRate{"llamacpp/llama-bench.json", "pp64", 149.237},
                    ExpectedRate{"llamacpp/llama-bench.md", "tg16 @ d512", 33.81},
                    ExpectedRate{"llama-perf/llama-cli-2023-print_timings.txt", "pp271", 43.05},
                    ExpectedRate{"llama-perf/llama-cli-2023-print_timings.txt", "tg510", 4.43},
                    ExpectedRate{"llama-perf/llama-cli-2024-print_timings.txt", "pp62", 53.37},
                    ExpectedRate{"llama-perf/llama-cli-2024-print_timings.txt", "tg342", 48.57},
                    ExpectedRate{"llama-perf/llama-cli-2025-perf_context.txt", "pp49", 52.85},
                    ExpectedRate{"llama-perf/llama-cli-2025-perf_context.txt", "tg178", 12.64},
                    ExpectedRate{"llama-perf/llama-server-2025-print_timing.txt", "pp51", 55.73},
                    ExpectedRate{"llama-perf/llama-server-2025-print_timing.txt", "tg275", 11.94},
                    ExpectedRate{"llama-perf/llama-server-2025-draft.txt", "tg200", 20.33},
                    ExpectedRate{"llama-perf/llama-server-2026-task-prefixed.txt", "pp5858", 1502.58},
                    ExpectedRate{"llama-perf/llama-server-2026-task-prefixed.txt", "tg198", 65.77},
                    ExpectedRate{"llama-perf/llama-server-timings.json", "pp463", 7384.02},
                    ExpectedRate{"llama-perf/llama-server-timings.json", "tg20", 196.04},
                    ExpectedRate{"llama-perf/tricky-llama-embedding-inf.txt", "pp9", 1255.06},
                    ExpectedRate{"ollama/generate-final-stream-object.json", "tg259", 61.19},
                    ExpectedRate{"ollama/generate-final-stream-object.json", "pp26", 199.88},
                    ExpectedRate{"ollama/generate-nonstream.json", "tg290", 61.58},
                    ExpectedRate{"ollama/generate-nonstream.json", "pp26", 79.77},
                    ExpectedRate{"ollama/verbose-2025-short.txt", "pp17", 17.76},
                    ExpectedRate{"ollama/verbose-2025-short.txt", "tg180", 129.92},
                    ExpectedRate{"ollama/tricky-verbose-minutes-bulleted.txt", "tg1248", 13.14},
                    ExpectedRate{"ollama/tricky-verbose-minutes-bulleted.txt", "pp66", 219.01},
                    ExpectedRate{"ollama/tricky-generate-cached-prompt.json", "tg63", 66.04},
                    ExpectedRate{"ollama/tricky-generate-stream.jsonl", "tg259", 61.19},
                    ExpectedRate{"vllm/bench-serve-qps10.json", "output of all requests", 2249.25},
                    ExpectedRate{"vllm/bench-serve-qps10.json", "tg of one stream", 73.65},
                    ExpectedRate{"vllm/bench-serve-qps10.txt", "output of all requests", 2249.25},
                    ExpectedRate{"vllm/tricky-bench-serve-rate-inf.json", "output of all requests", 11481.02},
                    ExpectedRate{"mlx/mlx_lm-generate-3b.txt", "pp41", 193.201},
                    ExpectedRate{"mlx/mlx_lm-generate-3b.txt", "tg100", 90.310},
                    ExpectedRate{"mlx/mlx_lm-generate-qwen2.5-3b.txt", "tg100", 84.512},
                    ExpectedRate{"mlx/mlx_lm-benchmark.txt", "pp2048", 2902.166},
                    ExpectedRate{"mlx/mlx_lm-benchmark.txt", "tg128", 205.099},
                    ExpectedRate{"mlx/tricky-mlx_vlm-generate-no-unit-prompt-echo.txt", "pp14", 61.059},
                    ExpectedRate{"mlx/tricky-mlx_vlm-generate-no-unit-prompt-echo.txt", "tg100", 89.100},
                    ExpectedRate{"lmstudio/v0-chat-completion.json", "tg53", 51.437},
                    ExpectedRate{"lmstudio/v1-chat.json", "tg50", 51.038}),
    [](const testing::TestParamInfo<ExpectedRate>& one) {
      std::string name = one.param.file;
      std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name + "_" + std::to_string(one.index);
    });

struct Bad {
  const char* file;
  Code code;
  const char* says;   // in the message
  const char* where;  // in its beginning
};

class Refusals : public testing::TestWithParam<Bad> {};

TEST_P(Refusals, SayWhereAndWhy) {
  const auto imported = Load(GetParam().file);
  ASSERT_FALSE(imported) << GetParam().file;
  EXPECT_EQ(imported.error().code, GetParam().code);
  EXPECT_NE(imported.error().Message().find(GetParam().says), std::string::npos) << imported.error().Message();
  EXPECT_TRUE(imported.error().where.ends_with(GetParam().where)) << imported.error().where;
}

INSTANTIATE_TEST_SUITE_P(
    Imports, Refusals,
    testing::Values(
        Bad{"nsys/tricky-skipped-only.csv", Code::kImportEmpty, "no table", ".csv"},
        Bad{"ncu/tricky-ncu-permission.txt", Code::kImportEmpty, "ERR_NVGPUCTRPERM: no kernels were profiled",
            ".txt:2"},
        Bad{"rocprof/tricky-v2-file-plugin-start-zero.csv", Code::kImportEmpty, "no valid start", ".csv:3"},
        Bad{"metal/toc-excerpt-m1.xml", Code::kImportEmpty,
            "a table of contents (device MacBook Air, duration 0.756190 s)", ".xml"},
        Bad{"metal/tricky-metal-shader-profiler-intervals-no-rows.xml", Code::kImportEmpty,
            "Shader Timeline was disabled", ".xml"},
        Bad{"metal/tricky-metal-empty-query-result.xml", Code::kImportEmpty, "no table in the export", ".xml"},
        Bad{"metal/tricky-metal-git-lfs-pointer.xml", Code::kImportUnknown, "a Git LFS pointer", ".xml"},
        Bad{"metal/tricky-metal-dangling-refs.xml", Code::kImportDamaged, "refers to id ", ".xml:3"},
        Bad{"chrome-trace/tricky-truncated.json", Code::kImportDamaged, "the JSON ends early, at byte 15000", ".json"},
        Bad{"llama-bench/tricky-llama-bench-2023-header-shorter-than-rows.csv", Code::kImportDamaged,
            "27 values under 26 names", ".csv:2"}),
    [](const testing::TestParamInfo<Bad>& one) {
      std::string name = one.param.file;
      std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace boltbeam::imports
