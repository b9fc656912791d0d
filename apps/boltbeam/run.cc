#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/paths.h"
#include "base/ticks.h"
#include "command.h"
#include "engine/sampler.h"
#include "loading.h"
#include "model/tokenizer.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::string model, prompt, prompt_file;
  bool has_prompt = false;
  std::uint32_t tokens = 128;
  std::uint64_t context = 0;
  EngineFlags engine;
  engine::SamplerOptions sampler{.temperature = 0, .top_k = 40, .top_p = 0.95, .min_p = 0.05, .seed = 0};
  bool verbose = false;
};

// What one run did.
struct Outcome {
  std::string text, stop_reason;
  std::uint64_t prompt_tokens = 0, generated_tokens = 0;
  std::uint64_t prompt_ns = 0, decode_ns = 0, decoded_tokens = 0;
};

double Rate(std::uint64_t tokens, std::uint64_t ns) {
  constexpr double kSecondNs = 1e9;
  return ns == 0 ? 0 : static_cast<double>(tokens) * kSecondNs / static_cast<double>(ns);
}

Result<std::string> PromptText(const Arguments& arguments) {
  if (arguments.has_prompt && !arguments.prompt_file.empty()) {
    return Fail(Code::kUsage, "-p, -f", "both", "one of them: the prompt, or the file that holds it");
  }
  if (arguments.has_prompt) return arguments.prompt;
  if (arguments.prompt_file.empty()) return Fail(Code::kUsage, "-p", "no prompt", "-p TEXT or -f FILE");
  return base::ReadWholeFile(arguments.prompt_file);
}

Result<std::vector<std::int32_t>> PromptTokens(const Arguments& arguments, const model::Tokenizer& tokenizer) {
  BOLTBEAM_ASSIGN(const std::string text, PromptText(arguments));
  BOLTBEAM_ASSIGN(std::vector<std::int32_t> tokens, tokenizer.Encode(text, {.parse_special = true}));
  if (tokens.empty() && tokenizer.bos()) tokens.push_back(*tokenizer.bos());
  if (tokens.empty()) return Fail(Code::kUsage, "-p", "an empty prompt", "text for the model to go on from");
  return tokens;
}

// Positions of the KV cache: as many as this run can fill, unless -c says otherwise.
Result<std::uint64_t> ContextSize(const Arguments& arguments, const model::HyperParameters& hyper,
                                  std::uint64_t prompt) {
  const std::uint64_t wanted = prompt + arguments.tokens;
  const std::uint64_t context =
      arguments.context != 0 ? arguments.context : std::min<std::uint64_t>(wanted, hyper.context);
  if (prompt > context) {
    return Fail(Code::kUsage, arguments.context != 0 ? "-c" : "-p",
                fmt::format("a prompt of {} tokens and a context of {}", prompt, context),
                "a context that holds the prompt: a larger -c, or a shorter text");
  }
  return context;
}

// Writes text as it comes, or keeps it for the end. A terminal is spared the control characters of a model's output.
class Printer {
 public:
  explicit Printer(bool streaming) : streaming_(streaming), terminal_(isatty(STDOUT_FILENO) != 0) {}

  Result<void> Write(const std::string& text) {
    text_ += text;
    return streaming_ ? Put(text) : Result<void>();
  }
  Result<void> EndLine() { return streaming_ && !text_.ends_with('\n') ? Put("\n") : Result<void>(); }
  std::string Take() { return std::move(text_); }

 private:
  Result<void> Put(std::string text) const {
    if (terminal_) {
      std::erase_if(text, [](char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f'; });
    }
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
    return Fail(Code::kFileWrite, "stdout", std::strerror(errno), "an output that can be written to");
  }

  bool streaming_, terminal_;
  std::string text_;
};

Result<void> ReadPrompt(engine::Session& session, const std::vector<std::int32_t>& tokens, std::uint32_t batch,
                        Outcome& outcome) {
  Progress progress("reading the prompt");
  const std::uint64_t begin = base::MonotonicNs();
  for (std::size_t at = 0; at < tokens.size(); at += batch) {
    if (Interrupted()) return Fail(Code::kInterrupted, "run", "stopped while reading the prompt");
    progress.Show(at, tokens.size());
    BOLTBEAM_TRY(session.Prompt(std::span(tokens).subspan(at, std::min<std::size_t>(batch, tokens.size() - at))));
  }
  outcome.prompt_tokens = tokens.size();
  outcome.prompt_ns = base::MonotonicNs() - begin;
  return {};
}

Result<void> Generate(engine::Session& session, const model::Tokenizer& tokenizer, const Arguments& arguments,
                      std::uint64_t context, Printer& printer, Outcome& outcome) {
  BOLTBEAM_ASSIGN(engine::Sampler sampler, engine::Sampler::Make(arguments.sampler));
  model::StreamDecoder decoder(tokenizer);
  outcome.stop_reason = "length";
  while (outcome.generated_tokens < arguments.tokens) {
    if (Interrupted()) {
      return Fail(Code::kInterrupted, "run", fmt::format("stopped after {} tokens", outcome.generated_tokens));
    }
    BOLTBEAM_ASSIGN(const std::int32_t token, sampler.Sample(session.logits()));
    if (tokenizer.IsStop(token)) {
      outcome.stop_reason = "stop_token";
      break;
    }
    ++outcome.generated_tokens;
    BOLTBEAM_TRY(printer.Write(decoder.Push(token)));
    if (outcome.generated_tokens == arguments.tokens) break;  // nobody asks for the logits after the last one
    if (session.depth() >= context) {
      outcome.stop_reason = "context";
      break;
    }
    const std::uint64_t begin = base::MonotonicNs();
    BOLTBEAM_TRY(session.Decode(token));
    outcome.decode_ns += base::MonotonicNs() - begin;
    ++outcome.decoded_tokens;
  }
  return printer.Write(decoder.Flush());
}

std::string Json(const Arguments& arguments, const engine::Engine& engine, const std::string& why_threads,
                 const Outcome& outcome) {
  const engine::MemoryUse memory = engine.memory();
  nlohmann::ordered_json json;
  json["schema"] = "boltbeam.run.v1";
  json["model"] = arguments.model;
  json["threads"] = engine.options().threads;
  json["threads_why"] = why_threads;
  json["context"] = engine.options().context;
  json["temperature"] = arguments.sampler.temperature;
  json["seed"] = arguments.sampler.seed;
  json["text"] = outcome.text;
  json["stop_reason"] = outcome.stop_reason;
  json["prompt_tokens"] = outcome.prompt_tokens;
  json["prompt_ns"] = outcome.prompt_ns;
  json["prompt_tok_s"] = Rate(outcome.prompt_tokens, outcome.prompt_ns);
  json["generated_tokens"] = outcome.generated_tokens;
  json["decode_tokens"] = outcome.decoded_tokens;
  json["decode_ns"] = outcome.decode_ns;
  json["decode_tok_s"] = Rate(outcome.decoded_tokens, outcome.decode_ns);
  json["weights_bytes"] = memory.weights_bytes;
  json["huge_page_bytes"] = memory.huge_page_bytes;
  json["kv_bytes"] = memory.kv_bytes;
  json["workspace_bytes"] = memory.workspace_bytes;
  // A model may stop in the middle of a character.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void PrintTimings(const engine::Engine& engine, const Outcome& outcome) {
  Note(fmt::format("prompt {} tokens, {:.1f} tok/s; generated {}, decode {:.1f} tok/s; {}", outcome.prompt_tokens,
                   Rate(outcome.prompt_tokens, outcome.prompt_ns), outcome.generated_tokens,
                   Rate(outcome.decoded_tokens, outcome.decode_ns), DescribeMemory(engine.memory())));
}

Result<void> Run(const Arguments& arguments, const Globals& globals) {
  BOLTBEAM_TRY(engine::Sampler::Make(arguments.sampler));
  CatchInterrupts();
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  BOLTBEAM_ASSIGN(const model::Tokenizer tokenizer, model::Tokenizer::Make(model.file()));
  for (const std::string& warning : tokenizer.warnings()) Note("warning: " + warning);
  BOLTBEAM_ASSIGN(const std::vector<std::int32_t> tokens, PromptTokens(arguments, tokenizer));
  BOLTBEAM_ASSIGN(const std::uint64_t context, ContextSize(arguments, model.hyper(), tokens.size()));
  BOLTBEAM_ASSIGN(const std::unique_ptr<engine::Engine> engine, LoadEngine(globals, model, arguments.engine, context));
  BOLTBEAM_ASSIGN(const std::unique_ptr<engine::Session> session, engine->NewSession());
  if (arguments.verbose) {
    Note(fmt::format("{} threads, {} steps in {} phases, plan {}", engine->options().threads, engine->steps().size(),
                     engine->phases(), engine->plan_id()));
  }
  Outcome outcome;
  BOLTBEAM_TRY(ReadPrompt(*session, tokens, engine->options().prompt_batch, outcome));
  const bool json = globals.format == "json";
  Printer printer(!json && globals.out_file.empty());
  const Result<void> generated = Generate(*session, tokenizer, arguments, context, printer, outcome);
  BOLTBEAM_TRY(printer.EndLine());
  BOLTBEAM_TRY(generated);
  outcome.text = printer.Take();
  if (json) {
    BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(base::ResolvePaths(globals.home).data.string()));
    const std::string why = WhyThreads(machine, arguments.engine);
    BOLTBEAM_TRY(WriteOutput(globals, Json(arguments, *engine, why, outcome)));
  }
  if (!json && !globals.out_file.empty()) BOLTBEAM_TRY(WriteOutput(globals, outcome.text));
  PrintTimings(*engine, outcome);
  return NoteThreads(globals, arguments.engine, *engine);
}

}  // namespace

void AddRun(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("run", "Generate text");
  constexpr std::int64_t kMost = 1 << 24;
  command->add_option("-m,--model,model", arguments->model, "GGUF file")->required();
  command->add_option("-p,--prompt", arguments->prompt, "Text to go on from; control tokens may be written out")
      ->each([arguments](const std::string&) { arguments->has_prompt = true; });
  command->add_option("-f,--file", arguments->prompt_file, "File that holds the prompt");
  command->add_option("-n,--n-predict", arguments->tokens, "Tokens to generate at most")
      ->check(CLI::Range(std::int64_t{0}, kMost))
      ->capture_default_str();
  command->add_option("-c,--ctx-size", arguments->context, "Positions of the KV cache (what the run needs)")
      ->check(CLI::Range(std::int64_t{1}, kMost));
  arguments->engine.Add(*command);
  command->add_option("--temp", arguments->sampler.temperature, "Temperature; 0 takes the most probable token")
      ->capture_default_str();
  command->add_option("--top-k", arguments->sampler.top_k, "Draw from the K most probable tokens; 0: from all")
      ->check(CLI::Range(std::int64_t{0}, kMost))
      ->capture_default_str();
  command->add_option("--top-p", arguments->sampler.top_p, "... that have this probability together; 1: no limit")
      ->capture_default_str();
  command->add_option("--min-p", arguments->sampler.min_p, "... and this share of the largest one's; 0: no limit")
      ->capture_default_str();
  command->add_option("-s,--seed", arguments->sampler.seed, "Seed of the draws")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("-v,--verbose", arguments->verbose, "Say on stderr what runs");
  AddOutputFlags(*command, globals, {"text", "json"});
  command->callback([arguments, &globals] { Finish(globals, Run(*arguments, globals)); });
}

}  // namespace boltbeam::app
