#include "lab/split_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>

#include "base/hash.h"
#include "gguf/split_name.h"
#include "model/architecture.h"
#include "model/hyper.h"

namespace boltbeam::lab {
namespace {

/// Rows of the embedding: by the table itself, or by what the metadata say of the vocabulary.
Result<std::uint64_t> VocabularyOf(const gguf::File& file, const model::ArchitectureRow& row) {
  for (const model::TensorRule& rule : row.tensors) {
    if (rule.role != model::Role::kEmbedding) continue;
    if (const gguf::TensorInfo* table = file.FindTensor(rule.name)) return table->shape[1];
  }
  const std::string key = row.architecture.name + ".vocab_size";
  if (file.Find(key) != nullptr) return file.GetUnsigned(key);
  const gguf::KeyValue* tokens = file.Find("tokenizer.ggml.tokens");
  if (tokens != nullptr && std::holds_alternative<gguf::ArrayRef>(tokens->value)) {
    return std::get<gguf::ArrayRef>(tokens->value).count;
  }
  return Fail(Code::kModelMissingTensor, file.path(), "no embedding, no vocabulary", "one of both in its first part");
}

/// All tensors of the model, with an own head or without: as many as the parts have together.
Result<model::SynthPlan> PlanWhole(const gguf::File& file, model::Shape shape, const model::Mixture& mixture) {
  BOLTBEAM_ASSIGN(const std::uint64_t total, file.GetUnsigned("split.tensors.count"));
  for (const bool is_tied : {false, true}) {
    shape.tied = is_tied;
    BOLTBEAM_ASSIGN(model::SynthPlan plan, model::PlanShape(shape, mixture));
    const auto is_planned = [&](const gguf::TensorInfo& tensor) {
      return std::ranges::find(plan.tensors, tensor.name, &model::SynthTensor::name) != plan.tensors.end();
    };
    // Biases and frequencies that a model may have or not.
    const auto others =
        file.tensors().size() - static_cast<std::size_t>(std::ranges::count_if(file.tensors(), is_planned));
    if (plan.tensors.size() + others == total) return plan;
  }
  return Fail(Code::kGgufSplitTensors, file.path(), fmt::format("{} tensors in all parts", total),
              fmt::format("as many as {} layers of {} have", shape.hyper.layers, shape.architecture));
}

Result<model::SynthPlan> PlanOf(const gguf::File& file) {
  model::Shape shape;
  BOLTBEAM_ASSIGN(shape.architecture, file.GetString("general.architecture"));
  BOLTBEAM_ASSIGN(const model::ArchitectureRegistry architectures, model::LoadArchitectures());
  BOLTBEAM_ASSIGN(const model::ArchitectureRow* row, architectures.Find(shape.architecture));
  BOLTBEAM_ASSIGN(const std::uint64_t vocabulary, VocabularyOf(file, *row));
  std::vector<std::string> warnings;
  BOLTBEAM_ASSIGN(shape.hyper, model::ReadHyperParameters(file, architectures, *row, vocabulary, warnings));
  BOLTBEAM_ASSIGN(const std::uint64_t file_type, file.GetUnsigned("general.file_type"));
  BOLTBEAM_ASSIGN(const model::MixtureRegistry mixtures, model::LoadMixtures());
  const model::Mixture* mixture = mixtures.FindFileType(file_type);
  if (mixture != nullptr) return PlanWhole(file, std::move(shape), *mixture);
  return Fail(Code::kSynthType, file.path(), fmt::format("general.file_type {}", file_type),
              "a mixture of formats that this build knows");
}

/// What is known of the tables that a token reads.
struct Tables {
  std::size_t here = 0, as_planned = 0, elsewhere = 0;
  double here_bytes = 0, planned_bytes = 0;  // of those that are here: as they are, and as the mixture has them
  double elsewhere_bytes = 0;                // as the mixture has them
};

/// Gives the plan's tables the formats of those that are there.
Result<Tables> TakeFormats(const gguf::File& file, model::SynthPlan& plan) {
  Tables tables;
  for (model::SynthTensor& tensor : plan.tensors) {
    const bool is_gathered = tensor.role == model::Role::kEmbedding && !plan.shape.tied;
    if (tensor.shape.size() < 2 || is_gathered) continue;
    const auto planned = static_cast<double>(tensor.bytes());
    const gguf::TensorInfo* info = file.FindTensor(tensor.name);
    const formats::Format* format = info == nullptr ? nullptr : formats::FindType(info->type);
    if (format == nullptr) {
      ++tables.elsewhere;
      tables.elsewhere_bytes += planned;
      continue;
    }
    const auto shape = std::span(info->shape).first(info->dimensions);
    if (!std::ranges::equal(shape, tensor.shape)) {
      return Fail(Code::kGgufSplitTensors, file.path(), fmt::format("{} of [{}]", tensor.name, fmt::join(shape, " x ")),
                  fmt::format("[{}], as the metadata say", fmt::join(tensor.shape, " x ")));
    }
    ++tables.here;
    tables.as_planned += format == tensor.format ? 1 : 0;
    tables.planned_bytes += planned;
    tensor.format = format;
    tables.here_bytes += static_cast<double>(tensor.bytes());
  }
  return tables;
}

Result<ModelFacts> FactsOf(const gguf::File& file, const gguf::PartName& name) {
  BOLTBEAM_ASSIGN(model::SynthPlan plan, PlanOf(file));
  BOLTBEAM_ASSIGN(const Tables tables, TakeFormats(file, plan));
  BOLTBEAM_ASSIGN(ModelFacts facts, FactsOfPlan(plan));
  facts.name = FileName(file.path());
  facts.header_sha256 = HeaderSha256(file);
  facts.bytes_from = fmt::format("the first of {} parts", name.count);
  facts.unseen_bytes = tables.elsewhere_bytes;
  facts.unseen = fmt::format(
      "{} of {} tables, {:.3f} GB, are in parts that are not here: their shapes are by the first part's metadata, "
      "their "
      "their "
      "formats those of {}, which {} of the {} tables that are here have",
      tables.elsewhere, tables.elsewhere + tables.here, tables.elsewhere_bytes / 1e9, plan.mixture.name,
      tables.as_planned, tables.here);
  if (tables.here_bytes == tables.planned_bytes) return facts;
  const double off = std::abs(tables.here_bytes / tables.planned_bytes - 1);
  facts.unseen_half_bytes = off * tables.elsewhere_bytes;
  facts.unseen += fmt::format("; give or take the {:.1f} % by which those differ from it", 100 * off);
  return facts;
}

}  // namespace

std::unexpected<Error> NameMissingParts(const std::string& path, Error missing) {
  const std::optional<gguf::PartName> name = gguf::ParsePartName(path);
  if (!name) return std::unexpected(std::move(missing));
  std::string names;
  constexpr std::size_t kNamed = 4;
  std::size_t count = 0;
  std::error_code ignored;
  for (std::uint32_t part = 1; part <= name->count; ++part) {
    if (std::filesystem::exists(name->Path(part), ignored)) continue;
    if (++count <= kNamed) names += (count == 1 ? "" : ", ") + FileName(name->Path(part));
  }
  if (count > kNamed) names += fmt::format(" and {} more", count - kNamed);
  missing.where = path;
  missing.found =
      fmt::format("{} of {} parts, each with tables of its own; missing: {}", name->count - count, name->count, names);
  missing.expected = "the other parts beside it";
  return std::unexpected(std::move(missing));
}

Result<ModelFacts> FactsOfFirstPart(const std::string& path, Error missing) {
  const std::optional<gguf::PartName> name = gguf::ParsePartName(path);
  if (!name) return std::unexpected(std::move(missing));
  const Result<gguf::File> first = gguf::File::Open(name->Path(1), {.header_only = true, .one_part = true});
  Result<ModelFacts> facts = first ? FactsOf(*first, *name) : std::unexpected(first.error());
  if (facts) return facts;
  std::unexpected<Error> told = NameMissingParts(path, std::move(missing));
  told.error().found += fmt::format("; what they hold does not follow from the first: {}", facts.error().found);
  told.error().expected +=
      " (the beginning of each, its header, is enough), or beside the file --bytes N, what a token reads of all parts";
  return told;
}

std::string HeaderSha256(const gguf::File& file) {
  std::string bytes(file.data_offset(), '\0');
  if (!file.Read(0, std::as_writable_bytes(std::span(bytes)))) return "";
  return base::Sha256Hex(bytes);
}

std::string FileName(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace boltbeam::lab
