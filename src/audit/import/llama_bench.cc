// llama-bench. There is no version of the form: fields came and went since 2023, so everything is read by name.
#include <fmt/format.h>

#include "audit/import/database.h"
#include "audit/import/readers.h"

namespace boltbeam::imports {
namespace {

using Json = nlohmann::json;

constexpr double kNsPerSecond = 1e9;

struct Test {
  std::optional<double> prompt, generated, depth, avg_ts, stddev_ts, avg_ns, threads;
  std::string model, backend, build;
  bool repacked = false;
  std::size_t line = 0;
};

void AddTest(Imported& imported, const Test& test) {
  Rate rate;
  rate.test = TestName(test.prompt.value_or(0), test.generated.value_or(0), test.depth.value_or(0));
  rate.tokens = test.prompt.value_or(0) + test.generated.value_or(0);
  rate.tok_s = test.avg_ts;
  rate.spread = test.stddev_ts;
  rate.threads = test.threads;
  rate.line = test.line;
  if (test.avg_ns && *test.avg_ns > 0 && *rate.tokens > 0) rate.checked = *rate.tokens / *test.avg_ns * kNsPerSecond;
  imported.rates.push_back(std::move(rate));
  if (imported.facts.empty()) {
    if (!test.model.empty()) imported.facts.push_back({"model", test.model, {}});
    if (!test.backend.empty()) imported.facts.push_back({"backend", test.backend, {}});
  }
  if (imported.version.empty()) imported.version = test.build;
}

// The first forms have a column of yes and no for each backend in place of its name.
std::string BackendOf(const auto& yes, std::string named) {
  if (!named.empty()) return named;
  for (const char* backend : {"cuda", "vulkan", "kompute", "metal", "sycl", "opencl"}) {
    if (yes(backend)) return backend;
  }
  return "CPU";
}

Test FromJson(const Json& object, std::size_t line) {
  Test test;
  test.prompt = NumberAt(object, "n_prompt");
  test.generated = NumberAt(object, "n_gen");
  test.depth = NumberAt(object, "n_depth");
  test.avg_ts = NumberAt(object, "avg_ts");
  test.stddev_ts = NumberAt(object, "stddev_ts");
  test.avg_ns = NumberAt(object, "avg_ns");
  test.threads = NumberAt(object, "n_threads");
  test.model = TextAt(object, "model_type").value_or("");
  const auto yes = [&](const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_boolean() && found->get<bool>();
  };
  test.backend = BackendOf(yes, TextAt(object, "backends").value_or(""));
  if (const auto number = NumberAt(object, "build_number")) {
    test.build = fmt::format("build {} ({})", *number, TextAt(object, "build_commit").value_or("?"));
  }
  test.line = line;
  return test;
}

bool IsTest(const Json& object) { return HasAll(object, {"n_prompt", "n_gen", "avg_ts", "model_filename"}); }

bool IsTests(const Json& value) {
  if (value.is_array()) return !value.empty() && IsTest(value.front());
  return IsTest(value);
}

Result<Imported> ReadJson(const Source& source) {
  Imported imported;
  imported.kind =
      source.json().size() > 1 || source.json().front().is_object() ? "llama-bench (JSON lines)" : "llama-bench (JSON)";
  for (std::size_t i = 0; i < source.json().size(); ++i) {
    const Json& value = source.json()[i];
    const std::size_t line = source.json_lines()[i];
    if (value.is_array()) {
      for (const Json& object : value) AddTest(imported, FromJson(object, line));
    } else {
      AddTest(imported, FromJson(value, line));
    }
  }
  return imported;
}

bool IsCsv(const TextTable& table) { return table.Has({"n_prompt", "n_gen", "avg_ts", "model_filename"}); }

Test FromRow(const TextTable& table, const TableRow& row) {
  Test test;
  test.prompt = table.Number(row, {"n_prompt"});
  test.generated = table.Number(row, {"n_gen"});
  test.depth = table.Number(row, {"n_depth"});
  test.avg_ts = table.Number(row, {"avg_ts"});
  test.stddev_ts = table.Number(row, {"stddev_ts"});
  test.avg_ns = table.Number(row, {"avg_ns"});
  test.threads = table.Number(row, {"n_threads"});
  test.model = table.Text(row, {"model_type"});
  const auto yes = [&](const char* key) { return table.Text(row, {key}) == "1"; };
  test.backend = BackendOf(yes, std::string(table.Text(row, {"backends"})));
  test.build = fmt::format("build {} ({})", table.Text(row, {"build_number"}), table.Text(row, {"build_commit"}));
  test.line = row.line;
  return test;
}

Result<Imported> ReadRows(const Source& source, const TextTable& table, std::string kind) {
  if (!table.refused.empty()) {
    const Refused& refused = table.refused.front();
    return Fail(Code::kImportDamaged, source.At(refused.line), refused.reason,
                "as many values as names: figures would be read from the wrong column");
  }
  Imported imported;
  imported.kind = std::move(kind);
  for (const TableRow& row : table.rows) AddTest(imported, FromRow(table, row));
  return imported;
}

bool IsMarkdown(const TextTable& table) { return table.Has({"model", "test", "t/s"}); }

// "tg64@pp8192" of a fork: generation behind a prompt of that length.
void ReadTestName(std::string_view text, Rate& rate) {
  std::string name;
  for (const char c : text) {
    if (c != ' ') name += c;
  }
  if (const std::size_t at = name.find("@pp"); at != std::string::npos) {
    rate.note = fmt::format("generation behind a prompt of {} tokens: not comparable with {}", name.substr(at + 3),
                            name.substr(0, at));
  }
  const std::size_t at = name.find('@');
  rate.test = name.substr(0, at);
  if (rate.test.size() > 2) rate.tokens = ParseNumber(std::string_view(rate.test).substr(2));
  if (at == std::string::npos) return;
  const std::string behind = name.substr(at + 1);
  rate.test += " @ " + (behind.starts_with("pp") ? "d" + behind.substr(2) : behind);
}

Result<Imported> ReadMarkdown(const Source& source, const TextTable& table) {
  Imported imported;
  imported.kind = "llama-bench (Markdown)";
  for (const TableRow& row : table.rows) {
    const std::string_view value = table.Text(row, {"t/s"});
    const std::size_t sign = value.find("±");
    Rate rate;
    rate.line = row.line;
    rate.tok_s = ParseNumber(value.substr(0, sign), table.decimal);
    if (sign != std::string_view::npos) {
      rate.spread = ParseNumber(value.substr(sign + std::string_view("±").size()), table.decimal);
    }
    rate.threads = table.Number(row, {"threads"});
    ReadTestName(table.Text(row, {"test"}), rate);
    if (!rate.tok_s) {
      imported.refused.push_back({row.line, fmt::format("no rate: \"{}\"", value)});
      continue;
    }
    imported.rates.push_back(std::move(rate));
    if (imported.facts.empty()) {
      imported.facts.push_back({"model", std::string(table.Text(row, {"model"})), {}});
      if (table.Find({"backend"})) imported.facts.push_back({"backend", std::string(table.Text(row, {"backend"})), {}});
    }
  }
  imported.refused.insert(imported.refused.end(), table.refused.begin(), table.refused.end());
  for (const std::string_view line : source.lines()) {
    if (line.starts_with("build: ")) imported.version = line;
  }
  imported.notes.emplace_back("Markdown rounds rates and leaves out settings that have their default.");
  return imported;
}

bool IsSql(const Source& source) {
  return source.Contains("CREATE TABLE") && source.Contains("n_prompt") && source.Contains("avg_ts") &&
         source.Contains("INSERT INTO");
}

Result<Imported> ReadSql(const Source& source) {
  BOLTBEAM_ASSIGN(const Database database, Database::FromScript(source));
  for (const char* name : {"llama_bench", "test"}) {
    if (!database.HasTable(name)) continue;
    BOLTBEAM_ASSIGN(const TextTable table, database.Read(name));
    return ReadRows(source, table, "llama-bench (SQL)");
  }
  return Fail(Code::kImportDamaged, source.name(), "no table llama_bench or test", "what llama-bench -o sql prints");
}

bool Knows(const Content& content) {
  for (const TextTable& table : content.tables) {
    if (IsCsv(table) || IsMarkdown(table)) return true;
  }
  return IsSql(content.source) || (!content.source.json().empty() && IsTests(content.source.json().front()));
}

Result<Imported> Read(const Content& content) {
  if (!content.source.json().empty()) return ReadJson(content.source);
  if (IsSql(content.source)) return ReadSql(content.source);
  for (const TextTable& table : content.tables) {
    if (IsCsv(table)) return ReadRows(content.source, table, "llama-bench (CSV)");
    if (IsMarkdown(table)) return ReadMarkdown(content.source, table);
  }
  return Fail(Code::kImportUnknown, content.source.name(), "no table of llama-bench");
}

}  // namespace

const Reader kLlamaBench{"llama-bench (md, csv, json, jsonl, sql)", Knows, Read};

}  // namespace boltbeam::imports
