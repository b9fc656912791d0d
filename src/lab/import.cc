#include <fmt/format.h>

#include <algorithm>
#include <charconv>
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

bool IsTrue(const json& test, const char* field) {
  const auto found = test.find(field);
  return found != test.end() && found->is_boolean() && found->get<bool>();
}

/// Whether layers were computed on a GPU: one was found, its layers were asked for (-1: as many as fit), and the
/// backends, where the file names them, are not the CPU's alone.
bool IsOnGpu(const json& test) {
  if (base::TextOf(test, "gpu_info").empty() || base::NumberAt(test, "n_gpu_layers").value_or(0) == 0) return false;
  if (const auto backends = base::TextAt(test, "backends")) return *backends != "CPU" && *backends != "BLAS";
  for (const char* older : {"cuda", "opencl", "vulkan", "kompute", "metal", "sycl", "gpu_blas"}) {
    if (IsTrue(test, older)) return true;
  }
  return false;
}

/// What computed, and the flags that change its speed: rows of other ones are another line.
std::string SetupOf(const json& test) {
  std::string setup = IsOnGpu(test) ? base::TextAt(test, "backends").value_or("GPU") : "CPU";
  if (IsOnGpu(test)) setup += fmt::format(", ngl {:.0f}", base::NumberAt(test, "n_gpu_layers").value_or(0));
  const auto flash = test.find("flash_attn");
  if (flash != test.end())
    setup += ", fa " + base::Printable(flash->dump(-1, ' ', false, json::error_handler_t::replace), 8);
  if (base::NumberAt(test, "n_cpu_moe").value_or(0) > 0) {
    setup += fmt::format(", ncmoe {:.0f}", *base::NumberAt(test, "n_cpu_moe"));
  }
  return setup;
}

/// The form of a cache that this program knows too; 16 bits when the file names another.
const formats::Format* CacheOf(const std::string& name) {
  const Result<const formats::Format*> known = model::FindCacheFormat("type", name);
  return known ? *known : model::CacheFormats{}.keys;
}

Result<Row> RowOfTest(const json& test, const std::string& where, const LadderOptions& options) {
  Row row;
  row.alias = options.alias;
  const std::string chip = base::TextOf(test, IsOnGpu(test) ? "gpu_info" : "cpu_info");
  row.device = options.device.empty() ? chip : options.device;
  row.setup = SetupOf(test);
  row.cache_k = base::TextOf(test, "type_k");
  row.cache_v = base::TextOf(test, "type_v");
  row.tokens = static_cast<std::uint64_t>(base::NumberAt(test, "n_gen").value_or(0));
  row.spec_gb_s = options.published_gb_s;
  row.engine = "llama.cpp";
  if (const auto build = base::NumberAt(test, "build_number")) row.engine_version = fmt::format("{:.0f}", *build);
  row.model = base::TextOf(test, "model_filename");
  row.date = base::TextOf(test, "test_time");
  row.depth = static_cast<std::uint64_t>(base::NumberAt(test, "n_depth").value_or(0));
  row.threads = static_cast<std::uint64_t>(base::NumberAt(test, "n_threads").value_or(0));
  row.generation_tps = base::NumberAt(test, "avg_ts").value_or(0);
  row.pass = 1;
  if (const auto samples = test.find("samples_ts"); samples != test.end() && samples->is_array()) {
    for (const json& rate : *samples) {
      if (rate.is_number() && rate.get<double>() > 0) row.token_s.push_back(1 / rate.get<double>());
    }
  }
  if (row.model.empty() || !std::isfinite(row.generation_tps) || row.generation_tps <= 0) {
    return Fail(Code::kLabRow, where, fmt::format("model_filename \"{}\" at avg_ts {}", row.model, row.generation_tps),
                "a model and a rate above 0 in every test");
  }
  if (const Result<ModelFacts> facts = ReadModelFacts(row.model)) {
    row.weight_bytes_per_token = facts->weight_bytes;
    row.kv_bytes_per_token = facts->kv_bytes(row.depth, {CacheOf(row.cache_k), CacheOf(row.cache_v)}).value_or(0);
    row.experts = facts->experts;
    row.architecture = facts->architecture;
    row.quantization = facts->quantization;
    row.header_sha256 = facts->header_sha256;
    return row;
  }
  // Without the file: all its tensors, which is more than a token reads where the embedding is a table of its own.
  row.weight_bytes_per_token = base::NumberAt(test, "model_size").value_or(0);
  row.experts = ExpertsInName(base::TextOf(test, "model_type"));
  if (row.weight_bytes_per_token > 0) return row;
  return Fail(Code::kLabRow, where, fmt::format("model_size {}", row.weight_bytes_per_token),
              "the model's file, or its size in bytes");
}

}  // namespace

std::uint64_t ExpertsInName(std::string_view model_type) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = model_type.find('x'); at != std::string_view::npos; at = model_type.find('x', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_digit(model_type[begin - 1])) --begin;
    std::uint64_t count = 0;
    std::from_chars(model_type.data() + begin, model_type.data() + at, count);
    const bool is_factor = begin < at && at + 1 < model_type.size() && is_digit(model_type[at + 1]);
    if (is_factor && count > 1) return count;
  }
  const std::size_t active = model_type.find(".A");
  const bool has_active =
      active != std::string_view::npos && active + 2 < model_type.size() && is_digit(model_type[active + 2]);
  const bool is_named = model_type.contains("moe") || model_type.contains("MoE");
  return has_active || is_named ? kUnknownExperts : 0;
}

std::vector<Row> NewRows(std::vector<Row> rows, std::span<const Row> earlier) {
  const auto same = [](const Row& one, const Row& other) {
    return one.alias == other.alias && one.device == other.device && one.engine == other.engine &&
           one.engine_version == other.engine_version && one.ShortModel() == other.ShortModel() &&
           one.depth == other.depth && one.threads == other.threads && one.setup == other.setup &&
           one.ShownCache() == other.ShownCache();
  };
  std::vector<Row> taken;
  for (Row& row : rows) {
    std::uint64_t passes = 0;
    bool is_there = false;
    const auto look = [&](std::span<const Row> among) {
      for (const Row& other : among) {
        if (!same(row, other)) continue;
        is_there = is_there || (other.date == row.date && other.generation_tps == row.generation_tps);
        passes = std::max(passes, other.pass);
      }
    };
    look(earlier);
    look(taken);
    if (is_there) continue;
    row.pass = passes + 1;
    taken.push_back(std::move(row));
  }
  return taken;
}

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
