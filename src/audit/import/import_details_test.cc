// What imports of tests/data/imports say beside their sums: names, devices, notes, doubts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "audit/import/imported.h"
#include "audit/import/numbers.h"
#include "audit/import/operation.h"
#include "audit/import/test_imports.h"

namespace boltbeam::imports {
namespace {

bool Notes(const Imported& imported, std::string_view text) {
  return std::ranges::any_of(imported.notes,
                             [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

std::optional<double> FactOf(const Imported& imported, std::string_view name) {
  const auto found = std::ranges::find(imported.facts, name, &Fact::name);
  return found == imported.facts.end() ? std::nullopt : found->value;
}

std::string TextOf(const Imported& imported, std::string_view name) {
  const auto found = std::ranges::find(imported.facts, name, &Fact::name);
  return found == imported.facts.end() ? "" : found->text;
}

TEST(Imports, NsysTraceKeepsNamesAndSizes) {
  const Imported imported = Good("nsys/cuda_gpu_trace-2026.3.csv");
  const auto kernel = std::ranges::find(imported.rows, RowKind::kKernel, &Row::kind);
  EXPECT_EQ(kernel->name, "vernier::bench::demo::<unnamed>::saxpyKernel(float, const float *, float *, unsigned long)");
  EXPECT_NEAR(imported.rows.front().bytes.value_or(0), 4.194e6, 1);
  EXPECT_EQ(imported.rows.front().line, 2U);
}

TEST(Imports, NsysSummaryIsNoTrace) {
  const Imported imported = Good("nsys/cuda_gpu_kern_sum-2024.6-llama8b.csv");
  EXPECT_FALSE(TimelineOf(imported, {}));
  EXPECT_TRUE(Notes(imported, "no start times"));
  EXPECT_EQ(imported.rows.front().name, "flash_attention_prefill_f16");
  EXPECT_EQ(imported.rows.front().total_ns, 99385786);
  EXPECT_TRUE(Notes(Good("nsys/gpukernsum-2022.4-decode.csv"), "59.6 %"));
}

TEST(Imports, NsysDatabaseNamesAndDevice) {
  const Imported imported = Good("nsys/nsys-2025.3-t4-excerpt.sqlite");
  EXPECT_EQ(TotalsOf(imported, RowKind::kKernel).names, 10U);
  EXPECT_EQ(TextOf(imported, "device"), "Tesla T4");
  EXPECT_EQ(FactOf(imported, "sm_count"), 40);
  EXPECT_NEAR(FactOf(imported, "published_bandwidth_gb_s").value_or(0), 320.064, 1e-9);
  EXPECT_EQ(FactOf(imported, "memory_bytes"), 15828320256);
  double start = 1e300, end = 0, bytes = 0, gemv = 0;
  for (const Row& row : imported.rows) {
    if (row.kind == RowKind::kCopy) bytes += row.bytes.value_or(0);
    if (row.kind != RowKind::kKernel) continue;
    start = std::min(start, *row.start_ns);
    end = std::max(end, *row.start_ns + *row.total_ns);
    if (row.name.find("gemv2T_kernel_val") != std::string::npos) gemv += *row.total_ns;
  }
  EXPECT_EQ(start, 15057495);
  EXPECT_EQ(end, 17817912);
  EXPECT_EQ(bytes, 196632);
  EXPECT_EQ(gemv, 2434185);
  EXPECT_NE(imported.version.find("3.20.2"), std::string::npos);
  EXPECT_EQ(FactOf(Good("nsys/nsys-2026.1-rtx3080-tiny.sqlite"), "sm_count"), 68);
}

TEST(Imports, MissingKernelsAreNoZeroTime) {
  const Imported none = Good("nsys/tricky-nsys-no-kernel-table.sqlite");
  EXPECT_EQ(TotalsOf(none, RowKind::kKernel).rows, 0U);
  EXPECT_TRUE(Notes(none, "no kernel activity in this export (table CUPTI_ACTIVITY_KIND_KERNEL missing)"));
  const Imported skipped = Good("nsys/tricky-skipped-no-kernel-data.txt");
  EXPECT_TRUE(Notes(skipped, "does not contain CUDA kernel data"));
  EXPECT_TRUE(Notes(skipped, "--cuda-graph-trace=node"));
  const auto launch = std::ranges::find(skipped.rows, std::string("cudaGraphLaunch_v10000"), &Row::name);
  ASSERT_NE(launch, skipped.rows.end());
  EXPECT_EQ(launch->calls, 10);
  EXPECT_EQ(launch->kind, RowKind::kHostCall);
}

TEST(Imports, CutTextIsSaid) {
  const Imported api = Good("nsys/tricky-cuda_api_sum-ellipsis.csv");
  EXPECT_EQ(TotalsOf(api, RowKind::kHostCall).rows, 11U);
  ASSERT_EQ(api.refused.size(), 1U);
  EXPECT_EQ(api.refused.front().line, 13U);
  EXPECT_TRUE(Notes(api, "the host's time"));
  EXPECT_TRUE(Good("nsys/tricky-kern_sum-truncated-name.txt").rows.front().name_cut);
}

TEST(Imports, NsightComputeMetrics) {
  const Imported details = Good("ncu/details-csv-t4-thousands.csv");
  EXPECT_EQ(FactOf(details, "kernel 0: DRAM Throughput %"), 61.84);
  EXPECT_EQ(FactOf(details, "kernel 0: Achieved Occupancy %"), 96.26);
  EXPECT_EQ(FactOf(details, "kernel 0: Registers Per Thread register/thread"), 32);
  EXPECT_TRUE(Notes(details, "1 rows are rules"));
  const Imported metrics = Good("ncu/metrics-csv-gb10-na.csv");
  EXPECT_EQ(TextOf(metrics, "kernel 0: dram__throughput.avg.pct_of_peak_sustained_elapsed"),
            "unsupported on this chip");
  const Imported wide = Good("ncu/raw-wide-constructed.csv");
  EXPECT_NEAR(wide.rows[0].bytes.value_or(0), 16.78e6 + 524.29e3, 1);
}

TEST(Imports, RocprofTimes) {
  const auto timeline = [](const std::string& file) {
    const Imported imported = Good(file);
    EXPECT_EQ(GroupsOf(imported, RowKind::kKernel).size(), 1U);
    return TimelineOf(imported, imported.rows.front().group);
  };
  const auto stream = timeline("rocprof/v3-kernel_trace-2025-stream.csv");
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->span_ns, 431632);
  EXPECT_EQ(stream->overlap_ns, 0);
  const auto agents = timeline("rocprof/v3-kernel_trace-agent-string.csv");
  ASSERT_TRUE(agents);
  EXPECT_EQ(agents->span_ns, 144400);
  const Imported cut = Good("rocprof/tricky-v3-kernel_trace-missing-end.csv");
  ASSERT_EQ(cut.refused.size(), 3U);
  EXPECT_EQ(cut.refused[0].line, 3U);
  EXPECT_EQ(cut.refused[1].line, 6U);
  EXPECT_EQ(cut.refused[2].line, 8U);
  EXPECT_NE(Good("rocprof/v2-cli-plugin.txt").rows.front().doubt.find("not believable"), std::string::npos);
  const Imported calls = Good("rocprof/v2-cli-plugin-hip-trace.txt");
  EXPECT_EQ(TotalsOf(calls, RowKind::kKernel).rows, 0U);
  EXPECT_GE(TotalsOf(calls, RowKind::kHostCall).rows, 10U);
  EXPECT_NEAR(Good("rocprof/v1-pmc-timestamp-results.csv").rows.front().bytes.value_or(0), 9429.1875 * 1024, 1);
  EXPECT_TRUE(Notes(Good("rocprof/v3-kernel_stats.csv"), "46.39 %"));
  EXPECT_EQ(Good("rocprof/v1-openmp-results.csv").rows.front().group, "device 2, process 3495164");
}

Imported Read(const std::string& text) {
  auto imported = ImportText("two", text);
  EXPECT_TRUE(imported) << (imported ? "" : imported.error().Message());
  return imported ? std::move(*imported) : Imported{};
}

// Two devices at once are no overlap of either, and their times are no sum.
void ExpectTwo(const Imported& imported, const std::string& first, const std::string& second) {
  const std::vector<std::string> groups = GroupsOf(imported, RowKind::kKernel);
  ASSERT_EQ(groups, (std::vector<std::string>{first, second}));
  for (const std::string& group : groups) {
    EXPECT_EQ(TotalsOf(imported, RowKind::kKernel, group).rows, 1U) << group;
    EXPECT_EQ(TotalsOf(imported, RowKind::kKernel, group).ns, 1000) << group;
    const auto timeline = TimelineOf(imported, group);
    ASSERT_TRUE(timeline) << group;
    EXPECT_EQ(timeline->overlap_ns, 0) << group;
    EXPECT_EQ(timeline->span_ns, 1000) << group;
  }
}

TEST(Imports, DevicesAndProcessesStayApart) {
  const std::string event = R"({"ph":"X","cat":"kernel","name":"k","ts":5,"dur":1,)";
  ExpectTwo(Read("[" + event + R"("pid":0,"tid":7,"args":{"device":0}},)" + event +
                 R"("pid":1,"tid":7,"args":{"device":1}}])"),
            "device 0", "device 1");
  ExpectTwo(Read("[" + event + R"("pid":31,"tid":1},)" + event + R"("pid":32,"tid":1}])"), "process 31", "process 32");
  ExpectTwo(Read("\"Kind\",\"Agent_Id\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\"\n"
                 "\"KERNEL_DISPATCH\",\"Agent 4\",\"k\",5000,6000\n\"KERNEL_DISPATCH\",\"Agent 5\",\"k\",5000,6000\n"),
            "Agent 4", "Agent 5");
  const auto tool = [](int pid) {
    return R"({"metadata":{"pid":)" + std::to_string(pid) +
           R"(},"kernel_symbols":[{"kernel_id":1,"formatted_kernel_name":"k"}],"buffer_records":{"kernel_dispatch":)"
           R"([{"start_timestamp":5000,"end_timestamp":6000,"dispatch_info":{"kernel_id":1,"agent_id":{"handle":3}}}]}})";
  };
  ExpectTwo(Read("{\"rocprofiler-sdk-tool\":[" + tool(8) + "," + tool(9) + "]}"), "device 3, process 8",
            "device 3, process 9");
  const std::string head =
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"Metric Name\",\"Metric Unit\","
      "\"Metric Value\"\n";
  const auto launch = [](int id, int device) {
    return "\"" + std::to_string(id) + "\",\"9\",\"k\",\"(32, 1, 1)\",\"(8, 1, 1)\",\"" + std::to_string(device) +
           "\",\"Duration\",\"us\",\"1\"\n";
  };
  const Imported ncu = Read(head + launch(0, 0) + launch(1, 1));
  EXPECT_EQ(GroupsOf(ncu, RowKind::kKernel), (std::vector<std::string>{"device 0, process 9", "device 1, process 9"}));
  EXPECT_EQ(ncu.rows[0].launch, "(8, 1, 1) (32, 1, 1)");
}

double MetalNs(const Imported& imported, std::string_view process, std::string_view channel, std::size_t count) {
  double ns = 0;
  std::size_t rows = 0;
  for (const Row& row : imported.rows) {
    if (!row.group.starts_with(process) || row.name != channel) continue;
    ++rows;
    ns += *row.total_ns;
  }
  EXPECT_EQ(rows, count) << process << " " << channel;
  return ns;
}

TEST(Imports, MetalKeepsProcessesApart) {
  const Imported compute = Good("metal/metal-gpu-intervals-m1-compute.xml");
  EXPECT_EQ(MetalNs(compute, "sm_apple_metal_probe_host", "Compute", 16), 100957);
  EXPECT_EQ(std::ranges::count_if(compute.rows, [](const Row& row) { return row.group.starts_with("WindowServer"); }),
            4);
  const Imported graphics = Good("metal/metal-gpu-intervals-m1.xml");
  EXPECT_EQ(MetalNs(graphics, "Terminal", "Vertex", 4), 108291);
  EXPECT_EQ(MetalNs(graphics, "Terminal", "Fragment", 4), 620751);
  EXPECT_EQ(MetalNs(graphics, "WindowServer", "Vertex", 8), 82042);
  EXPECT_EQ(MetalNs(graphics, "WindowServer", "Fragment", 7), 391875);
  const Imported plain = Good("metal/metal-gpu-intervals-noids-locale.xml");
  EXPECT_EQ(MetalNs(plain, "WindowServer", "Blit", 1), 6083);
  EXPECT_EQ(MetalNs(plain, "WindowServer", "Compute", 1), 18917);
}

TEST(Imports, ChromeTraces) {
  const Imported torch = Good("chrome-trace/torch-h100-qwen1.5-0.5b.json");
  EXPECT_EQ(TextOf(torch, "device"), "NVIDIA H100 80GB HBM3");
  const Imported open = Good("chrome-trace/tricky-array-BE-unclosed.json");
  EXPECT_EQ(TotalsOf(open, RowKind::kKernel).rows, 7U);
  ASSERT_EQ(open.refused.size(), 1U);
  EXPECT_NE(open.refused.front().reason.find("no end"), std::string::npos);
}

TEST(Imports, LlamaBenchDetails) {
  const Imported csv = Good("llama-bench/llama-bench-2023.csv");
  EXPECT_NEAR(csv.rates[0].spread.value_or(0), 8.305961, 1e-9);
  EXPECT_NEAR(csv.rates[1].checked.value_or(0), 132.05, 0.01);
  const Imported threads = Good("llama-bench/llama-bench-2023-cpu-threads.md");
  EXPECT_EQ(threads.rates.size(), 12U);
  double best = 0, at = 0;
  for (const Rate& rate : threads.rates) {
    if (rate.test == "pp64" && *rate.tok_s > best) {
      best = *rate.tok_s;
      at = rate.threads.value_or(0);
    }
  }
  EXPECT_EQ(best, 59.00);
  EXPECT_EQ(at, 32);
  EXPECT_EQ(TextOf(Good("llama-bench/llama-bench-2024fields-ik_llama.json"), "backend"), "CPU");
  const Imported behind = Good("llama-bench/tricky-llama-bench-ik-tg-at-pp.md");
  EXPECT_NE(behind.rates[1].note.find("not comparable with tg64"), std::string::npos);
  EXPECT_EQ(Good("llamacpp/llama-bench.jsonl").rates.size(), 4U);
  const Imported sql = Good("llamacpp/llama-bench.sql");
  ASSERT_EQ(sql.rates.size(), 4U);
  EXPECT_EQ(sql.rates[3].test, "tg16 @ d512");
  EXPECT_NE(Good("llama-bench/batched-bench.md").rates[16].note.find("14.54"), std::string::npos);
}

TEST(Imports, WhatWasNotMeasuredIsNoNumber) {
  for (const char* file :
       {"llama-perf/tricky-llama-cpp-python-zero-eval.txt", "llama-perf/tricky-llama-embedding-inf.txt"}) {
    const Imported imported = Good(file);
    const auto tg = std::ranges::find_if(imported.rates, [](const Rate& rate) { return rate.test.starts_with("tg"); });
    ASSERT_NE(tg, imported.rates.end());
    EXPECT_FALSE(tg->tok_s);
    EXPECT_NE(tg->note.find("not measured"), std::string::npos);
  }
  const Imported cached = Good("ollama/tricky-generate-cached-prompt.json");
  EXPECT_EQ(cached.rates[0].test, "pp");
  EXPECT_FALSE(cached.rates[0].tokens);
  EXPECT_FALSE(cached.rates[0].tok_s);
  EXPECT_TRUE(Notes(Good("vllm/bench-latency-constructed.json"), "tokens per second are unknown"));
}

TEST(Imports, FactsOfServers) {
  EXPECT_NEAR(FactOf(Good("ollama/generate-final-stream-object.json"), "load_ms").value_or(0), 6338.2, 0.1);
  EXPECT_NEAR(FactOf(Good("ollama/generate-nonstream.json"), "total_ms").value_or(0), 5043.5, 0.1);
  EXPECT_EQ(Good("ollama/tricky-generate-stream.jsonl").rates.size(), 2U);
  const Imported draft = Good("llama-perf/llama-server-2025-draft.txt");
  EXPECT_EQ(FactOf(draft, "draft_acceptance"), 0.23026);
  EXPECT_TRUE(Notes(draft, "not comparable with plain decoding"));
  EXPECT_TRUE(Notes(Good("llama-perf/llama-cli-2025-perf_context.txt"), "Interrupted"));
  const Imported serve = Good("vllm/bench-serve-qps10.json");
  EXPECT_EQ(FactOf(serve, "requests"), 300);
  EXPECT_NEAR(FactOf(serve, "ttft_mean_ms").value_or(0), 54.58, 0.01);
  EXPECT_NEAR(serve.rates[0].checked.value_or(0), 2249.25, 0.01);
  EXPECT_EQ(TextOf(Good("vllm/tricky-bench-serve-rate-inf.json"), "request_rate"), "inf");
  EXPECT_NEAR(FactOf(Good("vllm/bench-serve-qps10.txt"), "tpot_mean_ms").value_or(0), 13.58, 1e-9);
  EXPECT_EQ(FactOf(Good("vllm/bench-latency-constructed.json"), "runs"), 10);
  EXPECT_NEAR(FactOf(Good("vllm/bench-latency-constructed.json"), "latency_median_s").value_or(0), 1.234, 1e-3);
  EXPECT_EQ(FactOf(Good("mlx/mlx_lm-generate-3b.txt"), "peak_memory_gb"), 1.944);
  EXPECT_EQ(FactOf(Good("mlx/mlx_lm-benchmark.txt"), "trials"), 5);
  EXPECT_EQ(TextOf(Good("mlx/mlx_lm-benchmark.txt"), "peak_memory_gb"), "no unit is printed");
  const Imported studio = Good("lmstudio/v0-chat-completion.json");
  EXPECT_NEAR(studio.rates[0].checked.value_or(0), 55.56, 0.01);
  EXPECT_NE(studio.rates[0].note.find("disagrees with itself"), std::string::npos);
  EXPECT_NEAR(FactOf(studio, "ttft_ms").value_or(0), 111, 1e-9);
  EXPECT_NEAR(FactOf(Good("lmstudio/v1-chat.json"), "ttft_ms").value_or(0), 814, 1e-9);
}

TEST(Imports, BackendOperations) {
  const Imported console = Good("llamacpp/test-backend-ops-perf.console");
  EXPECT_EQ(TotalsOf(console, RowKind::kOperation).untimed, 0U);
  const auto embed =
      std::ranges::find_if(console.rows, [](const Row& row) { return row.name.find("GET_ROWS(name=embd") == 0; });
  ASSERT_NE(embed, console.rows.end());
  EXPECT_EQ(embed->doubt, "345884 GiB/s is impossible: the whole table of 151936 rows was counted; one row is read");
  EXPECT_EQ(embed->bytes, 576 + 4 + 4096);
  EXPECT_FALSE(embed->printed_gb_s);
  std::size_t doubted = 0;
  for (const Row& row : console.rows) doubted += row.doubt.empty() ? 0 : 1;
  EXPECT_EQ(doubted, 2U);  // and the cache that one row is written into
  const Imported sql = Good("llamacpp/test-backend-ops-perf.sql");
  ASSERT_EQ(sql.rows.size(), console.rows.size());
  EXPECT_NEAR(*sql.rows.front().total_ns, 120.75, 1e-9);
  const Imported csv = Good("llamacpp/test-backend-ops-perf.csv");
  EXPECT_TRUE(Notes(csv, "no times: imported as operations only"));
  EXPECT_EQ(TotalsOf(csv, RowKind::kOperation).untimed, TotalsOf(csv, RowKind::kOperation).rows);
}

// No small public file of this form was found: made after the tool's documentation.
TEST(Imports, RocprofJsonNamesKernelsByTheirSymbols) {
  const auto imported = ImportText("x", R"({"rocprofiler-sdk-tool": [{
      "kernel_symbols": [{"kernel_id": 7, "formatted_kernel_name": "gemv"}],
      "buffer_records": {
        "kernel_dispatch": [
          {"start_timestamp": 100, "end_timestamp": 130, "dispatch_info": {"kernel_id": 7}},
          {"start_timestamp": 0, "end_timestamp": 9, "dispatch_info": {"kernel_id": 7}},
          {"start_timestamp": 200, "end_timestamp": 210, "dispatch_info": {"kernel_id": 8}}],
        "memory_copy": [{"start_timestamp": 5, "end_timestamp": 8}]}}]})");
  ASSERT_TRUE(imported) << imported.error().Message();
  EXPECT_EQ(TotalsOf(*imported, RowKind::kKernel).ns, 40);
  EXPECT_EQ(TotalsOf(*imported, RowKind::kCopy).ns, 3);
  EXPECT_EQ(imported->rows[0].name, "gemv");
  EXPECT_EQ(imported->rows[1].name, "kernel 8");
  ASSERT_EQ(imported->refused.size(), 1U);
  EXPECT_FALSE(ImportText("x", R"({"rocprofiler-sdk-tool": [{}]})"));
}

TEST(Imports, UnknownTextSaysWhatItLooksLike) {
  for (const char* text : {"", "hello\n", "{\"a\": 1}", "[1, 2", "a,b,c\n1,2,3\n"}) {
    const auto imported = ImportText("x", text);
    ASSERT_FALSE(imported) << text;
    EXPECT_FALSE(imported.error().found.empty());
  }
  EXPECT_NE(ImportText("x", "").error().expected.find("llama-bench"), std::string::npos);
}

TEST(Imports, ScriptsMayOnlyFillTables) {
  const std::string head = "CREATE TABLE llama_bench (n_prompt INTEGER, avg_ts REAL);\n";
  for (const char* statement : {"ATTACH DATABASE 'x.db' AS x;", "PRAGMA writable_schema=1;", "DROP TABLE llama_bench;",
                                "INSERT INTO llama_bench VALUES (randomblob(9), 1);", "nonsense;"}) {
    const auto imported = ImportText("x", head + "INSERT INTO llama_bench VALUES (1, 2);\n" + statement);
    ASSERT_FALSE(imported) << statement;
    EXPECT_EQ(imported.error().code, Code::kImportDamaged) << statement;
    EXPECT_EQ(imported.error().where, "x:3") << statement;
  }
}

TEST(Numbers, OfBothKinds) {
  EXPECT_EQ(ParseNumber("1,831,281"), 1831281);
  EXPECT_EQ(ParseNumber("1.205,00", Decimal::kComma), 1205);
  EXPECT_EQ(ParseNumber("99.385.786", Decimal::kComma), 99385786);
  EXPECT_EQ(ParseNumber("2.920e-03"), 0.00292);
  for (const char* text : {"", "n/a", "inf", "nan", "1,2", "1,23,456", "0x10", "1.2.3", "--1", "1e99999", "."}) {
    EXPECT_FALSE(ParseNumber(text)) << text;
  }
  EXPECT_NEAR(*ParseGoDuration("1m34.992010661s"), 94.992010661e9, 1);
  EXPECT_NEAR(*ParseGoDuration("957.094334ms"), 957094334, 1);
  EXPECT_FALSE(ParseGoDuration("12 apples"));
}

TEST(Operation, BytesOfChosenExperts) {
  const auto operation = ParseOperation(
      "MUL_MAT_ID",
      "name=x,type=f32,ne=[768,8,1,1],op_params=[],sources=q4_K[2048,768,128,1],f32[2048,1,1,1],i32[8,1,1,1]");
  ASSERT_TRUE(operation);
  EXPECT_EQ(*operation->RealBytes(), 8.0 * 768 * 1152 + 8192 + 768 * 8 * 4);
  EXPECT_GT(*operation->CountedBytes(), 10 * *operation->RealBytes());
  EXPECT_FALSE(ParseOperation("MUL_MAT", "name=x,type=f32,ne=[1,1,"));
  EXPECT_FALSE(ParseOperation("MUL_MAT", "name=x,type=f32,ne=[0,1,1,1],sources=f32[1,1,1,1]"));
}

}  // namespace
}  // namespace boltbeam::imports
