#include "report/inspect.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "model/token_graph.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using model::Census;
using model::CensusGroup;
using model::Exclusion;
using model::HyperParameters;
using model::Model;
using nlohmann::ordered_json;

std::uint64_t KvBytesPerPosition(const HyperParameters& hyper) {
  return std::uint64_t{2} * hyper.layers * hyper.kv_heads * hyper.head_dim * 2;
}

double ShareOf(std::uint64_t bytes, const Census& census) {
  return static_cast<double>(bytes) / static_cast<double>(census.tensor_bytes);
}

std::vector<Column> PartColumns() {
  return {{"part", "role", Align::kLeft},
          {"format", "format", Align::kLeft},
          {"tensors", "tensors"},
          {"rows", "rows"},
          {"columns", "cols"},
          {"bytes", "bytes"},
          {"share", "share"}};
}

void AddGroup(Table& table, const Census& census, const CensusGroup& group) {
  const bool matrix = group.rows > 0;
  const double share = ShareOf(group.bytes, census);
  table.Add({group.role,
             group.format,
             std::to_string(group.tensors),
             matrix ? std::to_string(group.rows) : "",
             matrix ? std::to_string(group.cols) : "",
             {Thousands(group.bytes), std::to_string(group.bytes)},
             {Percent(share), fmt::format("{}", share)},
             std::string(ExclusionReason(group.exclusion))});
}

void AddTotal(Table& table, const Census& census, std::string name, std::uint64_t tensors, std::uint64_t bytes) {
  table.Add({std::move(name),
             "",
             std::to_string(tensors),
             "",
             "",
             {Thousands(bytes), std::to_string(bytes)},
             Percent(ShareOf(bytes, census))});
}

/// Counted parts, what is read per token, excluded parts, the file.
Table CensusTable(const Census& census) {
  Table table(PartColumns());
  bool counted = true;
  const auto add_counted_total = [&] {
    table.AddRule();
    AddTotal(table, census, "read per token", census.counted_tensors, census.counted_bytes);
    table.AddRule();
  };
  for (const CensusGroup& group : census.groups) {
    if (counted && group.exclusion != Exclusion::kNone) {
      add_counted_total();
      counted = false;
    }
    AddGroup(table, census, group);
  }
  if (counted) add_counted_total();
  table.AddRule();
  AddTotal(table, census, "all tensors", census.counted_tensors + census.excluded_tensors, census.tensor_bytes);
  return table;
}

Table CsvTable(const Census& census) {
  std::vector<Column> columns = PartColumns();
  columns.push_back({"reason", "reason", Align::kLeft});
  Table table(std::move(columns));
  for (const CensusGroup& group : census.groups) AddGroup(table, census, group);
  return table;
}

std::string Headline(const Model& model) {
  const HyperParameters& hyper = model.hyper();
  return Wrap(fmt::format("{}: {} layers, hidden {}, ffn {}, {} heads of {}, {} KV heads, vocabulary {}, context {}",
                          model.architecture().name, hyper.layers, hyper.hidden, hyper.ffn, hyper.heads, hyper.head_dim,
                          hyper.kv_heads, hyper.vocab, hyper.context),
              2);
}

std::vector<std::string> Notes(const Model& model, const Census& census) {
  std::vector<std::string> notes;
  for (const CensusGroup& group : census.groups) {
    if (group.exclusion == Exclusion::kNone) continue;
    std::string note =
        fmt::format("{} ({}) is not counted; {}", group.role, group.format, ExclusionReason(group.exclusion));
    if (group.exclusion == Exclusion::kRowGather) note += fmt::format(" ({} bytes)", Thousands(census.row_bytes));
    notes.push_back(note + ".");
  }
  if (model.tied()) {
    notes.push_back(
        fmt::format("The head is the embedding: the table counts once, as lm_head. One row of it ({} bytes) "
                    "is also read per token.",
                    Thousands(census.row_bytes)));
  }
  notes.push_back(
      fmt::format("{:.3f} bits a weight in what is read; {} bytes of KV cache for each position, 16 bits an "
                  "element.",
                  census.BitsPerWeight(), Thousands(KvBytesPerPosition(model.hyper()))));
  if (model.file().sparse()) notes.emplace_back("This file has holes: it holds shapes, not weights.");
  if (!model.architecture().runnable) notes.push_back(model.architecture().not_runnable_reason + ".");
  for (const std::string& warning : model.warnings()) notes.push_back("Warning: " + warning);
  return notes;
}

std::string NotesText(const Model& model, const Census& census) {
  std::string text;
  for (const std::string& note : Notes(model, census)) text += "- " + Wrap(base::Printable(note, 400), 2, 78) + "\n";
  return text;
}

ordered_json HyperJson(const HyperParameters& hyper) {
  ordered_json json;
  json["layers"] = hyper.layers;
  json["hidden"] = hyper.hidden;
  json["ffn"] = hyper.ffn;
  json["heads"] = hyper.heads;
  json["kv_heads"] = hyper.kv_heads;
  json["head_dim"] = hyper.head_dim;
  json["vocab"] = hyper.vocab;
  json["context"] = hyper.context;
  json["rope_dims"] = hyper.rope_dims;
  json["rope_base"] = hyper.rope_base;
  json["rms_epsilon"] = hyper.rms_epsilon;
  json["sliding_window"] = hyper.sliding_window;
  json["sliding_window_pattern"] = hyper.sliding_window_pattern;
  return json;
}

ordered_json GroupJson(const CensusGroup& group) {
  ordered_json json;
  json["role"] = group.role;
  json["format"] = group.format;
  json["tensors"] = group.tensors;
  json["rows"] = group.rows;
  json["cols"] = group.cols;
  json["elements"] = group.elements;
  json["bytes"] = group.bytes;
  if (group.exclusion != Exclusion::kNone) json["reason"] = ExclusionReason(group.exclusion);
  return json;
}

ordered_json TensorJson(const Model& model, const model::CensusEntry& entry) {
  const model::Tensor& tensor = *entry.tensor;
  ordered_json json;
  json["name"] = tensor.info->name;
  json["role"] = RoleName(tensor.role);
  json["part"] = PartOfRole(&tensor == &model.head() ? model::Role::kHead : tensor.role);
  if (tensor.layer >= 0) json["layer"] = tensor.layer;
  json["format"] = tensor.format->name;
  json["shape"] = std::vector(tensor.info->shape.begin(), tensor.info->shape.begin() + tensor.info->dimensions);
  json["bytes"] = tensor.info->bytes;
  json["counted"] = entry.exclusion == Exclusion::kNone;
  json["reason"] = ExclusionReason(entry.exclusion);
  return json;
}

ordered_json CensusJson(const Model& model, const Census& census) {
  ordered_json json;
  json["counted_bytes"] = census.counted_bytes;
  json["excluded_bytes"] = census.excluded_bytes;
  json["tensor_bytes"] = census.tensor_bytes;
  json["counted_tensors"] = census.counted_tensors;
  json["excluded_tensors"] = census.excluded_tensors;
  json["file_bytes"] = model.file().file_bytes();
  return json;
}

std::string InspectJson(const Model& model, const Census& census) {
  ordered_json json;
  json["schema"] = "boltbeam.inspect.v1";
  json["model"] = model.file().path();
  json["architecture"] = model.architecture().name;
  json["runnable"] = model.architecture().runnable;
  if (!model.architecture().runnable) json["not_runnable_reason"] = model.architecture().not_runnable_reason;
  json["gguf_version"] = model.file().version();
  json["sparse"] = model.file().sparse();
  json["tied_head"] = model.tied();
  json["hyper_parameters"] = HyperJson(model.hyper());
  json["census"] = CensusJson(model, census);
  json["bits_per_weight"] = census.BitsPerWeight();
  json["kv_bytes_per_position"] = KvBytesPerPosition(model.hyper());
  json["embedding_row_bytes"] = census.row_bytes;
  json["parts"] = ordered_json::array();
  json["excluded"] = ordered_json::array();
  for (const CensusGroup& group : census.groups) {
    json[group.exclusion == Exclusion::kNone ? "parts" : "excluded"].push_back(GroupJson(group));
  }
  json["tensors"] = ordered_json::array();
  for (const model::CensusEntry& entry : census.entries) json["tensors"].push_back(TensorJson(model, entry));
  json["warnings"] = model.warnings();
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string InspectReport(const Model& model, const Census& census, Form form) {
  switch (form) {
    case Form::kJson:
      return InspectJson(model, census);
    case Form::kCsv:
      return CsvTable(census).Csv();
    case Form::kMarkdown:
      return Headline(model) + "\n\n" + CensusTable(census).Markdown() + "\n" + NotesText(model, census);
    case Form::kText:
      break;
  }
  return base::Printable(model.file().path(), 400) + "\n" + Headline(model) + "\n\n" + CensusTable(census).Text() +
         "\n" + NotesText(model, census);
}

}  // namespace boltbeam::report
