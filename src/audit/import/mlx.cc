// mlx_lm and mlx_vlm: the statistics behind an answer, and mlx_lm.benchmark. The prompt may be echoed before them.
#include <fmt/format.h>

#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

// "Prompt: 41 tokens, 193.201 tokens-per-sec"
bool ReadStatistic(Imported& imported, std::string_view line, std::string_view label, bool prompt, std::size_t number) {
  if (!line.starts_with(label)) return false;
  line = Trim(line.substr(label.size()));
  const std::size_t unit = line.find(" tokens, ");
  const std::size_t end = line.find(" tokens-per-sec");
  if (unit == std::string_view::npos || end == std::string_view::npos || end < unit) return false;  // an echo
  constexpr std::size_t kUnit = std::string_view(" tokens, ").size();
  const auto tokens = ParseNumber(line.substr(0, unit)),
             tok_s = ParseNumber(line.substr(unit + kUnit, end - unit - kUnit));
  if (!tokens || !tok_s) return false;
  Rate rate;
  rate.test = prompt ? TestName(*tokens, 0, 0) : TestName(0, *tokens, 0);
  rate.tokens = tokens;
  rate.tok_s = tok_s;
  rate.line = number;
  imported.rates.push_back(std::move(rate));
  return true;
}

std::optional<double> Setting(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view value = line.substr(at + key.size());
  value = value.substr(0, value.find_first_of(", "));
  if (value.ends_with('.')) value.remove_suffix(1);
  return ParseNumber(value);
}

void AddPeak(Imported& imported, std::optional<double> gb, bool unit) {
  imported.facts.push_back({"peak_memory_gb", unit ? "" : "no unit is printed", gb});
}

void ReadBenchmark(Imported& imported, const Source& source) {
  std::optional<double> prompt, generated;
  double trials = 0;
  for (std::size_t i = 0; i < source.lines().size(); ++i) {
    const std::string_view line = source.lines()[i];
    if (line.starts_with("Timing with")) {
      prompt = Setting(line, "prompt_tokens=");
      generated = Setting(line, "generation_tokens=");
    }
    trials += line.starts_with("Trial ") ? 1 : 0;
    if (!line.starts_with("Averages:")) continue;
    for (const bool is_prompt : {true, false}) {
      const auto tokens = is_prompt ? prompt : generated;
      Rate rate;
      rate.test = is_prompt ? TestName(tokens.value_or(0), 0, 0) : TestName(0, tokens.value_or(0), 0);
      if (rate.test.empty()) rate.test = is_prompt ? "pp" : "tg";
      rate.tokens = tokens;
      rate.tok_s = Setting(line, is_prompt ? "prompt_tps=" : "generation_tps=");
      rate.line = i + 1;
      imported.rates.push_back(std::move(rate));
    }
    AddPeak(imported, Setting(line, "peak_memory="), false);
  }
  imported.facts.push_back({"trials", "", trials});
}

void ReadAnswer(Imported& imported, const Source& source) {
  for (std::size_t i = 0; i < source.lines().size(); ++i) {
    const std::string_view line = Trim(source.lines()[i]);
    if (ReadStatistic(imported, line, "Prompt:", true, i + 1)) continue;
    if (ReadStatistic(imported, line, "Generation:", false, i + 1)) continue;
    constexpr std::string_view kPeak = "Peak memory:";
    if (!line.starts_with(kPeak)) continue;
    const std::string_view value = Trim(line.substr(kPeak.size()));
    AddPeak(imported, ParseNumber(value.substr(0, value.find(' '))), value.ends_with("GB"));
  }
}

bool IsBenchmark(const Source& source) { return source.Contains("generation_tps="); }

bool Knows(const Content& content) { return IsBenchmark(content.source) || content.source.Contains(" tokens-per-sec"); }

Result<Imported> Read(const Content& content) {
  Imported imported;
  if (IsBenchmark(content.source)) {
    imported.kind = "mlx_lm.benchmark";
    ReadBenchmark(imported, content.source);
  } else {
    imported.kind = "MLX generate";
    ReadAnswer(imported, content.source);
  }
  if (imported.rates.empty()) {
    return Fail(Code::kImportEmpty, content.source.name(), "no averages and no line of tokens per second",
                "the end of what mlx_lm prints");
  }
  return imported;
}

}  // namespace

const Reader kMlx{"MLX generate and benchmark (text)", Knows, Read};

}  // namespace boltbeam::imports
