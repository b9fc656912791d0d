// `predict` as a person types it: forecasts from rows, headers and shapes, written down and then checked.
#include <map>
#include <nlohmann/json.hpp>

#include "gguf/file.h"
#include "lab_fixture.h"
#include "test_model.h"

namespace boltbeam {
namespace {

using nlohmann::json;

TEST_F(Lab, PredictionsAreWrittenDownFirst) {
  const json stated = Json("predict --bytes 2.5e9 --ladder " + Rows());
  EXPECT_NEAR(stated["tok_s"].get<double>(), 149.2, 2);
  EXPECT_LT(stated["tok_s_low"].get<double>(), stated["tok_s"].get<double>());
  const std::string record = stated["depths"][0]["record"].get<std::string>();
  EXPECT_EQ(record.size(), 64U);
  const json kept = Json("ledger show " + record);
  EXPECT_EQ(kept["payload"]["quantity"], "token_ns") << kept.dump();
  // A shape that synth knows: nothing is downloaded, and deeper contexts read more.
  const json shape = Json("predict qwen3-8b:Q4_K_M --ladder " + Rows());
  ASSERT_EQ(shape["depths"].size(), 3U);
  EXPECT_GT(shape["depths"][0]["tok_s"].get<double>(), shape["depths"][2]["tok_s"].get<double>());
  EXPECT_EQ(shape["weight_bytes"], 4670533632);
  const json line = Json("predict --bytes 4670533632 --fixed-ms 1.67 --bandwidth 497");
  EXPECT_NEAR(line["tok_s"].get<double>(), 90.355, 1e-3);
  EXPECT_TRUE(line["tok_s_low"].is_null());
}

TEST_F(Lab, ARateThatTheMemoryCanNotDeliver) {
  const std::string bytes = "predict --bytes 4.67e9 --no-record --ladder " + Rows() + " --streamed 639 --rate ";
  EXPECT_TRUE(Json(bytes + "150")["rate"]["above_streamed"].get<bool>());
  EXPECT_FALSE(Json(bytes + "100")["rate"]["above_streamed"].get<bool>());
  const ProgramOutcome above = Run(bytes + "200");
  EXPECT_EQ(above.status, 3);
  EXPECT_NE(above.output.find("published"), std::string::npos) << above.output;
}

/// Rows of a program that anyone can play: a millisecond and 10 GB/s.
void WriteLadder(const std::string& path, const std::string& engine, const std::string& date) {
  std::ofstream rows(path);
  const double scatter[] = {2e-5, -1e-5, -3e-5, 3e-5, -1e-5};
  for (int i = 0; i < 5; ++i) {
    const double bytes = 20e6 * (i + 1);
    rows << json{{"experiment", "ladder"},
                 {"alias", "here"},
                 {"device", ""},
                 {"model", "m" + std::to_string(i)},
                 {"engine", engine},
                 {"architecture", "llama"},
                 {"date", date},
                 {"weight_bytes_per_token", bytes},
                 {"generation_tps", 1 / (1e-3 + bytes / 10e9 + scatter[i])}}
         << "\n";
  }
}

TEST_F(Lab, AForecastIsCheckedByTheLaddersOwnProgram) {
  ASSERT_EQ(Run("synth tiny-llama:Q4_K_M --out " + folder_ + "/model.gguf").status, 0);
  WriteLadder(folder_ + "/echo.jsonl", "echo", "2026-11-30T10:00:00Z");
  const std::string predict = "predict " + folder_ + "/model.gguf --depth 0 --check -t 1 --ladder " + folder_;
  const std::string echo = " --name echo --command 'test -e {} && echo 500 tok/s'";
  const ProgramOutcome checked = Run(predict + "/echo.jsonl" + echo + " -o json 2>/dev/null");
  ASSERT_EQ(checked.status, 0) << checked.output;
  const json depth = json::parse(checked.output)["depths"][0];
  EXPECT_NEAR(depth["measured_raw_ms"].get<double>(), 2, 1e-9);
  EXPECT_NEAR(depth["raw_miss_ms"].get<double>(), 2 - depth["token_ms"].get<double>(), 1e-9);
  EXPECT_NEAR(depth["miss_ms"].get<double>(), depth["raw_miss_ms"].get<double>(), 1e-9);  // rows without readings
  EXPECT_GT(depth["miss_ms"].get<double>(), 0.5);
  EXPECT_FALSE(depth["inside"].get<bool>());
  EXPECT_EQ(depth["record"].get<std::string>().size(), 64U);
  const ProgramOutcome shown = Run(predict + "/echo.jsonl" + echo);
  EXPECT_NE(shown.output.find("  as run  miss %"), std::string::npos) << shown.output;
  // Another program than the ladder's, another number of threads, and a model that is no file are refused by name.
  const ProgramOutcome engine = Run(predict + "/echo.jsonl");
  EXPECT_EQ(engine.status, 2);
  EXPECT_NE(engine.output.find("a line of echo"), std::string::npos) << engine.output;
  const ProgramOutcome shape = Run("predict tiny-llama:Q4_K_M --check --ladder " + folder_ + "/echo.jsonl" + echo);
  EXPECT_EQ(shape.status, 2);
  EXPECT_EQ(Run(predict + "/echo.jsonl" + " --name echo --command 'false {}'").status, 2);
}

// The whole leave-one-out, every forecast in the ledger before the first model runs.
TEST_F(Lab, ModelsOfTheLadderAreForetoldUnseen) {
  std::string models;
  for (const char* layers : {"1", "2", "3", "4"}) {
    const std::string name = std::string("m") + layers, path = folder_ + "/" + name;
    ASSERT_EQ(Run("synth tiny-llama:Q4_K_M --layers " + std::string(layers) + " --out " + path).status, 0);
    models += " " + path;
  }
  WriteLadder(folder_ + "/echo.jsonl", "echo", "2026-11-30T10:00:00Z");
  const std::string predict = "predict" + models + " --unseen --depth 0 -t 1 --ladder " + folder_ + "/echo.jsonl";
  // The command that is run writes down what the ledger held by then.
  const std::string list = BOLTBEAM_PROGRAM " --home " + folder_ + "/own ledger list -o json";
  const std::string command = " --check --name echo --command '" + list + " >" + folder_ + "/seen-$(basename {}); " +
                              "basename {} >>" + folder_ + "/order; echo 500 tok/s' --passes 2 -o json 2>/dev/null";
  const ProgramOutcome checked = Run(predict + command);
  ASSERT_EQ(checked.status, 0) << checked.output;
  const json document = json::parse(checked.output)["models"];
  ASSERT_EQ(document.size(), 4U);
  for (const json& model : document) {
    EXPECT_EQ(model["own_rows_left_out"], 1);
    EXPECT_NEAR(model["depths"][0]["measured_raw_ms"].get<double>(), 2, 1e-9);
    EXPECT_TRUE(model["depths"][0]["inside"].is_boolean());
  }
  const auto held_before = [&](const std::string& model) {
    std::map<std::string, int> kinds;
    const json held = json::parse(ReadText(folder_ + "/seen-" + model));
    for (const json& record : held["records"]) ++kinds[record["kind"]];
    return kinds;
  };
  EXPECT_EQ(held_before("m1"), (std::map<std::string, int>{{"prediction", 4}}));
  EXPECT_EQ(held_before("m4"), (std::map<std::string, int>{{"prediction", 4}}));
  std::string order = ReadText(folder_ + "/order");
  std::erase(order, '\n');
  const std::size_t runs = order.size() / 16;  // of the command, at each visit
  EXPECT_GT(runs, 0U) << order;
  std::string expected;
  for (const char* model : {"m1", "m2", "m3", "m4", "m4", "m3", "m2", "m1"}) {
    for (std::size_t run = 0; run < runs; ++run) expected += model;
  }
  EXPECT_EQ(order, expected);
  const json kept = Json("ledger show " + document[0]["depths"][0]["record"].get<std::string>())["payload"];
  EXPECT_EQ(kept["method"], "the lab's line of other models") << kept.dump();
  const ProgramOutcome table = Run(predict + " --no-record");
  EXPECT_NE(table.output.find("4 models, 95 % intervals"), std::string::npos) << table.output;
  // What is left must give an interval; and several models share no bytes.
  std::ofstream(folder_ + "/three.jsonl") << [&] {
    std::istringstream rows(ReadText(folder_ + "/echo.jsonl"));
    std::string text, line;
    for (int i = 0; i < 3 && std::getline(rows, line); ++i) text += line + "\n";
    return text;
  }();
  const ProgramOutcome few = Run("predict " + folder_ + "/m1 --unseen --ladder " + folder_ + "/three.jsonl");
  EXPECT_EQ(few.status, 1);
  EXPECT_NE(few.output.find("--unseen: 1 row of m1 left out"), std::string::npos) << few.output;
  EXPECT_NE(few.output.find("2 models; expected at least three"), std::string::npos) << few.output;
  EXPECT_EQ(Run(predict + " --bytes 1e9").status, 2);
  EXPECT_EQ(Run("predict m1 --unseen --bandwidth 9").status, 2);
}

// By this engine. A memory that changes its speed in every window is refused as unstable; three tries as for all
// timing.
TEST_F(Lab, AForecastIsCheckedByThisEngine) {
  ASSERT_EQ(Run("synth tiny-llama:Q4_K_M --out " + folder_ + "/model.gguf").status, 0);
  WriteLadder(folder_ + "/ours.jsonl", "boltbeam", "2026-11-30T10:00:00Z");
  ProgramOutcome checked;
  for (int attempt = 0; attempt < 3; ++attempt) {
    checked = Run("predict " + folder_ + "/model.gguf --depth 0 --check -t 1 --seconds 0.5 --ladder " + folder_ +
                  "/ours.jsonl -o json 2>/dev/null");
    if (checked.status != 3) break;
  }
  ASSERT_EQ(checked.status, 0) << checked.output;
  const json depth = json::parse(checked.output)["depths"][0];
  EXPECT_GT(depth["measured_raw_ms"].get<double>(), 0);
  EXPECT_TRUE(depth["beside_gb_s"].is_number());
  EXPECT_TRUE(depth["inside"].is_boolean());
}

TEST_F(Lab, AHeaderIsEnough) {
  // The first of three parts, its data not yet there.
  model::TestModel model("qwen3");
  model.keys["general.file_type"] = 7U;  // Q8_0
  const std::vector<std::string> parts = model.WriteParts(folder_, 3);
  const auto predicted = [&] { return Json("predict " + parts[0] + " --no-record --ladder " + Rows()); };
  const json whole = predicted();
  std::filesystem::remove(parts[1]);
  std::filesystem::remove(parts[2]);
  std::filesystem::resize_file(parts[0], gguf::File::Open(parts[0], {.one_part = true})->data_offset());
  const json first = predicted();
  EXPECT_EQ(first["weight_bytes"], whole["weight_bytes"]);
  EXPECT_EQ(first["depths"][1]["kv_bytes"], whole["depths"][1]["kv_bytes"]);
  EXPECT_EQ(first["tok_s"], whole["tok_s"]);
  const std::string why = first["depths"][0]["extrapolations"][0];
  EXPECT_NE(why.find("in parts that are not here"), std::string::npos) << why;
  // What nobody can run is not checked, and no rung of a ladder.
  EXPECT_EQ(Run("predict " + parts[0] + " --check --ladder " + Rows()).status, 2);
  EXPECT_EQ(Run("ladder " + parts[0]).status, 1);
}

TEST_F(Lab, BytesThatAreStatedTakeTheFilesPlace) {
  ASSERT_EQ(Run("synth tiny-llama:Q4_K_M --out " + folder_ + "/model.gguf").status, 0);
  const json document = Json("predict " + folder_ + "/model.gguf --bytes 5e7 --no-record --ladder " + Rows());
  EXPECT_EQ(document["weight_bytes"], 5e7);
  EXPECT_EQ(document["architecture"], "llama");
  EXPECT_EQ(Run("predict tiny-llama:Q4_K_M --bytes 5e7 --ladder " + Rows()).status, 2);
}

}  // namespace
}  // namespace boltbeam
