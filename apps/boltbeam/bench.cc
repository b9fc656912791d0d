#include "measure/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>

#include "command.h"
#include "engine/engine.h"
#include "loading.h"
#include "measure/environment.h"
#include "report/bench_format.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::vector<std::string> models, prompts, generated, depths, pairs, threads, cache_k, cache_v;
  std::string format = "md";
  RouteFlags routes;
  std::string isa;
  std::uint32_t repetitions = 5;
  double delay_s = 0;
  bool no_warm_up = false;
  std::string ignored;  // values of llama-bench's flags that this engine has no setting for
  std::string refused;  // the first of those flags
};

// llama-bench's flags without a meaning here: refused by name, so that a script does not believe they took effect.
constexpr std::array<std::string_view, 26> kRefused = {"--n-gpu-layers,--ngl",
                                                       "--n-cpu-moe,--ncmoe",
                                                       "--split-mode,--sm",
                                                       "--main-gpu,--mg",
                                                       "--no-kv-offload,--nkvo",
                                                       "--flash-attn,--fa",
                                                       "--device,--dev",
                                                       "--load-mode,--lm",
                                                       "--lazy-mode,--lzm",
                                                       "--mmap,--mmp",
                                                       "--embeddings,--embd",
                                                       "--tensor-split,--ts",
                                                       "--override-tensor,--ot",
                                                       "--no-op-offload,--nopo",
                                                       "--no-host",
                                                       "--batch-size,-b",
                                                       "--ubatch-size,--ub",
                                                       "--cpu-mask,-C",
                                                       "--cpu-strict",
                                                       "--poll",
                                                       "--numa",
                                                       "--prio",
                                                       "--hf-repo,--hf",
                                                       "--rpc",
                                                       "--repack",
                                                       "--fit-target"};

Result<std::vector<std::uint64_t>> ParseAll(std::string_view flag, const std::vector<std::string>& texts,
                                            std::uint64_t fallback) {
  std::vector<std::uint64_t> values;
  for (const std::string& text : texts) {
    BOLTBEAM_ASSIGN(const std::vector<std::uint64_t> more, measure::ParseRanges(flag, text));
    values.insert(values.end(), more.begin(), more.end());
  }
  if (texts.empty()) values.push_back(fallback);
  return values;
}

/// Lists of names by comma; nothing leaves the default.
Result<void> ParseCacheTypes(std::string_view flag, const std::vector<std::string>& lists,
                             std::vector<const formats::Format*>& types) {
  if (!lists.empty()) types.clear();
  for (std::string_view rest : lists) {
    for (bool more = true; more;) {
      const std::size_t comma = rest.find(',');
      BOLTBEAM_ASSIGN(const formats::Format* type, model::FindCacheFormat(flag, rest.substr(0, comma)));
      types.push_back(type);
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
    }
  }
  return {};
}

Result<measure::BenchRequest> BuildRequest(const Arguments& arguments) {
  measure::BenchRequest request;
  constexpr std::uint64_t kPrompt = 512, kGenerated = 128;  // llama-bench's defaults
  BOLTBEAM_ASSIGN(request.prompts, ParseAll("-p", arguments.prompts, kPrompt));
  BOLTBEAM_ASSIGN(request.generated, ParseAll("-n", arguments.generated, kGenerated));
  BOLTBEAM_ASSIGN(request.depths, ParseAll("-d", arguments.depths, 0));
  BOLTBEAM_ASSIGN(request.threads, ParseAll("-t", arguments.threads, 0));
  constexpr std::uint64_t kMostThreads = 1024;
  for (const std::uint64_t threads : request.threads) {
    if (threads > kMostThreads || (threads == 0 && !arguments.threads.empty())) {
      return Fail(Code::kUsage, "-t", std::to_string(threads), "a number of threads from 1 to 1024");
    }
  }
  for (const std::string& text : arguments.pairs) {
    BOLTBEAM_ASSIGN(const auto pair, measure::ParsePromptThenGenerated(text));
    request.prompt_then_generated.push_back(pair);
  }
  BOLTBEAM_TRY(ParseCacheTypes("-ctk", arguments.cache_k, request.keys));
  BOLTBEAM_TRY(ParseCacheTypes("-ctv", arguments.cache_v, request.values));
  if (measure::BuildBenchTests(request).empty()) {
    return Fail(Code::kUsage, "-p, -n", "0 and 0", "a test that computes tokens: -p, -n or -pg above 0");
  }
  request.repetitions = arguments.repetitions;
  request.delay_s = arguments.delay_s;
  request.warm_up = !arguments.no_warm_up;
  return request;
}

EngineFlags FlagsFor(const Arguments& arguments, const measure::BenchTest& test) {
  EngineFlags flags;
  flags.threads = test.threads;
  flags.cache_k = model::CacheFormatName(*test.cache.keys);
  flags.cache_v = model::CacheFormatName(*test.cache.values);
  flags.routes = arguments.routes;
  flags.isa = arguments.isa;
  return flags;
}

// Where rows go as they are finished: stdout, or one whole file at the end.
class Sink {
 public:
  explicit Sink(const Globals& globals) : globals_(globals) {}
  Result<void> Write(const std::string& text) {
    if (globals_.out_file.empty()) return WriteOutput(globals_, text);
    text_ += text;
    return {};
  }
  Result<void> Finish() { return globals_.out_file.empty() ? Result<void>() : WriteOutput(globals_, text_); }

 private:
  const Globals& globals_;
  std::string text_;
};

struct Run {
  const Arguments& arguments;
  const Globals& globals;
  measure::BenchRequest request;
  report::BenchFormat format;
  Sink sink;
  std::uint32_t done = 0, total = 0;
};

Result<void> BenchModel(Run& run, const std::string& path) {
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(path));
  BOLTBEAM_TRY(measure::RefuseSparse(model));
  BOLTBEAM_ASSIGN(report::BenchSubject subject, report::DescribeModel(model));
  subject.cpu_info = measure::ReadEnvironment().cpu_model;
  if (!run.arguments.isa.empty()) subject.cpu_info += fmt::format(" held to {}", run.arguments.isa);
  const std::vector<measure::BenchTest> tests = measure::BuildBenchTests(run.request);
  std::uint64_t context = 0;
  for (const measure::BenchTest& test : tests) context = std::max(context, test.Positions());
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<engine::Session> session;
  const measure::BenchTest* loaded = nullptr;  // whose settings the engine has
  for (const measure::BenchTest& test : tests) {
    if (loaded == nullptr || test.threads != loaded->threads || test.cache != loaded->cache) {
      session.reset();
      engine.reset();
      BOLTBEAM_ASSIGN(engine, LoadEngine(run.globals, model, FlagsFor(run.arguments, test), context));
      BOLTBEAM_ASSIGN(session, engine->NewSession());
      loaded = &test;
      BOLTBEAM_TRY(NoteThreads(run.globals, FlagsFor(run.arguments, test), *engine));
      subject.batch = engine->options().prompt_batch;
      subject.threads = engine->options().threads;
    }
    Progress progress(fmt::format("test {} of {}", run.done + 1, run.total));
    measure::BenchHooks hooks;
    hooks.cancelled = Interrupted;
    hooks.progress = [&](std::uint32_t done, std::uint32_t total) { progress.Show(done, total); };
    BOLTBEAM_ASSIGN(const measure::BenchSamples samples,
                    measure::RunBenchTest(*engine, *session, test, run.request, hooks));
    BOLTBEAM_TRY(run.sink.Write(run.format.Row(subject, samples)));
    ++run.done;
  }
  return {};
}

Result<void> RunBench(const Arguments& arguments, const Globals& globals) {
  if (!arguments.refused.empty()) {
    return Fail(Code::kUsage, arguments.refused, "not a setting of this engine", "a command line without it");
  }
  if (arguments.models.empty()) return Fail(Code::kUsage, "bench", "no model", "a GGUF file: boltbeam bench MODEL");
  if (arguments.repetitions == 0) return Fail(Code::kUsage, "-r", "0", "at least one repetition");
  if (std::isnan(arguments.delay_s)) return Fail(Code::kUsage, "--delay", "nan", "seconds");
  BOLTBEAM_ASSIGN(measure::BenchRequest request, BuildRequest(arguments));
  const auto is_shown = [](const std::vector<const formats::Format*>& types) {
    return types.size() > 1 || types.front() != model::CacheFormats().keys;
  };
  const report::BenchFormat format(arguments.format, is_shown(request.keys), is_shown(request.values));
  Run run{arguments, globals, std::move(request), format, Sink(globals)};
  run.total = static_cast<std::uint32_t>(measure::BuildBenchTests(run.request).size() * arguments.models.size());
  CatchInterrupts();
  Result<void> result;
  BOLTBEAM_TRY(run.sink.Write(run.format.Begin()));
  for (const std::string& model : arguments.models) {
    result = BenchModel(run, model);
    if (!result) break;
  }
  // The document is closed whatever happened, so that what was measured can be read.
  BOLTBEAM_TRY(run.sink.Write(run.format.End()));
  BOLTBEAM_TRY(run.sink.Finish());
  return result;
}

}  // namespace

void AddBench(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("bench", "Tokens per second, with llama-bench's flags and output formats");
  const auto list = [&](const char* names, std::vector<std::string>& values, const char* help) {
    command->add_option(names, values, help)->delimiter('\0')->allow_extra_args(false);
  };
  command->add_option("-m,--model,model", arguments->models, "GGUF files")->allow_extra_args(false);
  list("-p,--n-prompt", arguments->prompts,
       "Tokens of the prompt (512); lists 1,2 and ranges 1-4, 0-512+128, 16-128*2");
  list("-n,--n-gen", arguments->generated, "Tokens generated (128)");
  list("-d,--n-depth", arguments->depths, "Tokens in the context before (0)");
  list("--pg", arguments->pairs, "PP,TG: a prompt, then a generation, timed together");
  list("-t,--threads", arguments->threads, "Threads (as few as read at full speed)");
  command->add_option("-r,--repetitions", arguments->repetitions, "Repetitions of each test")->capture_default_str();
  list("--ctk,--cache-type-k", arguments->cache_k, "Formats of cached keys (f16): f16, f32, q8_0; a list by comma");
  list("--ctv,--cache-type-v", arguments->cache_v, "Formats of cached values (f16)");
  arguments->routes.Add(*command);
  AddIsa(*command, arguments->isa);
  command->add_option("--delay", arguments->delay_s, "Seconds to wait before each test")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command->add_flag("--no-warmup", arguments->no_warm_up, "Time the first repetition cold");
  command->add_option("-o,--output", arguments->format, "Output format")
      ->check(CLI::IsMember({"md", "csv", "json", "jsonl"}))
      ->capture_default_str();
  command->add_option("--out", globals.out_file, "Write the result to FILE instead of stdout");
  for (const std::string_view names : kRefused) {
    command->add_option(std::string(names), arguments->ignored)
        ->group("")
        ->each([arguments, names](const std::string&) { arguments->refused = names.substr(0, names.find(',')); });
  }
  command->callback([arguments, &globals] { Finish(globals, RunBench(*arguments, globals)); });
}

}  // namespace boltbeam::app
