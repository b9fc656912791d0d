#include "lab/model_facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "formats/format.h"
#include "gguf/file.h"
#include "lab/split_facts.h"
#include "model/census.h"
#include "model/token_graph.h"

namespace boltbeam::lab {
namespace {

constexpr std::string_view kExpertTensor = "_exps.";

/// A hyper-parameter that files of every architecture keep under their own prefix.
std::uint64_t Parameter(const gguf::File& file, const std::string& architecture, std::string_view key) {
  const std::string name = fmt::format("{}.{}", architecture, key);
  if (file.Find(name) == nullptr) return 0;
  return file.GetUnsigned(name).value_or(0);
}

/// The format with most bytes in the layers' tables: of a small model's file the vocabulary may be the larger part, and
/// a model with fewer layers is of the same quantization.
std::string QuantizationOf(const gguf::File& file) {
  std::map<std::string, double> of_layers, of_all;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    if (tensor.dimensions < 2) continue;
    const formats::Format* format = formats::FindType(tensor.type);
    const std::string name = format != nullptr ? format->name : "unknown";
    of_all[name] += static_cast<double>(tensor.bytes);
    if (tensor.name.starts_with("blk.")) of_layers[name] += static_cast<double>(tensor.bytes);
  }
  const auto& formats = of_layers.empty() ? of_all : of_layers;
  const auto most = std::ranges::max_element(formats, {}, [](const auto& pair) { return pair.second; });
  return most == formats.end() ? "" : most->first;
}

using KvBytes = std::function<std::optional<double>(std::uint64_t, const model::CacheFormats&)>;

KvBytes KvOf(const std::shared_ptr<const model::Model>& model) {
  return [model](std::uint64_t depth, const model::CacheFormats& cache) -> std::optional<double> {
    double bytes = 0;
    for (const model::Operation& operation : model::BuildTokenGraph(*model, {.depth = depth, .cache = cache})) {
      bytes += static_cast<double>(operation.kv_bytes);
    }
    return bytes;
  };
}

ModelFacts FactsOf(model::Model model) {
  const auto shared = std::make_shared<const model::Model>(std::move(model));
  const model::Census census = model::TakeCensus(*shared);
  ModelFacts facts;
  facts.architecture = shared->architecture().name;
  facts.layers = shared->hyper().layers;
  facts.weight_bytes = static_cast<double>(census.counted_bytes);
  facts.bytes_from = "the census of its tensors";
  facts.experts = Parameter(shared->file(), facts.architecture, "expert_count");
  facts.quantization = QuantizationOf(shared->file());
  facts.header_sha256 = HeaderSha256(shared->file());
  facts.kv_bytes = KvOf(shared);
  return facts;
}

KvBytes KvUnknown() {
  return [](std::uint64_t depth, const model::CacheFormats&) { return depth == 0 ? std::optional(0.0) : std::nullopt; };
}

/// Bytes of the tables, by their names alone.
double BytesByNames(const gguf::File& file, double experts_read) {
  const bool has_head = std::ranges::any_of(
      file.tensors(), [](const gguf::TensorInfo& tensor) { return tensor.name.starts_with("output."); });
  double bytes = 0;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    const bool is_embedding = tensor.name.starts_with("token_embd.");
    if (tensor.dimensions < 2 || (is_embedding && has_head)) continue;
    bytes += static_cast<double>(tensor.bytes) * (tensor.name.contains(kExpertTensor) ? experts_read : 1);
  }
  return bytes;
}

/// What metadata say, without the bytes.
Result<ModelFacts> FactsOfKeys(const gguf::File& file) {
  ModelFacts facts;
  facts.architecture = file.GetString("general.architecture").value_or("unknown");
  facts.layers = Parameter(file, facts.architecture, "block_count");
  facts.experts = Parameter(file, facts.architecture, "expert_count");
  facts.quantization = QuantizationOf(file);
  facts.header_sha256 = HeaderSha256(file);
  facts.kv_bytes = KvUnknown();
  return facts;
}

/// Tables by their names alone.
Result<ModelFacts> FactsByNames(const gguf::File& file) {
  BOLTBEAM_ASSIGN(ModelFacts facts, FactsOfKeys(file));
  const auto used = static_cast<double>(Parameter(file, facts.architecture, "expert_used_count"));
  const auto experts = static_cast<double>(facts.experts);
  if (facts.experts > 0 && (used < 1 || used > experts)) {
    return Fail(Code::kModelExpertCount, file.path(), fmt::format("{} of {} experts used", used, facts.experts),
                "at least one and no more than there are");
  }
  facts.weight_bytes = BytesByNames(file, facts.experts > 0 ? used / experts : 1);
  if (facts.weight_bytes <= 0) {
    return Fail(Code::kModelMissingTensor, file.path(), "no table", "a file with the tensors of a model");
  }
  facts.bytes_from =
      fmt::format("its tensors' names: the architecture {} is not one that this build knows", facts.architecture);
  return facts;
}

/// What a model loader may refuse in a file that is sound as a container.
bool IsUnknownKind(Code code) { return CodeGroup(code) == Group::kUnsupported || code == Code::kModelUnknownTensor; }

Result<ModelFacts> FactsOfFile(const std::string& path, const gguf::OpenOptions& options) {
  Result<model::Model> model = model::Model::Load(path, options);
  if (!model && !IsUnknownKind(model.error().code)) return std::unexpected(std::move(model).error());
  Result<ModelFacts> facts;
  if (model) {
    facts = FactsOf(std::move(*model));
  } else {
    BOLTBEAM_ASSIGN(const gguf::File file, gguf::File::Open(path, options));
    facts = FactsByNames(file);
  }
  if (!facts) return facts;
  facts->path = path;
  facts->name = FileName(path);
  return facts;
}

}  // namespace

Result<ModelFacts> ReadModelFacts(const std::string& path) {
  Result<ModelFacts> facts = FactsOfFile(path, {});
  if (!facts && facts.error().code == Code::kGgufSplitMissing) return NameMissingParts(path, std::move(facts).error());
  return facts;
}

Result<ModelFacts> ReadHeaderFacts(const std::string& path) {
  Result<ModelFacts> facts = FactsOfFile(path, {.header_only = true});
  if (!facts && facts.error().code == Code::kGgufSplitMissing) return FactsOfFirstPart(path, std::move(facts).error());
  return facts;
}

Result<ModelFacts> ReadHeaderFacts(const std::string& path, double stated_bytes) {
  Result<ModelFacts> facts = ReadHeaderFacts(path);
  if (!facts && facts.error().code != Code::kGgufSplitMissing) return facts;
  if (!facts) {
    facts = StatedFacts(stated_bytes);
    facts->name = FileName(path);
    return facts;
  }
  facts->weight_bytes = stated_bytes;
  facts->bytes_from = "the command line";
  facts->unseen_bytes = facts->unseen_half_bytes = 0;
  return facts;
}

Result<ModelFacts> FactsOfPlan(const model::SynthPlan& plan) {
  std::error_code ignored;
  model::SynthOptions options;
  options.sparse = true;
  const std::filesystem::path file =
      std::filesystem::temp_directory_path(ignored) / fmt::format("boltbeam-shape-{}.gguf", getpid());
  const Result<void> written = model::WriteSynth(plan, file.string(), options);
  Result<model::Model> model = written ? model::Model::Load(file.string()) : std::unexpected(written.error());
  Result<ModelFacts> facts = model ? Result<ModelFacts>(FactsOf(std::move(*model))) : std::unexpected(model.error());
  std::filesystem::remove(file, ignored);
  return facts;
}

Result<ModelFacts> ShapeFacts(std::string_view spec, std::uint32_t layers) {
  model::SynthOptions options;
  options.layers = layers;
  BOLTBEAM_ASSIGN(const model::SynthPlan plan, model::PlanSynth(spec, options));
  Result<ModelFacts> facts = FactsOfPlan(plan);
  if (!facts) return facts;
  facts->name = layers == 0 ? std::string(spec) : fmt::format("{}/{}", spec, layers);
  facts->bytes_from = "the shape that synth knows";
  return facts;
}

ModelFacts StatedFacts(double bytes) {
  ModelFacts facts;
  facts.name = fmt::format("{:.4g} GB", bytes / 1e9);
  facts.weight_bytes = bytes;
  facts.bytes_from = "the command line";
  facts.kv_bytes = [](std::uint64_t depth, const model::CacheFormats&) {
    return depth == 0 ? std::optional(0.0) : std::nullopt;
  };
  return facts;
}

bool IsShapeName(const std::string& text) {
  std::error_code error;
  return text.contains(':') && !text.contains('/') && !std::filesystem::exists(text, error);
}

}  // namespace boltbeam::lab
