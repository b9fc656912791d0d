#include <fmt/format.h>

#include <cmath>

#include "base/json_members.h"
#include "base/printable.h"
#include "lab/ladder.h"

namespace boltbeam::lab {
namespace {

using nlohmann::json;

/// The tests of a document: a list, one object, or an object on every line.
Result<std::vector<json>> TestsIn(std::string_view text, const std::string& where) {
  json whole = json::parse(text, nullptr, false);
  if (whole.is_array()) return whole.get<std::vector<json>>();
  if (whole.is_object()) return std::vector<json>{std::move(whole)};
  std::vector<json> tests;
  for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    json test = json::parse(line, nullptr, false);
    if (!test.is_object()) {
      return Fail(Code::kLabRow, fmt::format("{}:{}", where, number), fmt::format("\"{}\"", base::Printable(line, 60)),
                  "llama-bench's output with -o json or -o jsonl");
    }
    tests.push_back(std::move(test));
  }
  return tests;
}

Result<Row> RowOfTest(const json& test, const std::string& where, const LadderOptions& options) {
  Row row;
  row.alias = options.alias;
  row.device = options.device.empty() ? base::TextOf(test, "cpu_info") : options.device;
  row.spec_gb_s = options.published_gb_s;
  row.engine = "llama.cpp";
  row.engine_version = fmt::format("{:.0f}", base::NumberAt(test, "build_number").value_or(0));
  row.model = base::TextOf(test, "model_filename");
  row.date = base::TextOf(test, "test_time");
  row.depth = static_cast<std::uint64_t>(base::NumberAt(test, "n_depth").value_or(0));
  row.threads = static_cast<std::uint64_t>(base::NumberAt(test, "n_threads").value_or(0));
  row.generation_tps = base::NumberAt(test, "avg_ts").value_or(0);
  row.pass = 1;
  if (row.model.empty() || !std::isfinite(row.generation_tps) || row.generation_tps <= 0) {
    return Fail(Code::kLabRow, where, fmt::format("model_filename \"{}\" at avg_ts {}", row.model, row.generation_tps),
                "a model and a rate above 0 in every test");
  }
  if (const Result<ModelFacts> facts = ReadModelFacts(row.model)) {
    row.weight_bytes_per_token = facts->weight_bytes;
    row.kv_bytes_per_token = facts->kv_bytes(row.depth).value_or(0);
    row.experts = facts->experts;
    row.architecture = facts->architecture;
    row.quantization = facts->quantization;
    row.header_sha256 = facts->header_sha256;
    return row;
  }
  // Without the file: all its tensors, which is more than a token reads where the embedding is a table of its own.
  row.weight_bytes_per_token = base::NumberAt(test, "model_size").value_or(0);
  if (row.weight_bytes_per_token > 0) return row;
  return Fail(Code::kLabRow, where, fmt::format("model_size {}", row.weight_bytes_per_token),
              "the model's file, or its size in bytes");
}

}  // namespace

Result<std::vector<Row>> ImportBench(std::string_view text, const std::string& where, const LadderOptions& options) {
  BOLTBEAM_ASSIGN(const std::vector<json> tests, TestsIn(text, where));
  std::vector<Row> rows;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    const bool is_generation = tests[i].is_object() && base::NumberAt(tests[i], "n_gen").value_or(0) > 0 &&
                               base::NumberAt(tests[i], "n_prompt").value_or(0) == 0;
    if (!is_generation) continue;
    BOLTBEAM_ASSIGN(Row row, RowOfTest(tests[i], fmt::format("{}, test {}", where, i + 1), options));
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) return rows;
  return Fail(Code::kLabRow, where, fmt::format("{} tests, none of generation alone", tests.size()),
              "llama-bench's output with -o json or -o jsonl and -p 0 -n above 0");
}

}  // namespace boltbeam::lab
