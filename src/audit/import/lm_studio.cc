// LM Studio's REST answers: version 0 and version 1 name their fields differently.
#include <fmt/format.h>

#include <cmath>

#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

using Json = nlohmann::json;

constexpr double kMsPerSecond = 1e3;
constexpr double kAgree = 0.02;  // relative

const Json* StatsOf(const Json& object) {
  const Json* stats = ObjectAt(object, "stats");
  return stats != nullptr && HasAll(*stats, {"tokens_per_second"}) ? stats : nullptr;
}

bool Knows(const Content& content) {
  return !content.source.json().empty() && StatsOf(content.source.json().front()) != nullptr;
}

Result<Imported> Read(const Content& content) {
  const Json& object = content.source.json().front();
  const Json& stats = *StatsOf(object);
  Imported imported;
  const bool first = ObjectAt(object, "usage") != nullptr;
  imported.kind = first ? "LM Studio REST v0 (JSON)" : "LM Studio REST v1 (JSON)";
  const Json& counts = first ? *ObjectAt(object, "usage") : stats;
  const auto input = NumberAt(counts, first ? "prompt_tokens" : "input_tokens");
  const auto output = NumberAt(counts, first ? "completion_tokens" : "total_output_tokens");
  if (const auto model = TextAt(object, first ? "model" : "model_instance_id"))
    imported.facts.push_back({"model", *model, {}});
  if (const Json* runtime = ObjectAt(object, "runtime"); runtime != nullptr) {
    imported.version =
        fmt::format("{} {}", TextAt(*runtime, "name").value_or("?"), TextAt(*runtime, "version").value_or("?"));
  }
  if (const auto seconds = NumberAt(stats, first ? "time_to_first_token" : "time_to_first_token_seconds")) {
    imported.facts.push_back({"ttft_ms", "", *seconds * kMsPerSecond});
  }
  imported.facts.push_back({"input_tokens", "", input});
  imported.facts.push_back({"output_tokens", "", output});
  Rate rate;
  rate.test = output ? TestName(0, *output, 0) : "tg";
  rate.tokens = output;
  rate.tok_s = NumberAt(stats, "tokens_per_second");
  rate.line = 1;
  if (const auto seconds = NumberAt(stats, "generation_time"); seconds && *seconds > 0 && output) {
    rate.checked = *output / *seconds;
  }
  if (rate.tok_s && rate.checked && std::fabs(*rate.checked / *rate.tok_s - 1) > kAgree) {
    rate.note = fmt::format("the file disagrees with itself: {:.3f} tok/s as given, {:.2f} from {} tokens and its time",
                            *rate.tok_s, *rate.checked, *output);
  }
  imported.rates.push_back(std::move(rate));
  return imported;
}

}  // namespace

const Reader kLmStudio{"LM Studio REST (json)", Knows, Read};

}  // namespace boltbeam::imports
