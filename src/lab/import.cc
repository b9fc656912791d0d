#include <fmt/format.h>

#include <cmath>

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

double NumberIn(const json& test, const char* field) {
  return test.contains(field) && test.at(field).is_number() ? test.at(field).get<double>() : 0;
}

std::string TextIn(const json& test, const char* field) {
  return test.contains(field) && test.at(field).is_string() ? test.at(field).get<std::string>() : "";
}

Result<Row> RowOfTest(const json& test, const std::string& where, const LadderOptions& options) {
  Row row;
  row.alias = options.alias;
  row.device = options.device.empty() ? TextIn(test, "cpu_info") : options.device;
  row.spec_gb_s = options.published_gb_s;
  row.engine = "llama.cpp";
  row.engine_version = fmt::format("{:.0f}", NumberIn(test, "build_number"));
  row.model = TextIn(test, "model_filename");
  row.date = TextIn(test, "test_time");
  row.depth = static_cast<std::uint64_t>(NumberIn(test, "n_depth"));
  row.threads = static_cast<std::uint64_t>(NumberIn(test, "n_threads"));
  row.generation_tps = NumberIn(test, "avg_ts");
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
  row.weight_bytes_per_token = NumberIn(test, "model_size");
  if (row.weight_bytes_per_token > 0) return row;
  return Fail(Code::kLabRow, where, fmt::format("model_size {}", row.weight_bytes_per_token),
              "the model's file, or its size in bytes");
}

}  // namespace

Result<std::vector<Row>> ImportBench(std::string_view text, const std::string& where, const LadderOptions& options) {
  BOLTBEAM_ASSIGN(const std::vector<json> tests, TestsIn(text, where));
  std::vector<Row> rows;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    const bool is_generation =
        tests[i].is_object() && NumberIn(tests[i], "n_gen") > 0 && NumberIn(tests[i], "n_prompt") == 0;
    if (!is_generation) continue;
    BOLTBEAM_ASSIGN(Row row, RowOfTest(tests[i], fmt::format("{}, test {}", where, i + 1), options));
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) return rows;
  return Fail(Code::kLabRow, where, fmt::format("{} tests, none of generation alone", tests.size()),
              "llama-bench's output with -o json or -o jsonl and -p 0 -n above 0");
}

}  // namespace boltbeam::lab
