// llama-batched-bench: S_TG is the rate of all sequences together.
#include <fmt/format.h>

#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

using Json = nlohmann::json;

struct Batch {
  std::optional<double> prompt, generated, sequences, prompt_s, prompt_tok_s, generated_s, generated_tok_s, total_tok_s;
  bool shared = false;  // one prompt for all sequences
  std::size_t line = 0;
};

std::optional<double> Checked(double tokens, std::optional<double> seconds) {
  return seconds && *seconds > 0 ? std::optional(tokens / *seconds) : std::nullopt;
}

void AddBatch(Imported& imported, const Batch& batch) {
  if (!batch.prompt || !batch.generated || !batch.sequences || !(*batch.sequences >= 1)) {
    imported.refused.push_back({batch.line, "a row without PP, TG or the number of sequences"});
    return;
  }
  const double sequences = *batch.sequences;
  const auto name = [&](const std::string& test) {
    return sequences > 1 ? fmt::format("{} x {}", test, sequences) : test;
  };
  Rate rate;
  rate.line = batch.line;
  if (sequences > 1) rate.note = fmt::format("of all {} sequences", sequences);
  rate.test = name(TestName(*batch.prompt, 0, 0));
  rate.tokens = batch.prompt;
  rate.tok_s = batch.prompt_tok_s;
  rate.checked = Checked(*batch.prompt * (batch.shared ? 1 : sequences), batch.prompt_s);
  imported.rates.push_back(rate);
  rate.test = name(TestName(0, *batch.generated, *batch.prompt));
  rate.tokens = batch.generated;
  rate.tok_s = batch.generated_tok_s;
  rate.checked = Checked(*batch.generated * sequences, batch.generated_s);
  if (sequences > 1 && rate.tok_s) rate.note += fmt::format(": {:.2f} tok/s for each", *rate.tok_s / sequences);
  imported.rates.push_back(rate);
  rate.test = name(TestName(*batch.prompt, *batch.generated, 0));
  rate.tokens = *batch.prompt + *batch.generated;
  rate.tok_s = batch.total_tok_s;
  rate.checked.reset();
  rate.note = "prompt and generation together";
  imported.rates.push_back(std::move(rate));
}

bool IsTable(const TextTable& table) { return table.Has({"PP", "TG", "B", "S_TG t/s"}); }
bool IsJson(const Json& object) { return HasAll(object, {"pp", "tg", "pl", "speed_tg"}); }

bool Knows(const Content& content) {
  for (const TextTable& table : content.tables) {
    if (IsTable(table)) return true;
  }
  return !content.source.json().empty() && IsJson(content.source.json().front());
}

void ReadTable(Imported& imported, const TextTable& table) {
  for (const TableRow& row : table.rows) {
    const auto number = [&](std::string_view name) { return table.Number(row, {name}); };
    AddBatch(imported, {number("PP"), number("TG"), number("B"), number("T_PP s"), number("S_PP t/s"), number("T_TG s"),
                        number("S_TG t/s"), number("S t/s"), false, row.line});
  }
  imported.refused.insert(imported.refused.end(), table.refused.begin(), table.refused.end());
}

Result<Imported> Read(const Content& content) {
  Imported imported;
  imported.notes.emplace_back("Rates are of all sequences of a batch together, generation behind the prompt.");
  const auto& json = content.source.json();
  if (!json.empty()) {
    imported.kind = "llama-batched-bench (JSON lines)";
    for (std::size_t i = 0; i < json.size(); ++i) {
      const auto number = [&](std::string_view key) { return NumberAt(json[i], key); };
      AddBatch(imported, {number("pp"), number("tg"), number("pl"), number("t_pp"), number("speed_pp"), number("t_tg"),
                          number("speed_tg"), number("speed"), number("is_pp_shared").value_or(0) > 0,
                          content.source.json_lines()[i]});
    }
    return imported;
  }
  imported.kind = "llama-batched-bench (Markdown)";
  for (const TextTable& table : content.tables) {
    if (IsTable(table)) ReadTable(imported, table);
  }
  return imported;
}

}  // namespace

const Reader kBatchedBench{"llama-batched-bench (md, jsonl)", Knows, Read};

}  // namespace boltbeam::imports
