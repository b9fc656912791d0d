// The timing lines of llama-cli, llama-server and programs on the same library, from 2023 to now, in a log of any kind.
#include <fmt/format.h>

#include <cmath>

#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

using Json = nlohmann::json;

constexpr double kMsPerSecond = 1e3;

// "eval time =   14085.85 ms /   178 runs   (   79.13 ms per token,    12.64 tokens per second)"
struct TimingLine {
  double ms = 0, tokens = 0;
  std::optional<double> tok_s;
};

std::string_view Word(std::string_view& text) {
  text = Trim(text);
  const std::size_t end = std::min(text.find_first_of(" \t,()/"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

void SkipPast(std::string_view& text, char c) {
  const std::size_t at = text.find(c);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
}

// What stands behind the label; nullopt when the line has another form.
std::optional<TimingLine> ParseTiming(std::string_view text) {
  SkipPast(text, '=');
  const auto ms = ParseNumber(Word(text));
  if (!ms || Word(text) != "ms") return std::nullopt;
  SkipPast(text, '/');
  const auto tokens = ParseNumber(Word(text));
  const std::string_view unit = Word(text);
  if (!tokens || (unit != "tokens" && unit != "runs" && unit != "token")) return std::nullopt;
  SkipPast(text, ',');
  return TimingLine{*ms, *tokens, ParseNumber(Word(text))};
}

void AddTiming(Imported& imported, bool prompt, const TimingLine& timing, std::size_t line) {
  Rate rate;
  rate.test = prompt ? TestName(timing.tokens, 0, 0) : TestName(0, timing.tokens, 0);
  rate.tokens = timing.tokens;
  rate.line = line;
  if (timing.ms > 0) {
    rate.tok_s = timing.tok_s;
    rate.checked = timing.tokens / timing.ms * kMsPerSecond;
  } else {
    rate.note = "not measured: the program printed a time of 0";
  }
  imported.rates.push_back(std::move(rate));
}

void ReadDraft(Imported& imported, std::string_view text) {
  SkipPast(text, '=');
  const auto share = ParseNumber(Word(text));
  SkipPast(text, '(');
  const auto accepted = ParseNumber(Word(text));
  Word(text);
  SkipPast(text, '/');
  const auto drafted = ParseNumber(Word(text));
  if (!share || !accepted || !drafted) return;
  imported.facts.push_back({"draft_acceptance", "", share});
  imported.facts.push_back({"draft_accepted", "", accepted});
  imported.facts.push_back({"draft_generated", "", drafted});
  imported.notes.push_back(fmt::format(
      "Speculative decoding, {} of {} drafts accepted: the generation rate is not comparable with plain decoding.",
      *accepted, *drafted));
}

// "n_decoded =    198, tg =  65.77 t/s" while it still runs.
void ReadLive(Imported& imported, std::string_view text, std::size_t line) {
  const std::size_t at = text.find("tg =");
  std::string_view decoded = text.substr(text.find("n_decoded"));
  SkipPast(decoded, '=');
  std::string_view rate_text = text.substr(at);
  SkipPast(rate_text, '=');
  const auto tokens = ParseNumber(Word(decoded)), tok_s = ParseNumber(Word(rate_text));
  if (!tokens || !tok_s) return;
  Rate rate;
  rate.test = TestName(0, *tokens, 0);
  rate.tokens = tokens;
  rate.tok_s = tok_s;
  rate.note = "live: printed while it still ran";
  rate.line = line;
  imported.rates.push_back(std::move(rate));
}

void ReadLine(Imported& imported, std::string_view text, std::size_t line) {
  const std::size_t prompt = text.find("prompt eval time =");
  const std::size_t eval = text.find("eval time =");
  if (eval != std::string_view::npos) {
    const auto timing = ParseTiming(text.substr(eval));
    if (timing) {
      AddTiming(imported, prompt != std::string_view::npos, *timing, line);
    } else {
      imported.refused.push_back({line, "a timing line that was cut"});
    }
  } else if (text.find("load time =") != std::string_view::npos) {
    std::string_view value = text;
    SkipPast(value, '=');
    imported.facts.push_back({"load_ms", "", ParseNumber(Word(value))});
  } else if (text.find("draft acceptance") != std::string_view::npos) {
    ReadDraft(imported, text);
  } else if (text.find("n_decoded") != std::string_view::npos && text.find("tg =") != std::string_view::npos) {
    ReadLive(imported, text, line);
  } else if (text.starts_with("Interrupted by user")) {
    imported.notes.emplace_back("Interrupted by the user: a part of a run.");
  }
}

// A live figure is only of use when the final one is missing.
void DropLive(Imported& imported) {
  const auto live = [](const Rate& rate) { return rate.note.starts_with("live"); };
  bool final_rate = false;
  for (const Rate& rate : imported.rates) final_rate = final_rate || (rate.test.starts_with("tg") && !live(rate));
  if (final_rate) std::erase_if(imported.rates, live);
}

const Json* Timings(const Json& object) { return ObjectAt(object, "timings"); }

bool HasTimings(const Json& object) {
  const Json* timings = Timings(object);
  return timings != nullptr && HasAll(*timings, {"predicted_n", "predicted_ms"});
}

Result<Imported> ReadJson(const Source& source) {
  Imported imported;
  imported.kind = "llama-server (JSON)";
  for (std::size_t i = 0; i < source.json().size(); ++i) {
    const Json& object = source.json()[i];
    if (!HasTimings(object)) continue;
    if (const auto model = TextAt(object, "model"); model && imported.facts.empty()) {
      imported.facts.push_back({"model", *model, {}});
    }
    for (const bool prompt : {true, false}) {
      const std::string which = prompt ? "prompt" : "predicted";
      const auto tokens = NumberAt(*Timings(object), which + "_n"), ms = NumberAt(*Timings(object), which + "_ms");
      if (tokens && ms) {
        AddTiming(imported, prompt, {*ms, *tokens, NumberAt(*Timings(object), which + "_per_second")},
                  source.json_lines()[i]);
      }
    }
    if (const auto cached = NumberAt(*Timings(object), "cache_n"); cached && *cached > 0) {
      imported.notes.push_back(fmt::format("{} tokens of the prompt came from a cache.", *cached));
    }
  }
  return imported;
}

bool Knows(const Content& content) {
  for (const Json& object : content.source.json()) {
    if (HasTimings(object)) return true;
  }
  return content.source.Contains("eval time =");
}

Result<Imported> Read(const Content& content) {
  const Source& source = content.source;
  if (!source.json().empty()) return ReadJson(source);
  Imported imported;
  imported.kind = source.Contains("slot ") ? "llama-server (log)" : "llama.cpp timings (log)";
  for (std::size_t i = 0; i < source.lines().size(); ++i) ReadLine(imported, source.lines()[i], i + 1);
  DropLive(imported);
  return imported;
}

}  // namespace

const Reader kLlamaTimings{"llama-cli and llama-server timings (log, json)", Knows, Read};

}  // namespace boltbeam::imports
