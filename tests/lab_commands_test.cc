// The lab's commands as a person types them: rows, line, card and price.
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "lab_fixture.h"

namespace boltbeam {
namespace {

using nlohmann::json;

TEST_F(Lab, FitReadsTheLabsFilesAsTheyAre) {
  const ProgramOutcome outcome = Run("fit " + Rows());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.output.find("5 dense models: fixed 1.6"), std::string::npos) << outcome.output;
  const json fit = Json("fit " + Rows());
  EXPECT_NEAR(fit["fixed_ms"].get<double>(), 1.67, 0.1);
  EXPECT_NEAR(fit["bandwidth_gb_s"].get<double>(), 497, 10);
  EXPECT_TRUE(fit.contains("worst_residual_ms"));
}

TEST_F(Lab, ACardInEveryForm) {
  EXPECT_NE(Run("card " + Rows()).output.find("fitted bandwidth"), std::string::npos);
  EXPECT_NEAR(Json("card " + Rows())["cards"][0]["fixed_ms"].get<double>(), 1.67, 0.1);
  EXPECT_NE(Run("card -o svg " + Rows()).output.find("<svg"), std::string::npos);
  EXPECT_EQ(Run("card -o png " + Rows()).status, 2);
  const std::string png = folder_ + "/card.png";
  const ProgramOutcome outcome = Run("card -o png --out " + png + " " + Rows());
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(ReadText(png).starts_with("\x89PNG"));
}

TEST_F(Lab, PriceNeedsNothingButARate) {
  EXPECT_NEAR(Json("price --rate 247.8")["usd_per_million"].get<double>(), 3.3629, 1e-4);
  EXPECT_NEAR(Json("price --rate 247.8 --floor-rate 363.54")["usd_per_million_at_floor"].get<double>(), 2.2923, 1e-4);
  EXPECT_NE(Run("price --rate 100 -o html").output.find("<svg"), std::string::npos);
  for (const char* nonsense : {"--rate 0", "--rate -5", "--rate nan", "--rate inf", "--rate 9 --load 2",
                               "--rate 9 --rent 0", "--rate 9 --batch 0", "--rate 9 --fee 200", "--rate fast", ""}) {
    const ProgramOutcome outcome = Run(std::string("price ") + nonsense);
    EXPECT_EQ(outcome.status, 2) << nonsense << ": " << outcome.output;
  }
  EXPECT_NE(Run("price --rate 9 --load 2").output.find("load: 2"), std::string::npos);
  // What it takes for granted, written down, edited and given back.
  std::string written = Run("price --rate 9 -o json").output;
  const std::string watts = "\"value\": 500.0";
  ASSERT_NE(written.find(watts), std::string::npos) << written;
  written.replace(written.find(watts), watts.size(), "\"value\": 700");
  std::ofstream(folder_ + "/prices.json") << written;
  EXPECT_EQ(Json("price --rate 9 --prices " + folder_ + "/prices.json")["inputs"][2]["value"], 700);
}

TEST_F(Lab, AFlagThatIsNoNumberIsRefusedByName) {
  const std::string predict = "predict --no-record --ladder " + Rows() + " --bytes ";
  for (const std::string& command :
       {predict + "nan", predict + "1e9 --at nan", predict + "1e9 --rate nan", predict + "1e9 --streamed nan",
        predict + "1e9 --between nan", predict + "1e9 --fixed-ms nan --bandwidth 9", "fit --reached nan " + Rows(),
        std::string("ladder --synth tiny-llama:Q4_K_M --seconds nan")}) {
    const ProgramOutcome outcome = Run(command);
    EXPECT_EQ(outcome.status, 2) << command << ": " << outcome.output;
    EXPECT_NE(outcome.output.find(": nan; expected a number from"), std::string::npos) << outcome.output;
  }
}

TEST_F(Lab, RowsThatAreWrongAreNamed) {
  std::ofstream(folder_ + "/bad.jsonl")
      << R"({"experiment":"ladder","alias":"a","device":"d","model":"m","weight_bytes_per_token":1e9,"generation_tps":0})"
      << "\n";
  const ProgramOutcome outcome = Run("fit " + folder_ + "/bad.jsonl");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("bad.jsonl:1: generation_tps: 0"), std::string::npos) << outcome.output;
  EXPECT_EQ(Run("fit").status, 2);  // no ladder was run in this home
  EXPECT_EQ(Run("ladder").status, 2);
  EXPECT_EQ(Run("predict").status, 2);
  EXPECT_EQ(Run("ladder x.gguf --no-engine").status, 1);  // no such file
}

// A ladder of tiny models, through this engine and through a command, stopped and gone on with.
TEST_F(Lab, ALadderThatGoesOn) {
  std::string synth;
  for (const char* layers : {"1", "2", "3", "4"}) synth += std::string(" --synth tiny-llama:Q4_K_M/") + layers;
  const std::string file = folder_ + "/ours.jsonl";
  const std::string ladder = "ladder" + synth + " --file " + file +
                             " --alias here --seconds 0.05 -t 1 --command 'test " +
                             "-e {} && echo 100 tok/s' --name echo --passes ";
  ASSERT_EQ(Run(ladder + "1").status, 0);
  const ProgramOutcome second = Run(ladder + "2");
  ASSERT_EQ(second.status, 0);
  EXPECT_NE(second.output.find(" of 16 visits"), std::string::npos) << second.output;
  std::istringstream lines(ReadText(file));
  std::set<std::string> visits;
  std::size_t rows = 0, echoed = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    const json row = json::parse(line);
    EXPECT_EQ(row["alias"], "here");
    EXPECT_GT(row["streamed_gb_s"][0].get<double>(), 0);
    EXPECT_GT(row["generation_tps"].get<double>(), 0);
    visits.insert(row["engine"].get<std::string>() + row["model"].get<std::string>() + row["pass"].dump());
    echoed += row["engine"] == "echo" ? 1 : 0;
  }
  EXPECT_EQ(visits.size(), rows);  // none twice
  EXPECT_EQ(echoed, 8U);           // a visit of the engine that was disturbed is no row
  // The same visits with other settings are not done.
  const ProgramOutcome other = Run(ladder + "1 --isa avx2");
  EXPECT_EQ(other.status, 0);
  EXPECT_NE(other.output.find("isa native instead of avx2"), std::string::npos) << other.output;
}

TEST_F(Lab, AnImportIsTakenOnce) {
  const std::string import = "ladder --file " + folder_ + "/i.jsonl --alias there --import " + BOLTBEAM_TEST_DATA +
                             std::string("/lab/llama-bench.json");
  const ProgramOutcome first = Run(import), second = Run(import);
  EXPECT_EQ(first.status, 0) << first.output;
  EXPECT_EQ(second.status, 0);
  EXPECT_NE(second.output.find("0 of "), std::string::npos) << second.output;
  EXPECT_NE(second.output.find("were there already"), std::string::npos);
}

// Another release of a program is another line. The one that ran last foretells, and any can be asked for.
TEST_F(Lab, ThereAreSeveralLines) {
  const std::string file = folder_ + "/several.jsonl";
  std::ofstream rows(file);
  for (const auto& [release, threads, date, ms] :
       {std::tuple("1.0", 2, "2026-10-01T10:00:00Z", 5.0), std::tuple("1.1", 2, "2026-11-01T10:00:00Z", 1.0)}) {
    for (int i = 1; i <= 4; ++i) {
      const double seconds = ms * 1e-3 + i / 100.0 + 1e-6 * (i % 2);
      rows << json{{"experiment", "ladder"},
                   {"alias", "here"},
                   {"device", "a chip"},
                   {"model", "m" + std::to_string(i)},
                   {"engine", "runner"},
                   {"engine_version", release},
                   {"threads", threads},
                   {"date", date},
                   {"weight_bytes_per_token", 1e9 * i},
                   {"generation_tps", 1 / seconds}}
           << "\n";
    }
  }
  rows.close();
  const std::string predict = "predict --bytes 2e9 --no-record --ladder " + file;
  EXPECT_NEAR(Json(predict)["fixed_ms"].get<double>(), 1, 0.01);
  EXPECT_NE(Run(predict).output.find("rows of runner 1.0 are not used"), std::string::npos);
  EXPECT_NEAR(Json(predict + " --line 'runner 1.0'")["fixed_ms"].get<double>(), 5, 0.01);
  EXPECT_EQ(Json("fit " + file)["machines"].size(), 2U);
  EXPECT_EQ(Json("card --line 'runner 1.1' " + file)["cards"].size(), 1U);
  const std::string table = Run("fit " + file).output;
  EXPECT_NE(table.find("runner 1.0"), std::string::npos) << table;
  // Other threads are no release: somebody has to say which.
  std::ofstream(file, std::ios::app) << std::ifstream(Rows()).rdbuf();
  const ProgramOutcome several = Run(predict);
  EXPECT_EQ(several.status, 2);
  EXPECT_NE(
      several.output.find("--line: 2 lines; expected a text that only one has: here, a chip, runner 1.1, 2 threads"),
      std::string::npos)
      << several.output;
  EXPECT_NEAR(Json(predict + " --line office")["fixed_ms"].get<double>(), 1.67, 0.1);
  EXPECT_EQ(Run("fit --line nothing " + file).status, 2);
}

// Beyond M* more sequences make no more tokens, and bound says where that is.
TEST_F(Lab, ABatchIsBoundedAsBoundDoes) {
  const std::string model = folder_ + "/m.gguf";
  ASSERT_EQ(Run("synth qwen3-0.6b:Q4_K_M --layers 2 --sparse --out " + model).status, 0);
  const auto limit = [&](const std::string& batch) {
    const json bound = Json("bound " + model + " --chip apple-m3-10c --depth 512 --batch " + batch);
    return bound["limit_tok_s"].get<double>();
  };
  const auto price = [&](const std::string& batch) {
    return Json("price " + model + " --chip apple-m3-10c --depth 512 --rate 50 --batch " + batch);
  };
  const double one = limit("1"), many = limit("256");
  EXPECT_NEAR(price("1")["floor_tok_s"].get<double>(), one, 1e-6 * one);
  const json together = price("256");
  EXPECT_NEAR(together["floor_tok_s"].get<double>(), many, 1e-6 * many);
  EXPECT_NEAR(together["tok_s"].get<double>(), 50 / one * many, 1e-6 * many);
  EXPECT_LT(together["tok_s"].get<double>(), 0.5 * 256 * 50);  // far fewer than 256 times as many
}

TEST_F(Lab, ManualPagesAndCompletions) {
  ASSERT_EQ(Run("manual " + folder_ + "/manual").status, 0);
  const std::string page = ReadText(folder_ + "/manual/man1/boltbeam-fit.1");
  EXPECT_TRUE(page.starts_with(".TH boltbeam\\-fit 1")) << page.substr(0, 100);
  EXPECT_NE(page.find("\\-\\-confidence"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/manual/man1/boltbeam.1"));
  const std::string script = "bash -c '. " + folder_ +
                             "/manual/completions/boltbeam; COMP_WORDS=(boltbeam chip mea); COMP_CWORD=2; _boltbeam; "
                             "echo \"${COMPREPLY[@]}\"'";
  FILE* pipe = popen(script.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char line[256] = {};
  EXPECT_NE(fgets(line, sizeof line, pipe), nullptr);
  pclose(pipe);
  EXPECT_EQ(std::string(line), "measure\n");
}

}  // namespace
}  // namespace boltbeam
