#include "lab/row.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/paths.h"
#include "base/printable.h"

namespace boltbeam::lab {
namespace {

using nlohmann::json;

constexpr std::string_view kExperiment = "ladder";
constexpr double kMostBytes = 1e16;

std::unexpected<Error> Broken(const std::string& where, std::string_view field, std::string found,
                              std::string expected) {
  return Fail(Code::kLabRow, fmt::format("{}: {}", where, field), std::move(found), std::move(expected));
}

std::string Shown(const json& value) {
  return base::Printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

/// A finite number of the row; `least` itself is allowed only when `open` is false.
Result<double> Number(const json& row, const char* field, const std::string& where, double least, bool open) {
  const std::string rule = fmt::format("a number {} {}", open ? "above" : "of at least", least);
  if (!row.contains(field) || row.at(field).is_null()) return Broken(where, field, "missing", rule);
  const json& value = row.at(field);
  if (!value.is_number()) return Broken(where, field, Shown(value), rule);
  const double number = value.get<double>();
  const bool is_fine = std::isfinite(number) && number < kMostBytes && (open ? number > least : number >= least);
  return is_fine ? Result<double>(number) : Broken(where, field, Shown(value), rule);
}

Result<double> NumberOr(const json& row, const char* field, const std::string& where, double fallback) {
  if (!row.contains(field) || row.at(field).is_null()) return fallback;
  return Number(row, field, where, 0, false);
}

Result<std::string> Text(const json& row, const char* field, const std::string& where, bool required) {
  if (!row.contains(field) || row.at(field).is_null()) {
    return required ? Result<std::string>(Broken(where, field, "missing", "a text")) : std::string();
  }
  if (!row.at(field).is_string()) return Broken(where, field, Shown(row.at(field)), "a text");
  return row.at(field).get<std::string>();
}

Result<std::vector<double>> Numbers(const json& row, const char* field, const std::string& where) {
  std::vector<double> numbers;
  if (!row.contains(field)) return numbers;
  const json& list = row.at(field);
  if (!list.is_array()) return Broken(where, field, Shown(list), "a list of numbers");
  for (const json& value : list) {
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!std::isfinite(number) || number <= 0) return Broken(where, field, Shown(value), "numbers above 0");
    numbers.push_back(number);
  }
  return numbers;
}

Result<void> ReadOurs(const json& json_row, const std::string& where, Row& row) {
  BOLTBEAM_ASSIGN(row.engine, Text(json_row, "engine", where, false));
  BOLTBEAM_ASSIGN(row.engine_version, Text(json_row, "engine_version", where, false));
  BOLTBEAM_ASSIGN(row.architecture, Text(json_row, "architecture", where, false));
  BOLTBEAM_ASSIGN(row.quantization, Text(json_row, "quantization", where, false));
  BOLTBEAM_ASSIGN(row.header_sha256, Text(json_row, "header_sha256", where, false));
  BOLTBEAM_ASSIGN(row.date, Text(json_row, "date", where, false));
  BOLTBEAM_ASSIGN(row.isa, Text(json_row, "isa", where, false));
  BOLTBEAM_ASSIGN(row.plan, Text(json_row, "plan", where, false));
  BOLTBEAM_ASSIGN(row.cache_k, Text(json_row, "cache_k", where, false));
  BOLTBEAM_ASSIGN(row.cache_v, Text(json_row, "cache_v", where, false));
  BOLTBEAM_ASSIGN(row.command, Text(json_row, "command", where, false));
  BOLTBEAM_ASSIGN(row.setup, Text(json_row, "setup", where, false));
  BOLTBEAM_ASSIGN(row.kv_bytes_per_token, NumberOr(json_row, "kv_bytes_per_token", where, 0));
  const auto whole = [&](const char* field, std::uint64_t& out) -> Result<void> {
    BOLTBEAM_ASSIGN(const double value, NumberOr(json_row, field, where, 0));
    out = static_cast<std::uint64_t>(value);
    return {};
  };
  BOLTBEAM_TRY(whole("depth", row.depth));
  BOLTBEAM_TRY(whole("threads", row.threads));
  BOLTBEAM_TRY(whole("pass", row.pass));
  BOLTBEAM_TRY(whole("tokens", row.tokens));
  BOLTBEAM_TRY(whole("windows_left_out", row.left_out));
  BOLTBEAM_ASSIGN(row.token_s, Numbers(json_row, "token_s", where));
  BOLTBEAM_ASSIGN(row.streamed_gb_s, Numbers(json_row, "streamed_gb_s", where));
  if (row.streamed_gb_s.size() > 1 && row.streamed_gb_s.size() != row.token_s.size()) {
    return Broken(where, "streamed_gb_s", fmt::format("{} values", row.streamed_gb_s.size()),
                  fmt::format("one, or one for each of the {} of token_s", row.token_s.size()));
  }
  return {};
}

}  // namespace

std::string Row::ShortModel() const { return model.substr(model.find_last_of('/') + 1); }

std::string Row::ShownCache() const {
  const std::string keys = cache_k.empty() ? "f16" : cache_k, values = cache_v.empty() ? "f16" : cache_v;
  return keys == values ? keys : keys + "/" + values;
}

std::string MixtureName(std::uint64_t experts) {
  return experts == kUnknownExperts ? "a mixture of experts" : fmt::format("a mixture of {} experts", experts);
}

Result<std::optional<Row>> ParseRow(std::string_view line, const std::string& where) {
  const json json_row = json::parse(line, nullptr, false);
  if (json_row.is_discarded() || !json_row.is_object()) {
    return Broken(where, "row", fmt::format("\"{}\"", base::Printable(line, 60)), "a JSON object on one line");
  }
  if (!json_row.contains("experiment") || json_row.at("experiment") != kExperiment) return std::nullopt;
  Row row;
  BOLTBEAM_ASSIGN(row.model, Text(json_row, "model", where, true));
  BOLTBEAM_ASSIGN(row.alias, Text(json_row, "alias", where, true));
  BOLTBEAM_ASSIGN(row.device, Text(json_row, "device", where, true));
  BOLTBEAM_ASSIGN(row.weight_bytes_per_token, Number(json_row, "weight_bytes_per_token", where, 0, true));
  BOLTBEAM_ASSIGN(row.generation_tps, Number(json_row, "generation_tps", where, 0, true));
  BOLTBEAM_ASSIGN(const double experts, NumberOr(json_row, "experts", where, 0));
  row.experts = static_cast<std::uint64_t>(experts);
  BOLTBEAM_ASSIGN(const double spec, NumberOr(json_row, "spec_gbps", where, 0));
  if (spec > 0) row.spec_gb_s = spec;
  BOLTBEAM_TRY(ReadOurs(json_row, where, row));
  return row;
}

nlohmann::ordered_json ToJson(const Row& row) {
  nlohmann::ordered_json json_row = {{"experiment", kExperiment},
                                     {"alias", row.alias},
                                     {"device", row.device},
                                     {"model", row.model},
                                     {"experts", row.experts},
                                     {"weight_bytes_per_token", row.weight_bytes_per_token},
                                     {"generation_tps", row.generation_tps}};
  json_row["spec_gbps"] = row.spec_gb_s ? nlohmann::ordered_json(*row.spec_gb_s) : nlohmann::ordered_json(nullptr);
  json_row["schema"] = "boltbeam.ladder.v1";
  json_row["engine"] = row.engine;
  json_row["engine_version"] = row.engine_version;
  json_row["architecture"] = row.architecture;
  json_row["quantization"] = row.quantization;
  json_row["header_sha256"] = row.header_sha256;
  json_row["date"] = row.date;
  json_row["kv_bytes_per_token"] = row.kv_bytes_per_token;
  json_row["depth"] = row.depth;
  json_row["threads"] = row.threads;
  json_row["pass"] = row.pass;
  json_row["isa"] = row.isa;
  json_row["plan"] = row.plan;
  json_row["cache_k"] = row.cache_k;
  json_row["cache_v"] = row.cache_v;
  if (row.tokens > 0) json_row["tokens"] = row.tokens;
  if (!row.command.empty()) json_row["command"] = row.command;
  if (!row.setup.empty()) json_row["setup"] = row.setup;
  json_row["windows_left_out"] = row.left_out;
  json_row["token_s"] = row.token_s;
  json_row["streamed_gb_s"] = row.streamed_gb_s;
  return json_row;
}

Result<std::vector<Row>> ReadRows(const std::string& path, bool* cut) {
  BOLTBEAM_ASSIGN(const std::string text, base::ReadWholeFile(path));
  std::vector<Row> rows;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = text.find('\n', begin);
    const bool is_whole = newline != std::string::npos;
    const std::string_view line(text.data() + begin, (is_whole ? newline : text.size()) - begin);
    begin = is_whole ? newline + 1 : text.size();
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (!is_whole && json::parse(line, nullptr, false).is_discarded()) {
      if (cut != nullptr) *cut = true;
      break;
    }
    BOLTBEAM_ASSIGN(std::optional<Row> row, ParseRow(line, fmt::format("{}:{}", path, number)));
    if (row) rows.push_back(std::move(*row));
  }
  return rows;
}

Result<void> AppendRow(const std::string& path, const Row& row) {
  std::string line = ToJson(row).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  std::error_code folder_error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, folder_error);
  const auto failed = [&](int error) {
    return Fail(Code::kFileWrite, path, std::strerror(error), "a file that rows can be added to");
  };
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return failed(errno);
  // A line that was cut by a crash must not swallow this one.
  char last = '\n';
  const off_t size = lseek(file, 0, SEEK_END);
  if (size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n') line.insert(line.begin(), '\n');
  const bool written = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && fsync(file) == 0;
  const int error = errno;
  close(file);
  if (!written) return failed(error);
  return {};
}

}  // namespace boltbeam::lab
