#include "report/bench_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "base/embedded.h"
#include "base/version.h"
#include "measure/statistics.h"

namespace boltbeam::report {
namespace {

enum class Kind : std::uint8_t { kText, kNumber, kBool };

struct Field {
  std::string_view name;
  Kind kind = Kind::kText;
  std::string value;
};

std::vector<double> AsDoubles(const std::vector<std::uint64_t>& values) { return {values.begin(), values.end()}; }

std::vector<Field> Fields(const BenchSubject& subject, const measure::BenchSamples& samples) {
  const std::vector<double> ns = AsDoubles(samples.ns), rates = samples.TokensPerSecond();
  const auto text = [](std::string_view name, std::string value) { return Field{name, Kind::kText, std::move(value)}; };
  const auto number = [](std::string_view name, std::uint64_t value) {
    return Field{name, Kind::kNumber, std::to_string(value)};
  };
  const auto flag = [](std::string_view name, bool value) { return Field{name, Kind::kBool, value ? "1" : "0"}; };
  const auto mean_ns = static_cast<std::uint64_t>(measure::Mean(ns));
  const auto deviation_ns = static_cast<std::uint64_t>(measure::StandardDeviation(ns));
  return {text("build_commit", fmt::format("boltbeam-{}", base::kVersion)),
          number("build_number", 0),
          text("cpu_info", subject.cpu_info),
          text("gpu_info", ""),
          text("backends", "CPU"),
          text("model_filename", subject.model_filename),
          text("model_type", subject.model_type),
          number("model_size", subject.model_bytes),
          number("model_n_params", subject.model_parameters),
          number("n_batch", subject.batch),
          number("n_ubatch", subject.batch),
          number("n_threads", samples.test.threads != 0 ? samples.test.threads : subject.threads),
          text("cpu_mask", "0x0"),
          flag("cpu_strict", false),
          number("poll", 50),
          text("type_k", model::CacheFormatName(*samples.test.cache.keys)),
          text("type_v", model::CacheFormatName(*samples.test.cache.values)),
          {"n_gpu_layers", Kind::kNumber, "-1"},
          number("n_cpu_moe", 0),
          text("split_mode", "layer"),
          number("main_gpu", 0),
          flag("no_kv_offload", false),
          {"flash_attn", Kind::kNumber, "-1"},
          text("devices", "auto"),
          text("tensor_split", "0.00"),
          text("tensor_buft_overrides", "none"),
          text("load_mode", "none"),
          text("lazy_mode", "auto"),
          flag("embeddings", false),
          number("no_op_offload", 0),
          flag("no_host", false),
          flag("repack", true),
          number("fit_target", 0),
          number("fit_min_ctx", 0),
          number("n_prompt", samples.test.n_prompt),
          number("n_gen", samples.test.n_gen),
          number("n_depth", samples.test.n_depth),
          text("test_time", samples.date),
          number("avg_ns", mean_ns),
          number("stddev_ns", deviation_ns),
          {"avg_ts", Kind::kNumber, fmt::format("{:.6f}", measure::Mean(rates))},
          {"stddev_ts", Kind::kNumber, fmt::format("{:.6f}", measure::StandardDeviation(rates))}};
}

std::string JsonValue(const Field& field) {
  switch (field.kind) {
    case Kind::kText:
      return nlohmann::json(field.value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    case Kind::kBool:
      return field.value == "1" ? "true" : "false";
    case Kind::kNumber:
      break;
  }
  return field.value;
}

std::string SamplesNs(const measure::BenchSamples& samples) { return fmt::format("{}", fmt::join(samples.ns, ", ")); }

std::string SamplesTs(const measure::BenchSamples& samples) {
  return fmt::format("{:.6g}", fmt::join(samples.TokensPerSecond(), ", "));
}

std::string JsonRow(const std::vector<Field>& fields, const measure::BenchSamples& samples) {
  std::string row = "  {\n";
  for (const Field& field : fields) row += fmt::format("    \"{}\": {},\n", field.name, JsonValue(field));
  return row + fmt::format("    \"samples_ns\": [ {} ],\n    \"samples_ts\": [ {} ]\n  }}", SamplesNs(samples),
                           SamplesTs(samples));
}

std::string JsonLine(const std::vector<Field>& fields, const measure::BenchSamples& samples) {
  std::string row = "{";
  for (const Field& field : fields) row += fmt::format("\"{}\": {}, ", field.name, JsonValue(field));
  return row +
         fmt::format("\"samples_ns\": [ {} ], \"samples_ts\": [ {} ]}}\n", SamplesNs(samples), SamplesTs(samples));
}

std::string CsvQuoted(std::string_view value) {
  std::string quoted = "\"";
  for (const char c : value) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string CsvRow(const std::vector<Field>& fields, bool header) {
  std::string names, values;
  for (const Field& field : fields) {
    names += fmt::format("{}{}", names.empty() ? "" : ",", field.name);
    values += fmt::format("{}{}", values.empty() ? "" : ",", CsvQuoted(field.value));
  }
  return (header ? names + '\n' : std::string()) + values + '\n';
}

std::string TestName(const measure::BenchTest& test) {
  std::string name;
  if (test.n_prompt > 0 && test.n_gen > 0) {
    name = fmt::format("pp{}+tg{}", test.n_prompt, test.n_gen);
  } else {
    name = test.n_prompt > 0 ? fmt::format("pp{}", test.n_prompt) : fmt::format("tg{}", test.n_gen);
  }
  return test.n_depth > 0 ? fmt::format("{} @ d{}", name, test.n_depth) : name;
}

std::string SizeText(std::uint64_t bytes) {
  constexpr double kMebi = 1024.0 * 1024, kGibi = kMebi * 1024;
  const auto size = static_cast<double>(bytes);
  return size < kGibi ? fmt::format("{:.2f} MiB", size / kMebi) : fmt::format("{:.2f} GiB", size / kGibi);
}

std::string ParametersText(std::uint64_t count) {
  const auto parameters = static_cast<double>(count);
  return parameters < 1e9 ? fmt::format("{:.2f} M", parameters / 1e6) : fmt::format("{:.2f} B", parameters / 1e9);
}

struct Column {
  std::string_view name;
  std::size_t width = 0;
  bool left = false;
};

std::string MarkdownLine(const std::vector<Column>& columns, const std::vector<std::string>& cells) {
  std::string line = "|";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    line += columns[i].left ? fmt::format(" {:<{}} |", cells[i], columns[i].width)
                            : fmt::format(" {:>{}} |", cells[i], columns[i].width);
  }
  return line + '\n';
}

std::string MarkdownRow(const BenchSubject& subject, const measure::BenchSamples& samples, bool header,
                        bool show_type_k, bool show_type_v) {
  std::vector<Column> columns{{"model", 30, true}, {"size", 10}, {"params", 10}, {"backend", 10, true}, {"threads", 7}};
  std::vector<std::string> cells{subject.model_type, SizeText(subject.model_bytes),
                                 ParametersText(subject.model_parameters), "CPU",
                                 std::to_string(samples.test.threads != 0 ? samples.test.threads : subject.threads)};
  const auto show = [&](std::string_view name, const formats::Format& format) {
    columns.push_back({name, 6});
    cells.push_back(model::CacheFormatName(format));
  };
  if (show_type_k) show("type_k", *samples.test.cache.keys);
  if (show_type_v) show("type_v", *samples.test.cache.values);
  columns.insert(columns.end(), {{"test", 15}, {"t/s", 20}});
  const std::vector<double> rates = samples.TokensPerSecond();
  cells.push_back(TestName(samples.test));
  cells.push_back(fmt::format("{:.2f} ± {:.2f}", measure::Mean(rates), measure::StandardDeviation(rates)));
  std::string text;
  if (header) {
    std::vector<std::string> names;
    std::string rule = "|";
    for (const Column& column : columns) {
      names.emplace_back(column.name);
      rule +=
          column.left ? fmt::format(" {:-<{}} |", "", column.width) : fmt::format(" {:-<{}}: |", "", column.width - 1);
    }
    text = MarkdownLine(columns, names) + rule + '\n';
  }
  return text + MarkdownLine(columns, cells);
}

std::string FileTypeName(std::uint64_t type) {
  const auto text = base::Embedded("formats/file_types.json");
  if (!text) return "unknown";
  const nlohmann::json names = nlohmann::json::parse(*text, nullptr, false).value("names", nlohmann::json::object());
  return names.value(std::to_string(type), "unknown");
}

}  // namespace

Result<BenchSubject> DescribeModel(const model::Model& model) {
  BenchSubject subject;
  subject.model_filename = model.file().path();
  for (const gguf::TensorInfo& tensor : model.file().tensors()) {
    subject.model_bytes += tensor.bytes;
    subject.model_parameters += tensor.elements;
  }
  std::string size = fmt::format("{:.1f}B", static_cast<double>(subject.model_parameters) / 1e9);
  if (subject.model_parameters < 1'000'000'000) {
    size = fmt::format("{:.0f}M", static_cast<double>(subject.model_parameters) / 1e6);
  }
  if (model.file().Find("general.size_label") != nullptr) {
    BOLTBEAM_ASSIGN(size, model.file().GetString("general.size_label"));
  }
  std::string type = "unknown";
  if (model.file().Find("general.file_type") != nullptr) {
    BOLTBEAM_ASSIGN(const std::uint64_t number, model.file().GetUnsigned("general.file_type"));
    type = FileTypeName(number);
  }
  subject.model_type = fmt::format("{} {} {}", model.architecture().name, size, type);
  return subject;
}

BenchFormat::BenchFormat(std::string name, bool show_type_k, bool show_type_v)
    : name_(std::move(name)), show_type_k_(show_type_k), show_type_v_(show_type_v) {}

std::string BenchFormat::Begin() { return name_ == "json" ? "[\n" : ""; }

std::string BenchFormat::Row(const BenchSubject& subject, const measure::BenchSamples& samples) {
  const bool first = rows_++ == 0;
  if (name_ == "md") return MarkdownRow(subject, samples, first, show_type_k_, show_type_v_);
  const std::vector<Field> fields = Fields(subject, samples);
  if (name_ == "csv") return CsvRow(fields, first);
  if (name_ == "jsonl") return JsonLine(fields, samples);
  return (first ? "" : ",\n") + JsonRow(fields, samples);
}

std::string BenchFormat::End() {
  if (name_ == "json") return rows_ == 0 ? "]\n" : "\n]\n";
  return name_ == "md" ? fmt::format("\nbuild: boltbeam {}\n", base::kVersion) : "";
}

}  // namespace boltbeam::report
