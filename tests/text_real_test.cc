// `run` and `perplexity` on a real model: sensible text, the same at any number of threads, figures that hold together.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "boltbeam_program.h"
#include "real_model.h"

namespace boltbeam {
namespace {

using Json = nlohmann::json;

// Standard output of a command that has to succeed.
std::string Output(const std::string& arguments) {
  const ProgramOutcome outcome = RunBoltbeam(arguments + " 2>/dev/null");
  EXPECT_EQ(outcome.status, 0) << arguments << "\n" << RunBoltbeam(arguments).output;
  return outcome.output;
}

std::string Model() { return RealModelPath("smollm2"); }

TEST(RunReal, WritesSensibleText) {
  BOLTBEAM_NEED_REAL_MODEL("smollm2");
  EXPECT_EQ(Output("run " + Model() + " -t 1 -n 2 -p 'The capital of France is'"), " Paris.\n");
  const std::string prompt = testing::TempDir() + "boltbeam_prompt_" + std::to_string(getpid());
  std::ofstream(prompt) << "<|im_start|>user\nName the capital of Italy.<|im_end|>\n<|im_start|>assistant\n";
  const Json chat = Json::parse(Output("run " + Model() + " -t 1 -n 60 -o json -f " + prompt));
  std::filesystem::remove(prompt);
  EXPECT_EQ(chat["stop_reason"], "stop_token");
  EXPECT_EQ(chat["text"], "The capital of Italy is Rome.");
  EXPECT_GT(chat["decode_tok_s"].get<double>(), 0);
}

// Norms after a block, GELU, sliding windows, SentencePiece; llama-completion writes the same.
TEST(RunReal, WritesSensibleTextWithSlidingWindows) {
  BOLTBEAM_NEED_REAL_MODEL("gemma3");
  EXPECT_EQ(Output("run " + RealModelPath("gemma3") + " -t 1 -n 12 -p 'Monday, Tuesday, Wednesday,'"),
            " Thursday, Friday, Saturday, Sunday, and Monday, Tuesday\n");
}

void ExpectTheSameTokensAtOneAndTwoThreads(const std::string& model) {
  for (const char* sampling : {"", " --temp 0.9 --seed 11"}) {
    const std::string common = "run " + model + " -n 24 -p 'Once upon a time'" + sampling;
    EXPECT_EQ(Output(common + " -t 1"), Output(common + " -t 2"));
  }
}

TEST(RunReal, TheSameTokensAtOneAndTwoThreads) {
  BOLTBEAM_NEED_REAL_MODEL("smollm2");
  ExpectTheSameTokensAtOneAndTwoThreads(Model());
}

TEST(RunReal, TheSameTokensAtOneAndTwoThreadsWithSlidingWindows) {
  BOLTBEAM_NEED_REAL_MODEL("gemma3");
  ExpectTheSameTokensAtOneAndTwoThreads(RealModelPath("gemma3"));
}

TEST(RunReal, StopsCleanlyWhenInterrupted) {
  BOLTBEAM_NEED_REAL_MODEL("smollm2");
  const ProgramOutcome outcome = RunBoltbeam(
      "run " + Model() + " -t 1 -n 100000 -c 8192 -p 'Once upon a time' & pid=$!; sleep 2; kill -INT $pid; wait $pid");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("boltbeam: run: stopped"), std::string::npos) << outcome.output;
}

TEST(PerplexityReal, AgreesWithItselfThroughAFileOfLogits) {
  BOLTBEAM_NEED_REAL_MODEL("smollm2");
  const std::string base = testing::TempDir() + "boltbeam_base_" + std::to_string(getpid());
  const std::string text = " -t 1 -c 128 --chunks 2 -o json -f " BOLTBEAM_TEST_DATA "/prose.txt";
  const Json written = Json::parse(Output("perplexity " + Model() + text + " --save-base " + base));
  EXPECT_EQ(written["tokens"], 2 * 63);
  EXPECT_GT(written["perplexity"], 5);
  EXPECT_LT(written["perplexity"], 80);
  for (const char* how : {"", " --token-by-token"}) {
    const Json again =
        Json::parse(Output("perplexity " + Model() + " -t 1 -o json --kl-divergence-base " + base + how));
    EXPECT_NEAR(again["perplexity"].get<double>(), written["perplexity"].get<double>(), 1e-4);
    EXPECT_LT(std::abs(again["kl_mean"].get<double>()), 1e-5);
    EXPECT_GE(again["top1_agreement"], 0.98);
    for (const Json& miss : again["misses"]) EXPECT_LT(miss["gap"], 2.5e-4) << miss.dump();
  }
  std::filesystem::remove(base);
}

}  // namespace
}  // namespace boltbeam
