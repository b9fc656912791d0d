#include "report/trace_format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "audit/import/imported.h"

namespace boltbeam::report {
namespace {

// What we write, our own reader of such traces reads back.
TEST(TraceFormat, IsAChromeTrace) {
  engine::Trace trace;
  trace.token_begin = 1000;
  trace.token_end = 1900;
  trace.step_begin = {{1000, 1300}, {1010, 1350}};
  trace.step_end = {{1200, 1800}, {1250, 1850}};
  trace.barrier_begin = {{1200, 1800}, {1250, 1850}};
  trace.barrier_end = {{1290, 1900}, {1290, 1900}};
  std::vector<engine::StepInfo> steps(2);
  steps[0].role = "ffn_down";
  steps[0].format = "Q4_K";
  steps[1].role = "norm";
  steps[1].format = "F32";
  const measure::Clock clock{.ns_per_tick = 2};
  const std::string text = ChromeTrace(trace, steps, clock);
  const auto imported = imports::ImportText("token", text);
  ASSERT_TRUE(imported) << imported.error().Message();
  EXPECT_EQ(imports::TotalsOf(*imported, imports::RowKind::kKernel).rows, 4U);
  EXPECT_NEAR(imports::TotalsOf(*imported, imports::RowKind::kKernel).ns, 2 * (200 + 500 + 240 + 500), 1e-6);
  const auto timeline = imports::TimelineOf(*imported, imported->rows.front().group);
  ASSERT_TRUE(timeline);
  EXPECT_NEAR(timeline->span_ns, 2 * 850, 1e-6);
  const auto document = nlohmann::json::parse(text);
  EXPECT_EQ(document["traceEvents"].size(), 2U + 4U + 4U);
}

}  // namespace
}  // namespace boltbeam::report
