// `run` and `perplexity` from the command line: what they refuse, with one line and the right exit status.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "test_model.h"

namespace boltbeam {
namespace {

struct Outcome {
  int status = -1;
  std::string output;  // stdout and stderr
};

Outcome Boltbeam(const std::string& arguments) {
  Outcome outcome;
  FILE* pipe = popen((std::string(BOLTBEAM_PROGRAM) + " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  while (const std::size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), bytes);
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

void ExpectRefused(const std::string& arguments, int status, const std::string& says) {
  const Outcome outcome = Boltbeam(arguments);
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
  ExpectRefused("run x.gguf -p hi --ctk q8_0", 2, "ctk");
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

}  // namespace
}  // namespace boltbeam
