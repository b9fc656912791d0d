// vLLM: bench serve (JSON and console) and bench latency (JSON).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "audit/import/readers.h"
#include "measure/statistics.h"

namespace boltbeam::imports {
namespace {

using Json = nlohmann::json;

constexpr double kMsPerSecond = 1e3;

struct Serving {
  std::optional<double> requests, seconds, input_tokens, output_tokens, output_tok_s, total_tok_s, ttft_ms, tpot_ms,
      itl_ms;
  std::string request_rate;
  std::size_t line = 0;
};

void AddServing(Imported& imported, const Serving& serving) {
  const auto fact = [&](const char* name, std::optional<double> value) {
    if (value) imported.facts.push_back({name, "", value});
  };
  fact("requests", serving.requests);
  fact("duration_s", serving.seconds);
  fact("input_tokens", serving.input_tokens);
  fact("output_tokens", serving.output_tokens);
  fact("ttft_mean_ms", serving.ttft_ms);
  fact("tpot_mean_ms", serving.tpot_ms);
  fact("itl_mean_ms", serving.itl_ms);
  if (!serving.request_rate.empty()) imported.facts.push_back({"request_rate", serving.request_rate, {}});
  Rate output;
  output.test = "output of all requests";
  output.tokens = serving.output_tokens;
  output.tok_s = serving.output_tok_s;
  output.line = serving.line;
  output.note = "of many requests at a time: not the rate of one";
  if (serving.output_tokens && serving.seconds && *serving.seconds > 0) {
    output.checked = *serving.output_tokens / *serving.seconds;
  }
  imported.rates.push_back(std::move(output));
  if (serving.tpot_ms && *serving.tpot_ms > 0) {
    Rate stream;
    stream.test = "tg of one stream";
    stream.tok_s = kMsPerSecond / *serving.tpot_ms;
    stream.note = "from the mean time of an output token, the first left out";
    stream.line = serving.line;
    imported.rates.push_back(std::move(stream));
  }
}

bool IsServe(const Json& object) {
  return HasAll(object, {"output_throughput", "total_output_tokens", "mean_ttft_ms"});
}
bool IsLatency(const Json& object) { return HasAll(object, {"avg_latency", "latencies"}); }
bool IsConsole(const Source& source) { return source.Contains("Serving Benchmark Result"); }

Serving FromJson(const Json& object, std::size_t line) {
  Serving serving;
  serving.requests = NumberAt(object, "completed");
  serving.seconds = NumberAt(object, "duration");
  serving.input_tokens = NumberAt(object, "total_input_tokens");
  serving.output_tokens = NumberAt(object, "total_output_tokens");
  serving.output_tok_s = NumberAt(object, "output_throughput");
  serving.total_tok_s = NumberAt(object, "total_token_throughput");
  serving.ttft_ms = NumberAt(object, "mean_ttft_ms");
  serving.tpot_ms = NumberAt(object, "mean_tpot_ms");
  serving.itl_ms = NumberAt(object, "mean_itl_ms");
  if (const auto rate = NumberAt(object, "request_rate")) serving.request_rate = fmt::format("{} per second", *rate);
  if (const auto rate = TextAt(object, "request_rate")) serving.request_rate = *rate;  // "inf": all at once
  serving.line = line;
  return serving;
}

Serving FromConsole(const Source& source) {
  Serving serving;
  const std::pair<std::string_view, std::optional<double>*> labels[] = {
      {"Successful requests:", &serving.requests},
      {"Benchmark duration (s):", &serving.seconds},
      {"Total input tokens:", &serving.input_tokens},
      {"Total generated tokens:", &serving.output_tokens},
      {"Output token throughput (tok/s):", &serving.output_tok_s},
      {"Total Token throughput (tok/s):", &serving.total_tok_s},
      {"Mean TTFT (ms):", &serving.ttft_ms},
      {"Mean TPOT (ms):", &serving.tpot_ms},
      {"Mean ITL (ms):", &serving.itl_ms}};
  for (std::size_t i = 0; i < source.lines().size(); ++i) {
    const std::string_view line = Trim(source.lines()[i]);
    for (const auto& [label, value] : labels) {
      if (!StartsWithNoCase(line, label)) continue;
      *value = ParseNumber(line.substr(label.size()));
      if (value == &serving.output_tok_s) serving.line = i + 1;
    }
  }
  return serving;
}

void ReadLatency(Imported& imported, const Json& object) {
  imported.kind = "vLLM bench latency (JSON)";
  std::vector<double> seconds;
  if (const Json* list = ObjectAt(object, "latencies"); list != nullptr) {
    for (const Json& value : *list) {
      if (value.is_number()) seconds.push_back(value.get<double>());
    }
  }
  imported.facts.push_back({"runs", "", static_cast<double>(seconds.size())});
  imported.facts.push_back({"latency_mean_s", "", NumberAt(object, "avg_latency")});
  if (!seconds.empty()) imported.facts.push_back({"latency_median_s", "", measure::Median(seconds)});
  imported.notes.emplace_back("This file holds no counts of tokens: tokens per second are unknown.");
}

bool Knows(const Content& content) {
  for (const Json& object : content.source.json()) {
    if (IsServe(object) || IsLatency(object)) return true;
  }
  return IsConsole(content.source);
}

Result<Imported> Read(const Content& content) {
  const Source& source = content.source;
  Imported imported;
  imported.kind = "vLLM bench serve (console)";
  if (source.json().empty()) {
    AddServing(imported, FromConsole(source));
    return imported;
  }
  for (std::size_t i = 0; i < source.json().size(); ++i) {
    const Json& object = source.json()[i];
    if (IsLatency(object)) {
      ReadLatency(imported, object);
    } else if (IsServe(object)) {
      imported.kind = "vLLM bench serve (JSON)";
      if (const auto model = TextAt(object, "model_id")) imported.facts.push_back({"model", *model, {}});
      AddServing(imported, FromJson(object, source.json_lines()[i]));
    }
  }
  return imported;
}

}  // namespace

const Reader kVllm{"vLLM bench serve, bench latency (json, console)", Knows, Read};

}  // namespace boltbeam::imports
