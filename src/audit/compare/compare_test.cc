#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "audit/compare/attribution.h"
#include "audit/compare/comparison.h"
#include "audit/compare/matching.h"
#include "audit/compare/peer.h"
#include "audit/compare/stored.h"
#include "audit/floors.h"
#include "model/model.h"
#include "report/compare_format.h"
#include "test_model.h"

namespace boltbeam::audit {
namespace {

using nlohmann::json;

json Stored(double scale, const std::string& machine) {
  json parts = json::array();
  parts.push_back({{"role", "ffn_down"},
                   {"format", "Q4_K"},
                   {"calls", 4},
                   {"bytes", 4000},
                   {"floor_ns", 1000.0},
                   {"now_ns", 1200.0 * scale}});
  parts.push_back(
      {{"role", "norm"}, {"format", "F32"}, {"calls", 9}, {"bytes", 10}, {"floor_ns", 10.0}, {"now_ns", 100.0}});
  const double lost = 1200 * scale + 100 - 1010, now = 1010 + lost + 50 + 5;
  return {{"schema", "boltbeam.audit.v1"},
          {"model", {{"type", "tiny"}}},
          {"machine", machine},
          {"threads", 2},
          {"depths", json::array({{{"depth", 0},
                                   {"read_bandwidth_gb_s", 4.0},
                                   {"token",
                                    {{"now_ns", now},
                                     {"floor_ns", 1010.0},
                                     {"lost_ns", lost},
                                     {"gaps_ns", 50.0},
                                     {"wait_ns", 40.0},
                                     {"host_ns", 10.0},
                                     {"unaccounted_ns", 5.0}}},
                                   {"parts", parts}}})}};
}

TEST(Stored, ComparesPartByPartAndSaysWhatEachWouldGain) {
  const auto a = ReadStoredAudit("a.json", Stored(1, "one")), b = ReadStoredAudit("b.json", Stored(1.5, "other"));
  ASSERT_TRUE(a && b);
  const auto comparisons = CompareStored(*a, *b);
  ASSERT_TRUE(comparisons);
  ASSERT_EQ(comparisons->size(), 1U);
  const Comparison& comparison = comparisons->front();
  EXPECT_NEAR(comparison.DifferenceNs(), -600, 1e-9);
  EXPECT_NEAR(comparison.regions[0].DifferenceNs(), -600, 1e-9);
  EXPECT_NEAR(*comparison.regions[0].theirs_gain_ns, 600, 1e-9);
  EXPECT_EQ(*comparison.regions[0].ours_gain_ns, 0);
  EXPECT_NEAR(comparison.ResidualNs(), 0, 1e-9);
  EXPECT_NE(comparison.Sentence().find("a.json (one, 2 threads) needs 30.7 % less time for a token than b.json"),
            std::string::npos)
      << comparison.Sentence();
  const json shown = json::parse(report::CompareReport(*comparisons, "json"));
  EXPECT_EQ(shown["schema"], "boltbeam.compare.v1");
  for (const char* key : {"region", "ours_ns", "theirs_ns", "difference_ns"})
    EXPECT_TRUE(shown["regions"][0].contains(key));
  EXPECT_NEAR(shown["residual_ns"].get<double>(), 0, 1e-9);
  const std::string text = report::CompareReport(*comparisons, "text");
  EXPECT_NE(text.find("would gain"), std::string::npos);
}

TEST(Stored, RefusesWhatDoesNotAddUp) {
  json wrong = Stored(1, "x");
  wrong["depths"][0]["token"]["gaps_ns"] = 500;
  for (const json& document : {wrong, json{{"schema", "boltbeam.audit.v1"}}, json{{"schema", "other"}}, json(3)}) {
    const auto read = ReadStoredAudit("x.json", document);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::kStoredAccount);
  }
  EXPECT_NE(ReadStoredAudit("x.json", wrong).error().found.find("beside a token of"), std::string::npos);
  json deep = Stored(1, "x");
  deep["depths"][0]["depth"] = 512;
  const auto a = ReadStoredAudit("a.json", Stored(1, "x")), b = ReadStoredAudit("b.json", deep);
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(CompareStored(*a, *b));
}

imports::Imported Trace(const std::vector<imports::Row>& rows) {
  imports::Imported imported;
  imported.rows = rows;
  return imported;
}

imports::Row Kernel(const std::string& name, double calls, double us, std::optional<double> bytes = {}) {
  imports::Row row;
  row.name = name;
  row.calls = calls;
  row.total_ns = us * 1e3;
  row.bytes = bytes;
  return row;
}

// The weight kernels of the RTX 5090's tie-out, two tokens of them, and its model's parts.
TEST(Attribution, ByLaunchesAndBytes) {
  const std::vector<PartFloor> floors = {{"attn_kv", "Q4_K", 54, 54ULL * 2359296, 0},
                                         {"attn_kv", "Q6_K", 18, 18ULL * 3440640, 0},
                                         {"ffn_down", "Q4_K", 18, 18ULL * 28311552, 0},
                                         {"ffn_down", "Q6_K", 18, 18ULL * 41287680, 0},
                                         {"lm_head", "Q6_K", 1, 510504960, 0}};
  const Attribution bare = Attribute(
      Trace({Kernel("a", 108, 338), Kernel("b", 36, 690), Kernel("c", 36, 1035), Kernel("head", 2, 604)}), floors, 0);
  EXPECT_EQ(bare.tokens, 2);
  ASSERT_EQ(bare.kernels.size(), 4U);
  for (const AttributedKernel& kernel : bare.kernels) {
    if (kernel.name == "a") {
      EXPECT_EQ(kernel.part, "attn_kv Q4_K");
    } else if (kernel.name == "head") {
      EXPECT_EQ(kernel.part, "lm_head Q6_K");
    }
    if (kernel.name == "b" || kernel.name == "c") {
      EXPECT_EQ(kernel.part, "");
      EXPECT_NE(kernel.why.find("attn_kv Q6_K and ffn_down Q4_K and ffn_down Q6_K"), std::string::npos) << kernel.why;
    }
  }
  EXPECT_NEAR(bare.unattributed_ns, (690 + 1035) * 1e3 / 2, 1e-6);
  const Attribution sized =
      Attribute(Trace({Kernel("b", 36, 690, 28311552), Kernel("c", 36, 1035, 41287680)}), floors, 2);
  EXPECT_EQ(sized.kernels[0].part, "ffn_down Q6_K");
  EXPECT_EQ(sized.kernels[1].part, "ffn_down Q4_K");
  EXPECT_EQ(sized.unattributed_ns, 0);
}

TEST(Attribution, TwoKernelsForOnePartStayUnattributed) {
  const std::vector<PartFloor> floors = {{"lm_head", "Q6_K", 1, 1000, 0}};
  const Attribution attribution =
      Attribute(Trace({Kernel("x", 1, 5), Kernel("y", 1, 6), Kernel("z", 7, 1)}), floors, 1);
  for (const AttributedKernel& kernel : attribution.kernels) EXPECT_TRUE(kernel.part.empty());
  EXPECT_NE(attribution.kernels[0].why.find("2 kernels fit lm_head Q6_K"), std::string::npos);
  EXPECT_NE(attribution.kernels[2].why.find("fit no part"), std::string::npos);
}

// Of Nsight Compute every launch is a row with bytes of its own: what groups them is name and grid, never its number.
TEST(Attribution, LaunchesOfOneGridAreOneKernelAndDevicesStayApart) {
  const std::vector<PartFloor> floors = {{"ffn_down", "Q6_K", 2, 2000, 0}, {"lm_head", "Q6_K", 1, 9000, 0}};
  imports::Imported imported;
  const auto add = [&](const std::string& group, const std::string& launch, double bytes, double ns) {
    imports::Row row;
    row.name = "gemv";
    row.group = group;
    row.launch = launch;
    row.bytes = bytes;
    row.total_ns = ns;
    imported.rows.push_back(row);
  };
  for (const char* device : {"device 0", "device 1"}) {
    add(device, "(8, 1, 1)", 990, 10);
    add(device, "(8, 1, 1)", 1010, 12);
    add(device, "(64, 1, 1)", 9000, 90);
  }
  for (const std::string& group : imports::GroupsOf(imported, imports::RowKind::kKernel)) {
    const Attribution attribution = Attribute(imported, floors, 1, group);
    EXPECT_EQ(attribution.group, group);
    ASSERT_EQ(attribution.kernels.size(), 2U);
    EXPECT_EQ(attribution.kernels[0].part, "lm_head Q6_K");
    EXPECT_EQ(attribution.kernels[1].part, "ffn_down Q6_K") << attribution.kernels[1].why;
    EXPECT_EQ(attribution.kernels[1].calls, 2);
    EXPECT_EQ(attribution.attributed_ns, 112);
  }
}

TimedOperation Timed(const std::string& kind, const std::string& parameters, double us) {
  auto operation = imports::ParseOperation(kind, parameters);
  EXPECT_TRUE(operation) << kind;
  return {std::move(*operation), us * 1e3};
}

TEST(Matching, CountsComeFromOurGraphAndNeverFromNames) {
  model::TestModel file("llama");  // 2 layers, hidden 256, ffn 512, 4 heads of 64, 2 KV heads, vocabulary 320
  const auto model = model::Model::Load(file.Write());
  ASSERT_TRUE(model) << model.error().Message();
  for (const PartFloor& floor : PartFloors(*model, 0, {})) {
    EXPECT_EQ(floor.flops, floor.role == "embed" ? 2U * 256 : floor.flops) << "a row is unpacked";
  }
  const auto mm = [](int k, int n) {
    return "name=x,type=f32,ne=[" + std::to_string(n) + ",1,1,1],op_params=[],sources=q8_0[" + std::to_string(k) + "," +
           std::to_string(n) + ",1,1],f32[" + std::to_string(k) + ",1,1,1]";
  };
  const Matching matching = MatchOperations(
      {Timed("MUL_MAT", mm(256, 256), 10), Timed("MUL_MAT", mm(256, 128), 4), Timed("MUL_MAT", mm(256, 512), 20),
       Timed("MUL_MAT", mm(512, 256), 22), Timed("MUL_MAT", mm(256, 320), 13),
       Timed("RMS_NORM", "name=n,type=f32,ne=[256,1,1,1],op_params=[0:9],sources=f32[256,1,1,1]", 1),
       Timed("ROPE", "name=q,type=f32,ne=[64,4,1,1],op_params=[1],sources=f32[64,4,1,1],i32[1,1,1,1]", 2),
       Timed("ROPE", "name=q,type=f32,ne=[64,4,1,1],op_params=[2],sources=f32[64,4,1,1],i32[1,1,1,1]", 4),
       Timed("ADD", "name=r,type=f32,ne=[256,1,1,1],op_params=[],sources=f32[256,1,1,1],f32[256,1,1,1]", 1),
       Timed("SET_ROWS",
             "name=c,type=f16,ne=[128,256,1,1],op_params=[],sources=f32[128,1,1,1],i64[1,1,1,1],f16[128,256,1,1]", 1),
       Timed("SWIGLU", "name=g,type=f32,ne=[512,1,1,1],op_params=[2],sources=f32[512,1,1,1],f32[512,1,1,1]", 3),
       Timed("DUP", "name=d,type=f32,ne=[256,1,1,1],op_params=[],sources=f32[256,1,1,1]", 7)},
      *model, 0);
  const auto ns = [&](const std::string& role, const std::string& format) {
    for (const MatchedRegion& region : matching.regions) {
      if (region.role == role && region.format == format) return region.ns / 1e3;
    }
    return -1.0;
  };
  EXPECT_NEAR(ns("attn_qo", "Q8_0"), 2 * 2 * 10, 1e-9);  // query and output of each layer have one shape
  EXPECT_NEAR(ns("attn_kv", "Q8_0"), 2 * 2 * 4, 1e-9);
  EXPECT_NEAR(ns("ffn_gate_up", "Q8_0"), 2 * 2 * 20, 1e-9);
  EXPECT_NEAR(ns("ffn_down", "Q8_0"), 2 * 22, 1e-9);
  EXPECT_NEAR(ns("lm_head", "Q8_0"), 13, 1e-9);
  EXPECT_NEAR(ns("norm", ""), 5 * 1, 1e-9);
  EXPECT_NEAR(ns("rope", ""), 2 * 3 + 2 * 2 * 1, 1e-9);  // one shape with two parameters: the mean; and both caches
  EXPECT_NEAR(ns("attn_qo", "residual"), 2, 1e-9);
  EXPECT_NEAR(ns("gate", ""), 2 * 3, 1e-9);
  EXPECT_NEAR(matching.TotalNs() / 1e3, 40 + 16 + 80 + 44 + 13 + 5 + 10 + 4 + 6 + 7, 1e-9);
  EXPECT_NEAR(matching.unmatched_ns, 7e3, 1e-9);
  ASSERT_EQ(matching.unmatched.size(), 1U);
  const Attribution attribution = Attribute(matching);
  EXPECT_EQ(attribution.kernels.front().part, "ffn_gate_up Q8_0");
  EXPECT_TRUE(attribution.kernels.back().part.empty());
  EXPECT_NEAR(attribution.unattributed_ns, 7e3, 1e-9);
}

TEST(Matching, QueriesAndKeysOfOneShapeAreRotatedBoth) {
  model::TestSizes sizes;
  sizes.kv_heads = sizes.heads;
  model::TestModel file("llama", sizes);
  const auto model = model::Model::Load(file.Write());
  ASSERT_TRUE(model);
  const Matching matching = MatchOperations(
      {Timed("ROPE", "name=q,type=f32,ne=[64,4,1,1],op_params=[1],sources=f32[64,4,1,1],i32[1,1,1,1]", 2)}, *model, 0);
  ASSERT_EQ(matching.regions.size(), 1U);
  EXPECT_EQ(matching.regions.front().calls, 2 * sizes.layers);
}

}  // namespace
}  // namespace boltbeam::audit
