// ollama: the last object of an answer (nanoseconds), and `ollama run --verbose`.
#include <fmt/format.h>

#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

using Json = nlohmann::json;

constexpr double kNsPerMs = 1e6, kNsPerSecond = 1e9;

void AddRate(Imported& imported, bool prompt, std::optional<double> tokens, std::optional<double> ns,
             std::optional<double> printed, std::size_t line) {
  Rate rate;
  rate.test = tokens ? (prompt ? TestName(*tokens, 0, 0) : TestName(0, *tokens, 0)) : (prompt ? "pp" : "tg");
  rate.tokens = tokens;
  rate.line = line;
  if (tokens && ns && *ns > 0) rate.checked = *tokens / *ns * kNsPerSecond;
  rate.tok_s = printed ? printed : rate.checked;
  if (!tokens) rate.note = "the number of tokens is unknown: the prompt came from a cache";
  imported.rates.push_back(std::move(rate));
}

bool IsFinal(const Json& object) { return HasAll(object, {"done", "eval_count", "eval_duration"}); }

void ReadFinal(Imported& imported, const Json& object, std::size_t line) {
  if (const auto model = TextAt(object, "model")) imported.facts.push_back({"model", *model, {}});
  for (const char* key : {"load", "total"}) {
    if (const auto ns = NumberAt(object, fmt::format("{}_duration", key))) {
      imported.facts.push_back({fmt::format("{}_ms", key), "", *ns / kNsPerMs});
    }
  }
  AddRate(imported, true, NumberAt(object, "prompt_eval_count"), NumberAt(object, "prompt_eval_duration"), {}, line);
  AddRate(imported, false, NumberAt(object, "eval_count"), NumberAt(object, "eval_duration"), {}, line);
}

// "- eval duration:        1m34.992010661s": what stands behind the label.
std::optional<std::string_view> Behind(std::string_view line, std::string_view label) {
  line = Trim(line);
  while (line.starts_with('-') || line.starts_with('*')) line = Trim(line.substr(1));
  if (!line.starts_with(label)) return std::nullopt;
  return Trim(line.substr(label.size()));
}

struct Verbose {
  std::optional<double> count, ns, tok_s;
  std::size_t line = 0;
};

std::optional<double> FirstNumber(std::string_view text) { return ParseNumber(text.substr(0, text.find(' '))); }

void ReadVerbose(Imported& imported, const Source& source) {
  Verbose prompt, generated;
  for (std::size_t i = 0; i < source.lines().size(); ++i) {
    const std::string_view line = source.lines()[i];
    const auto take = [&](Verbose& verbose, const std::string& prefix) {
      if (const auto text = Behind(line, prefix + "eval count:")) verbose.count = FirstNumber(*text);
      if (const auto text = Behind(line, prefix + "eval duration:")) verbose.ns = ParseGoDuration(*text);
      if (const auto text = Behind(line, prefix + "eval rate:")) {
        verbose.tok_s = FirstNumber(*text);
        verbose.line = i + 1;
      }
    };
    take(prompt, "prompt ");
    take(generated, "");
    for (const char* key : {"load", "total"}) {
      const auto text = Behind(line, fmt::format("{} duration:", key));
      if (!text) continue;
      if (const auto ns = ParseGoDuration(*text)) {
        imported.facts.push_back({fmt::format("{}_ms", key), "", *ns / kNsPerMs});
      }
    }
  }
  AddRate(imported, true, prompt.count, prompt.ns, prompt.tok_s, prompt.line);
  AddRate(imported, false, generated.count, generated.ns, generated.tok_s, generated.line);
}

bool IsVerbose(const Source& source) { return source.Contains("eval rate:") && source.Contains("eval duration:"); }

bool IsAnswer(const Json& object) { return HasAll(object, {"model", "created_at", "done"}); }

bool Knows(const Content& content) {
  for (const Json& object : content.source.json()) {
    if (IsFinal(object) || IsAnswer(object)) return true;
  }
  return IsVerbose(content.source);
}

Result<Imported> Read(const Content& content) {
  const Source& source = content.source;
  Imported imported;
  imported.notes.emplace_back("Loading the model is no inference and no part of a rate.");
  if (source.json().empty()) {
    imported.kind = "ollama (verbose)";
    ReadVerbose(imported, source);
    return imported;
  }
  imported.kind = source.json().size() > 1 ? "ollama (stream)" : "ollama (JSON)";
  for (std::size_t i = 0; i < source.json().size(); ++i) {
    if (IsFinal(source.json()[i])) ReadFinal(imported, source.json()[i], source.json_lines()[i]);
  }
  if (imported.rates.empty()) {
    return Fail(Code::kImportEmpty, source.At(source.json_lines().back()), "an answer whose last object is missing",
                "the object with \"done\": true, which holds the counts and the times");
  }
  return imported;
}

}  // namespace

const Reader kOllama{"ollama (json, jsonl, --verbose)", Knows, Read};

}  // namespace boltbeam::imports
