// `run` and `perplexity` from the command line: what they refuse, with one line and the right exit status.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "boltbeam_program.h"
#include "test_model.h"

namespace boltbeam {
namespace {

void ExpectRefused(const std::string& arguments, int status, const std::string& says) {
  const ProgramOutcome outcome = RunBoltbeam(arguments);
  EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
  EXPECT_NE(outcome.output.find(says), std::string::npos) << arguments << "\n" << outcome.output;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
}

TEST(RunCommand, RefusesWhatItCannotDoInOneLine) {
  ExpectRefused("run", 2, "model");
  ExpectRefused("run x.gguf -p hi -t -1", 2, "threads");
  ExpectRefused("run x.gguf -p hi -t 0", 2, "threads");
  ExpectRefused("run x.gguf -p hi -n -5", 2, "n-predict");
  ExpectRefused("run x.gguf -p hi --temp -1", 2, "temperature");
  ExpectRefused("run x.gguf -p hi --top-p 0", 2, "top-p");
  ExpectRefused("run x.gguf -p hi --ctk q4_0", 2, "ctk");
  ExpectRefused("run /nonexistent.gguf -p hi", 1, "/nonexistent.gguf");
}

TEST(RunCommand, SaysWhyAFileWithoutTokenizerDoesNotRun) {
  model::TestModel file("llama");
  const std::string path = file.Write();
  ExpectRefused("run " + path + " -p hi", 1, "holds no tokenizer");
  ExpectRefused("perplexity " + path + " -f " + path, 1, "holds no tokenizer");
}

TEST(PerplexityCommand, RefusesWhatItCannotDoInOneLine) {
  ExpectRefused("perplexity x.gguf", 2, "-f");
  ExpectRefused("perplexity x.gguf -f text -c 2", 2, "ctx-size");
  ExpectRefused("perplexity x.gguf -f text -t -4", 2, "threads");
  ExpectRefused("perplexity x.gguf -f text --chunks 0", 2, "chunks");
  ExpectRefused("perplexity /nonexistent.gguf -f text", 1, "/nonexistent.gguf");
}

TEST(PerplexityCommand, RefusesABaseThatIsNone) {
  model::TestModel file("llama");
  const std::string path = file.Write();
  ExpectRefused("perplexity " + path + " --kl-divergence-base /nonexistent.base", 1, "/nonexistent.base");
  ExpectRefused("perplexity " + path + " --kl-divergence-base " + path, 1, "no file of logits");
}

TEST(BenchCommand, RefusesWhatItCannotDoInOneLine) {
  ExpectRefused("bench x.gguf -p 0 -n 0", 2, "-p, -n");
  ExpectRefused("bench x.gguf -ctk f16,q3_k", 2, "f16, f32, q8_0");
  ExpectRefused("bench x.gguf -ctv ''", 2, "-ctv");
}

TEST(PerplexityCommand, SaysThatAContextIsLongerThanTheModels) {
  const std::string path = testing::TempDir() + "boltbeam_context_" + std::to_string(getpid());
  ASSERT_EQ(RunBoltbeam("synth tiny-llama:Q8_0 --tokenizer --out " + path + ".gguf").status, 0);
  std::ofstream(path + ".txt") << "A short text.";
  const ProgramOutcome outcome = RunBoltbeam("perplexity " + path + ".gguf -t 1 -c 70000 -f " + path + ".txt");
  std::filesystem::remove(path + ".gguf");
  std::filesystem::remove(path + ".txt");
  EXPECT_NE(outcome.output.find("warning: a context of 70000 tokens"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace boltbeam
