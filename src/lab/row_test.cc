#include "lab/row.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace boltbeam::lab {
namespace {

/// As the lab's own script has them, with a field that it ignores.
constexpr const char* kTheirs =
    R"({"experiment": "ladder", "alias": "office", "device": "Apple M3 Ultra", "model": "mlx/Big-8B-4bit", "experts": 0,)"
    R"( "weight_bytes_per_token": 4600000000, "generation_tps": 91.3, "spec_gbps": 819, "prompt_tps": 1200.5})";

std::string TemporaryFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(Row, TheLabsRowIsReadAsItIs) {
  const auto row = ParseRow(kTheirs, "f:1");
  ASSERT_TRUE(row && *row);
  EXPECT_EQ((*row)->alias, "office");
  EXPECT_EQ((*row)->ShortModel(), "Big-8B-4bit");
  EXPECT_EQ((*row)->weight_bytes_per_token, 4.6e9);
  EXPECT_EQ((*row)->generation_tps, 91.3);
  EXPECT_EQ((*row)->spec_gb_s, 819);
  EXPECT_EQ((*row)->experts, 0U);
  EXPECT_TRUE((*row)->token_s.empty());
}

TEST(Row, ExpertsAndThePublishedBandwidthMayBeMissing) {
  const auto row = ParseRow(
      R"({"experiment":"ladder","alias":"a","device":"d","model":"m","weight_bytes_per_token":1e9,"generation_tps":9})",
      "f:1");
  ASSERT_TRUE(row && *row);
  EXPECT_FALSE((*row)->spec_gb_s);
  EXPECT_EQ((*row)->experts, 0U);
}

TEST(Row, OtherExperimentsAreNoRows) {
  EXPECT_FALSE(ParseRow(R"({"experiment": "stream", "gbps": 1})", "f:1").value());
  EXPECT_FALSE(ParseRow(R"({})", "f:1").value());
}

TEST(Row, WhatIsWrongIsNamedWithItsLine) {
  const auto message = [](std::string change, const std::string& to) {
    std::string text = kTheirs;
    text.replace(text.find(change), change.size(), to);
    const auto row = ParseRow(text, "ladder.jsonl:3");
    EXPECT_FALSE(row) << text;
    if (row) return std::string();
    EXPECT_EQ(row.error().code, Code::kLabRow);
    return row.error().Message();
  };
  const std::string zero = message("91.3", "0");
  EXPECT_NE(zero.find("ladder.jsonl:3: generation_tps: 0"), std::string::npos) << zero;
  EXPECT_NE(zero.find("above 0"), std::string::npos) << zero;
  EXPECT_NE(message("91.3", "-4").find("generation_tps: -4"), std::string::npos);
  EXPECT_NE(message("91.3", "\"fast\"").find("generation_tps"), std::string::npos);
  EXPECT_NE(message("4600000000", "null").find("weight_bytes_per_token: missing"), std::string::npos);
  EXPECT_NE(message("\"office\"", "7").find("alias: 7"), std::string::npos);
  EXPECT_NE(message("\"experts\": 0", "\"experts\": -1").find("experts"), std::string::npos);
  EXPECT_NE(message("\"prompt_tps\": 1200.5", "\"token_s\": [0]").find("token_s"), std::string::npos);
  EXPECT_NE(message("\"prompt_tps\": 1200.5", "\"token_s\": [1], \"streamed_gb_s\": [1, 2, 3]").find("3 values"),
            std::string::npos);
  EXPECT_FALSE(ParseRow("not JSON", "f:1"));
  EXPECT_FALSE(ParseRow("[1]", "f:1"));
}

TEST(Row, OursComesBackWhole) {
  Row row;
  row.model = "m.gguf";
  row.alias = "here";
  row.device = "a chip";
  row.weight_bytes_per_token = 391086080;
  row.generation_tps = 91;
  row.engine = "boltbeam";
  row.architecture = "one";
  row.kv_bytes_per_token = 1024;
  row.depth = 512;
  row.threads = 2;
  row.pass = 3;
  row.token_s = {0.011, 0.0112};
  row.streamed_gb_s = {41, 40};
  row.left_out = 1;
  row.isa = "avx2";
  row.plan = "fast:12";
  row.cache_k = "q8_0";
  row.cache_v = "f16";
  row.tokens = 16;
  row.command = "x {}";
  row.setup = "CPU";
  const std::string path = TemporaryFile("ours.jsonl", "");
  ASSERT_TRUE(AppendRow(path, row));
  row.pass = 4;
  ASSERT_TRUE(AppendRow(path, row));
  const auto rows = ReadRows(path);
  ASSERT_TRUE(rows) << rows.error().Message();
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ(ToJson((*rows)[1]), ToJson(row));
  EXPECT_EQ((*rows)[0].Bytes(), 391086080 + 1024);
  EXPECT_EQ((*rows)[0].pass, 3U);
  EXPECT_EQ((*rows)[0].ShownCache(), "q8_0/f16");
  EXPECT_EQ((*rows)[0].ShownIsa(), "avx2");
  EXPECT_EQ((*rows)[0].command, "x {}");
}

TEST(Row, ALineThatWasCutIsLeftOutAndTheNextOneStandsAlone) {
  const std::string path = TemporaryFile("cut.jsonl", std::string(kTheirs) + "\n\n" + R"({"experiment": "lad)");
  bool cut = false;
  EXPECT_EQ(ReadRows(path, &cut).value().size(), 1U);
  EXPECT_TRUE(cut);
  Row row = ReadRows(path)->front();
  ASSERT_TRUE(AppendRow(path, row));
  const auto rows = ReadRows(path);  // a cut line in the middle is damage, and is said
  ASSERT_FALSE(rows);
  EXPECT_NE(rows.error().where.find(":3"), std::string::npos) << rows.error().where;
}

TEST(Row, FilesThatAreMissingOrCanNotBeWritten) {
  EXPECT_EQ(ReadRows("no/such/file.jsonl").error().code, Code::kFileNotFound);
  EXPECT_EQ(AppendRow(testing::TempDir(), {}).error().code, Code::kFileWrite);
}

}  // namespace
}  // namespace boltbeam::lab
