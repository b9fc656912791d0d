#include "measure/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/paths.h"
#include "command.h"
#include "loading.h"
#include "model/tokenizer.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::string model, text_file, base_file, save_base;
  std::uint32_t context = 0;  // 0: not given
  std::uint64_t chunks = 0;
  EngineFlags engine;
  bool token_by_token = false;
};

constexpr std::uint32_t kDefaultContext = 512;  // llama-perplexity's

// A base brings its own token ids: a text given beside it is only compared with them.
Result<void> TakeBase(const Arguments& arguments, measure::LogitsReader& base, measure::PerplexityRequest& request) {
  const auto context = static_cast<std::uint32_t>(base.header().context);
  if (arguments.context != 0 && arguments.context != context) {
    return Fail(Code::kUsage, "-c", fmt::format("{}", arguments.context),
                fmt::format("{}, as in {}; or leave it out", context, base.path()));
  }
  request.base = &base;
  request.context = context;
  if (!request.tokens.empty()) {
    const std::size_t common = std::min(request.tokens.size(), base.tokens().size());
    if (!std::equal(request.tokens.begin(), request.tokens.begin() + static_cast<std::ptrdiff_t>(common),
                    base.tokens().begin()) ||
        common < base.tokens().size()) {
      Note(fmt::format("note: {} holds other tokens than the text; its own are used", base.path()));
    }
  }
  request.tokens.assign(base.tokens().begin(), base.tokens().end());
  return {};
}

// Only a text needs a tokenizer; with a base alone a file without one will do.
Result<void> TakeText(const Arguments& arguments, const model::Model& model, measure::PerplexityRequest& request) {
  auto tokenizer = model::Tokenizer::Make(model.file());
  if (!tokenizer && !arguments.text_file.empty()) return std::unexpected(tokenizer.error());
  if (tokenizer && tokenizer->adds_bos()) request.bos = tokenizer->bos();
  if (arguments.text_file.empty()) return {};
  BOLTBEAM_ASSIGN(const std::string text, base::ReadWholeFile(arguments.text_file));
  BOLTBEAM_ASSIGN(request.tokens, tokenizer->Encode(text, {}));
  request.text_name = arguments.text_file;
  return {};
}

std::string Json(const Arguments& arguments, const engine::Engine& engine, const measure::PerplexityResult& result,
                 std::uint32_t context) {
  nlohmann::ordered_json json;
  json["schema"] = "boltbeam.perplexity.v1";
  json["model"] = arguments.model;
  json["context"] = context;
  json["threads"] = engine.options().threads;
  json["type_k"] = arguments.engine.cache_k;
  json["type_v"] = arguments.engine.cache_v;
  json["token_by_token"] = arguments.token_by_token;
  json["chunks"] = result.chunks;
  json["tokens"] = result.tokens;
  json["perplexity"] = result.perplexity;
  json["perplexity_error"] = result.perplexity_error;
  if (result.has_base) {
    json["base"] = arguments.base_file;
    json["base_perplexity"] = result.base_perplexity;
    json["kl_mean"] = result.kl_mean;
    json["kl_mean_error"] = result.kl_mean_error;
    json["kl_median"] = result.kl_median;
    json["kl_p99"] = result.kl_p99;
    json["kl_max"] = result.kl_max;
    json["top1_agreement"] = result.top1_agreement;
    json["misses"] = nlohmann::ordered_json::array();
    for (const measure::Miss& miss : result.misses) {
      json["misses"].push_back({{"chunk", miss.chunk},
                                {"position", miss.position},
                                {"base_token", miss.base_token},
                                {"our_token", miss.our_token},
                                {"rank", miss.rank},
                                {"gap", miss.gap},
                                {"base_gap", miss.base_gap},
                                {"kl", miss.kl}});
    }
  }
  return json.dump(2) + "\n";
}

std::string Text(const measure::PerplexityResult& result) {
  std::string text = fmt::format("perplexity        {:.4f} +/- {:.4f}\ntokens scored     {} in {} chunks\n",
                                 result.perplexity, result.perplexity_error, result.tokens, result.chunks);
  if (!result.has_base) return text;
  constexpr double kPercent = 100;
  text += fmt::format("base's perplexity {:.4f}\n", result.base_perplexity);
  text += fmt::format(
      "KL divergence     mean {:.3e} +/- {:.1e}\n                  median {:.3e}, 99 % {:.3e}, largest {:.3e}\n",
      result.kl_mean, result.kl_mean_error, result.kl_median, result.kl_p99, result.kl_max);
  text += fmt::format("top-1 agreement   {:.2f} %\n", kPercent * result.top1_agreement);
  if (result.misses.empty()) return text;
  const auto widest = std::ranges::max_element(result.misses, {}, &measure::Miss::gap);
  const auto deepest = std::ranges::max_element(result.misses, {}, &measure::Miss::rank);
  text += fmt::format("misses            {}; largest gap {:.4f} in log-probability, lowest rank {}\n",
                      result.misses.size(), widest->gap, deepest->rank);
  return text;
}

Result<void> Perplexity(const Arguments& arguments, const Globals& globals) {
  if (arguments.text_file.empty() && arguments.base_file.empty()) {
    return Fail(Code::kUsage, "-f", "no text", "-f FILE, or --kl-divergence-base FILE, which brings its own tokens");
  }
  CatchInterrupts();
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  measure::PerplexityRequest request;
  request.context = arguments.context != 0 ? arguments.context : kDefaultContext;
  BOLTBEAM_TRY(TakeText(arguments, model, request));
  std::optional<measure::LogitsReader> base;
  if (!arguments.base_file.empty()) {
    BOLTBEAM_ASSIGN(base, measure::LogitsReader::Open(arguments.base_file));
    BOLTBEAM_TRY(TakeBase(arguments, *base, request));
  }
  BOLTBEAM_ASSIGN(const std::unique_ptr<engine::Engine> engine,
                  LoadEngine(globals, model, arguments.engine, request.context));
  BOLTBEAM_ASSIGN(const std::unique_ptr<engine::Session> session, engine->NewSession());
  Progress progress("perplexity");
  request.vocabulary = model.hyper().vocab;
  request.max_chunks = arguments.chunks;
  request.token_by_token = arguments.token_by_token;
  request.batch = engine->options().prompt_batch;
  request.save_base = arguments.save_base;
  request.cancelled = Interrupted;
  request.progress = [&](std::uint64_t done, std::uint64_t total) { progress.Show(done, total); };
  BOLTBEAM_ASSIGN(const measure::PerplexityResult result, measure::MeasurePerplexity(*session, request));
  const bool json = globals.format == "json";
  return WriteOutput(globals, json ? Json(arguments, *engine, result, request.context) : Text(result));
}

}  // namespace

void AddPerplexity(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "perplexity", "How well the model predicts a text, and how far it is from another program's predictions");
  constexpr std::int64_t kLeastContext = 4, kMost = 1 << 24;
  command->add_option("-m,--model,model", arguments->model, "GGUF file")->required();
  command->add_option("-f,--file", arguments->text_file, "Text to predict");
  command->add_option("-c,--ctx-size", arguments->context, "Tokens of a chunk; the second half is scored (512)")
      ->check(CLI::Range(kLeastContext, kMost));
  command->add_option("--chunks", arguments->chunks, "Chunks to compute at most (all)")
      ->check(CLI::Range(std::int64_t{1}, kMost));
  arguments->engine.Add(*command);
  command->add_option("--kl-divergence-base", arguments->base_file,
                      "Logits to compare with, as llama-perplexity writes them; their token ids are used");
  command->add_option("--save-base", arguments->save_base, "Write our logits to FILE in the same layout");
  command->add_flag("--token-by-token", arguments->token_by_token, "Compute through the plan that bench times");
  command->add_flag_callback("--kl-divergence", [] {}, "Accepted for llama-perplexity's sake: a base alone says it");
  AddOutputFlags(*command, globals, {"text", "json"});
  command->callback([arguments, &globals] { Finish(globals, Perplexity(*arguments, globals)); });
}

}  // namespace boltbeam::app
