#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "report/bound.h"
#include "report/chips.h"
#include "report/inspect.h"
#include "report/table.h"
#include "report/units.h"
#include "test_model.h"

namespace boltbeam::report {
namespace {

Table Sample() {
  Table table({{"part", "role", Align::kLeft}, {"floor", "floor_ns"}, {"note", "", Align::kLeft}});
  table.Add({"lm_head", {"300.297 µs", "300297"}, "a|b"});
  table.AddRule();
  table.Add({"a, \"quoted\" name", {"2.750 ms", "2750766"}});
  return table;
}

TEST(Table, TextAlignsNumbersToTheRight) {
  EXPECT_EQ(Sample().Text(),
            "part                   floor  note\n"
            "──────────────────────────────────\n"
            "lm_head           300.297 µs  a|b\n"
            "──────────────────────────────────\n"
            "a, \"quoted\" name    2.750 ms\n");
}

TEST(Table, NamesGiveWayNumbersDoNot) {
  Table table({{"name", "name", Align::kLeft}, {"bytes", "bytes"}});
  table.Add({std::string(200, 'x'), "4,670,533,632"});
  std::istringstream lines(table.Text());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), 80u) << line;
  EXPECT_NE(table.Text().find("…  4,670,533,632"), std::string::npos);
}

TEST(Table, MarkdownEscapesPipes) {
  EXPECT_EQ(Sample().Markdown(),
            "| part | floor | note |\n| --- | ---: | --- |\n| lm_head | 300.297 µs | a\\|b |\n"
            "| a, \"quoted\" name | 2.750 ms |  |\n");
}

TEST(Table, CsvHasRawNumbersAndQuotes) {
  EXPECT_EQ(Sample().Csv(), "role,floor_ns\r\nlm_head,300297\r\n\"a, \"\"quoted\"\" name\",2750766\r\n");
}

TEST(Wrap, KeepsToTheWidth) {
  EXPECT_EQ(Wrap("one two three four", 2, 9), "one two\n  three\n  four");
  EXPECT_EQ(Wrap("", 2, 9), "");
  EXPECT_EQ(Wrap("unbreakable", 0, 4), "unbreakable");
}

TEST(Units, AsPeopleReadThem) {
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999), "999");
  EXPECT_EQ(Thousands(4670533632), "4,670,533,632");
  EXPECT_EQ(Decimal(-1234.567, 2), "-1,234.57");
  EXPECT_EQ(Decimal(999.5, 0), "1,000");
  EXPECT_EQ(Bytes(4670533632), "4.671 GB");
  EXPECT_EQ(Bytes(12), "12 B");
  EXPECT_EQ(Duration(300297.03), "300.297 µs");
  EXPECT_EQ(Duration(0.5), "0.500 ns");
  EXPECT_EQ(Scaled(255.4e12) + "FLOP/s", "255.4 TFLOP/s");
  EXPECT_EQ(Percent(0.1234), "12.3 %");
}

// ---------------------------------------------------------------- commands

const model::Model& EightB() {
  static const model::Model loaded = model::Model::Load(model::Qwen3EightB().Write()).value();
  return loaded;
}

std::string BoundOf(const std::string& chip_name, const roofline::BoundOptions& options, Form form) {
  const chip::Chip chip = chip::FindChip(chip_name, "").value();
  const roofline::Roof roof = roofline::RoofOf(chip).value();
  return BoundReport(EightB(), chip, roofline::ComputeBound(EightB(), roof, options).value(), form);
}

void ExpectFits(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the path, which is as long as it is
  while (std::getline(lines, line)) EXPECT_LE(DisplayWidth(line), 80u) << line;
}

TEST(Inspect, NamesOfItsJson) {
  const nlohmann::json json = nlohmann::json::parse(InspectReport(EightB(), TakeCensus(EightB()), Form::kJson));
  EXPECT_EQ(json["schema"], "boltbeam.inspect.v1");
  EXPECT_EQ(json["census"]["counted_bytes"], 4670533632u);
  EXPECT_EQ(json["census"]["excluded_bytes"], 351293440u);
  EXPECT_EQ(json["census"]["tensor_bytes"], 5021827072u);
  std::uint64_t tensors = 0, bytes = 0;
  for (const nlohmann::json& part : json["parts"]) {
    tensors += part["tensors"].get<std::uint64_t>();
    bytes += part["bytes"].get<std::uint64_t>();
    EXPECT_TRUE(part.contains("role") && part.contains("format"));
  }
  EXPECT_EQ(tensors, 253u);
  EXPECT_EQ(bytes, 4670533632u);
  EXPECT_EQ(json["tensors"].size(), 399u);
  for (const nlohmann::json& excluded : json["excluded"]) EXPECT_FALSE(excluded["reason"].get<std::string>().empty());
}

TEST(Inspect, FitsATerminal) {
  const model::Census census = TakeCensus(EightB());
  ExpectFits(InspectReport(EightB(), census, Form::kText));
  EXPECT_NE(InspectReport(EightB(), census, Form::kText).find("4,670,533,632"), std::string::npos);
  EXPECT_NE(InspectReport(EightB(), census, Form::kMarkdown).find("| lm_head | Q6_K | 1 |"), std::string::npos);
  EXPECT_NE(InspectReport(EightB(), census, Form::kCsv).find("lm_head,Q6_K,1,151936,4096,510504960,"),
            std::string::npos);
}

TEST(Bound, NamesOfItsJson) {
  const nlohmann::json json = nlohmann::json::parse(BoundOf("rtx-5090", {{0, 512}, 1, 0}, Form::kJson));
  EXPECT_EQ(json["token"]["weight_bytes"], 4670533632u);
  EXPECT_EQ(json["token"]["activation_bytes"], 5767936u);
  EXPECT_EQ(json["token"]["kv_bytes"], 0u);
  EXPECT_NEAR(json["token"]["floor_ns"].get<double>(), 2750765.63, 0.01);
  EXPECT_NEAR(json["limit_tok_s"].get<double>(), 363.535, 0.001);
  EXPECT_NEAR(json["ridge_ops_per_byte"].get<double>(), 150.235, 0.001);
  EXPECT_NEAR(json["depths"][1]["limit_tok_s"].get<double>(), 357.759, 0.001);
  EXPECT_EQ(json["depths"][1]["kv_bytes"], 75497472u);
  for (const nlohmann::json& part : json["parts"]) {
    for (const char* name : {"role", "format", "bytes", "floor_ns", "unpack_floor_ns", "limit", "crossover_batch"}) {
      EXPECT_TRUE(part.contains(name)) << name;
    }
  }
}

TEST(Bound, FitsATerminal) {
  ExpectFits(BoundOf("rtx-5090", {{0, 512, 4096}, 1, 0}, Form::kText));
  ExpectFits(BoundOf("apple-m3-10c", {{131072}, 1, 8192}, Form::kText));
  ExpectFits(BoundOf("rx-7900-xtx", {{512}, 64, 0}, Form::kText));
}

roofline::Bound WithCeilings() {
  roofline::Roof roof;
  roof.bandwidth_gb_s = 50;
  roof.bandwidth_from = "measured";
  roof.latencies = {100, 250};
  roof.threads = {{1, {30, 100, {{512, 1e9}}}}, {128, {50, 200, {{512, 4e9}}}}};
  const auto wide = [](double count) { return chip::VectorCounts::Of(512, count); };
  roof.peaks = {{"Q4_K", {400e9, "dot_i8_flop_s with 512-bit vectors"}},
                {"Q6_K", {{}, "madd_i16_flop_s with 512-bit vectors, not measured (boltbeam chip measure)"}}};
  roof.instructions = {
      {{"lm_head", "Q6_K", wide(4.2e7)}, {"norm", "", wide(5e5), 0, false}, {"quantize", "", wide(1e9)}}};
  roof.uncompiled = {"rms_norm.4096: the compiler made 2 loops of the program's 3"};
  return roofline::ComputeBound(EightB(), roof, {{0, 512}, 1, 0}).value();
}

TEST(Bound, SaysWhichCeilingBindsAtHowManyThreads) {
  const roofline::Bound bound = WithCeilings();
  const std::string text = BoundReport(EightB(), chip::Chip{}, bound, Form::kText);
  ExpectFits(text);
  EXPECT_NE(text.find("* counted in the loop program: rms_norm.4096"), std::string::npos) << text;
  std::string joined, word;  // notes are wrapped
  for (std::istringstream words(text); words >> word;) joined += word + " ";
  EXPECT_NE(joined.find("5.0 kB asked for by 100 ns (idle), 12.5 kB under way at 250 ns"), std::string::npos) << text;
  const nlohmann::json json = nlohmann::json::parse(BoundReport(EightB(), chip::Chip{}, bound, Form::kJson));
  EXPECT_EQ(json["schema"], "boltbeam.bound.v2");
  EXPECT_EQ(json["bytes_in_flight"], 5000.0);
  EXPECT_EQ(json["bytes_in_flight_loaded"], 12500.0);
  EXPECT_EQ(json["chip"]["threads"][1]["vector_instructions_s"]["512"], 4e9);
  for (const nlohmann::json& part : json["parts"]) {
    if (part["role"] == "lm_head") {
      EXPECT_EQ(part["instructions_from"], "machine_code");
      EXPECT_EQ(part["vector_instructions"], 4.2e7);
      EXPECT_EQ(part["ceilings"][0]["threads"], 1);
      EXPECT_EQ(part["ceilings"][0]["binds"], "instructions");
      EXPECT_EQ(part["ceilings"][1]["binds"], "instructions");
      EXPECT_EQ(part["peak_flop_s"], nullptr);
    }
    if (part["role"] == "norm") {
      EXPECT_EQ(part["instructions_from"], "loop_program");
    }
  }
  EXPECT_EQ(json["code_parts"][0]["role"], "quantize");
  EXPECT_EQ(json["token"]["ceilings"][1]["binds"], "instructions");
}

TEST(Chips, FitATerminal) {
  const std::vector<chip::Chip> chips = chip::LoadRegistry("").value();
  ExpectFits(ChipListReport(chips, "", Form::kText));
  for (const chip::Chip& chip : chips) ExpectFits(ChipReport(chip, Form::kText));
  const nlohmann::json list = nlohmann::json::parse(ChipListReport(chips, "", Form::kJson));
  EXPECT_EQ(list["chips"].size(), chips.size());
  EXPECT_EQ(nlohmann::json::parse(ChipReport(chips[0], Form::kJson))["schema"], "boltbeam.chip.v1");
}

TEST(Form, Names) {
  EXPECT_EQ(FormOf("json"), Form::kJson);
  EXPECT_EQ(FormOf("csv"), Form::kCsv);
  EXPECT_EQ(FormOf("md"), Form::kMarkdown);
  EXPECT_EQ(FormOf("text"), Form::kText);
}

}  // namespace
}  // namespace boltbeam::report
