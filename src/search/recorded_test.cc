#include "search/recorded.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "search/gpu_product.h"

namespace boltbeam::search {
namespace {

std::string Registry(const std::string& row) {
  return R"({"schema": "boltbeam.recorded_routes.v1", "routes": [{"name": "a", "workload": "decode", "status": "refuted",
            "formats": ["Q4_K"], "roles": ["ffn_down"], "recorded_family": "x", "reason": "slower", )" +
         row + "}]}";
}

std::string Expected(const std::string& row) {
  const auto routes = ReadRecordedRoutes(Registry(row), "test");
  if (routes) return "";
  EXPECT_EQ(routes.error().code, Code::kJson);
  return routes.error().expected;
}

Part PartWith(const char* format, std::uint64_t rows, std::uint64_t cols, const char* role) {
  Part part;
  part.table = "t";
  part.role = role;
  part.format = formats::FindFormat(format);
  part.rows = rows;
  part.cols = cols;
  part.calls = 1;
  part.bytes = static_cast<std::uint64_t>(static_cast<double>(rows * cols) * part.format->BitsPerWeight() / 8);
  return part;
}

chip::Chip FindRow(const char* id) {
  const auto chips = chip::LoadRegistry("");
  EXPECT_TRUE(chips);
  return *std::ranges::find(*chips, id, &chip::Chip::id);
}

TEST(RecordedTest, HasEveryRecordedRouteWithAFamilyOrAReason) {
  const auto routes = LoadRecordedRoutes();
  ASSERT_TRUE(routes) << routes.error().Message();
  EXPECT_EQ(routes->size(), 47U);
  for (const RecordedRoute& route : *routes) {
    EXPECT_NE(route.family.empty(), route.why_not.empty()) << route.name;
    EXPECT_FALSE(route.reason.empty()) << route.name;
    EXPECT_TRUE(!route.IsRefuted() || !route.chip.empty()) << route.name;
  }
}

TEST(RecordedTest, RefusesARuleAboutAModel) {
  EXPECT_EQ(Expected(R"("family": "product", "when": {"cols_multiple": 256})"), "");
  for (const char* key : {"model", "models", "architecture", "general.architecture"}) {
    EXPECT_EQ(Expected(std::string(R"("family": "product", "when": {")") + key + R"(": "some"})"),
              "shapes, formats and facts: a rule never asks which model it is");
    EXPECT_EQ(Expected(std::string(R"("family": "product", ")") + key + R"(": "some")"), "a field of the schema");
  }
}

TEST(RecordedTest, RefusesRowsThatBreakTheSchema) {
  EXPECT_EQ(Expected(R"("family": "no-such")"), "a family of this program");
  EXPECT_EQ(Expected(R"("family": "product", "why_not": "both")"), "one of them");
  EXPECT_EQ(Expected(R"("family": "product", "when": {"depth": 4})"),
            "shapes, rows_multiple, cols_multiple, cols_least or facts");
  EXPECT_EQ(ReadRecordedRoutes("{}", "test").error().code, Code::kJson);
  EXPECT_EQ(ReadRecordedRoutes("no json", "test").error().code, Code::kJson);
}

TEST(RecordedTest, ARefutationIsInheritedOnItsChipAndShapesOnly) {
  const auto routes = LoadRecordedRoutes();
  ASSERT_TRUE(routes);
  const auto dropped = [&](const char* chip, std::uint64_t rows, std::uint64_t cols) {
    const Part part = PartWith("Q4_K", rows, cols, "ffn_down");
    KnobSpace space = GpuProductSpace(part, FindRow("rtx-5090"));
    return DropRefuted(space, part, chip, *routes);
  };
  EXPECT_GT(dropped("rx-7900-xtx", 5120, 17408), 0U);  // the shapes on which split sums took seven times as long
  EXPECT_EQ(dropped("rx-7900-xtx", 4096, 11008), 0U);
  EXPECT_EQ(dropped("rtx-5090", 5120, 17408), 0U);
}

TEST(RecordedTest, FusionsThatWereRefutedStayClosed) {
  const auto routes = LoadRecordedRoutes();
  ASSERT_TRUE(routes);
  std::vector<Part> parts = {PartWith("Q4_K", 1024, 5120, "attn_kv"), PartWith("Q4_K", 5120, 5120, "attn_qo"),
                             PartWith("Q4_K", 17408, 5120, "ffn_gate_up"), PartWith("Q6_K", 5120, 17408, "ffn_down")};
  std::vector<FusionIdea> ideas(1);
  ideas[0].steps = {"attention", "combine"};
  CloseRefuted(ideas, parts, "rtx-5090", *routes);
  EXPECT_EQ(ideas[0].closed, "");
  CloseRefuted(ideas, parts, "rx-7900-xtx", *routes);
  EXPECT_TRUE(ideas[0].closed.starts_with("refuted (")) << ideas[0].closed;
  parts.pop_back();  // another model: not the shapes that it was measured on
  ideas[0].closed.clear();
  CloseRefuted(ideas, parts, "rx-7900-xtx", *routes);
  EXPECT_EQ(ideas[0].closed, "");
}

}  // namespace
}  // namespace boltbeam::search
