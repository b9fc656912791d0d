#include "model/model.h"

#include <fmt/format.h>

#include <charconv>
#include <unordered_map>

#include "model/architecture.h"
#include "model/hyper.h"

namespace boltbeam::model {
namespace {

/// "blk.17.attn_q.weight" is {"blk.*.attn_q.weight", 17}; a name without a layer is itself and -1.
struct SplitName {
  std::string pattern;
  std::int64_t layer = -1;
};

SplitName SplitLayer(const std::string& name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return {name, -1};
  const std::size_t dot = name.find('.', kPrefix.size());
  if (dot == std::string::npos) return {name, -1};
  std::uint32_t layer = 0;
  const char* begin = name.data() + kPrefix.size();
  const auto [end, error] = std::from_chars(begin, name.data() + dot, layer);
  const bool canonical =
      error == std::errc() && end == name.data() + dot && (*begin != '0' || dot == kPrefix.size() + 1);
  if (!canonical) return {name, -1};
  return {fmt::format("{}*{}", kPrefix, std::string_view(name).substr(dot)), layer};
}

std::string ShapeText(std::span<const std::uint64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

class Classifier {
 public:
  Classifier(const gguf::File& file, const ArchitectureRegistry& registry, const ArchitectureRow& row,
             const HyperParameters& hyper)
      : file_(file), registry_(registry), row_(row), hyper_(hyper) {
    for (const TensorRule& rule : row.tensors) rules_.emplace(rule.name, &rule);
  }

  Result<Tensor> Classify(const gguf::TensorInfo& info) const {
    const SplitName name = SplitLayer(info.name);
    const auto found = rules_.find(name.pattern);
    if (found == rules_.end()) return Unknown(info);
    const TensorRule& rule = *found->second;
    if (rule.per_layer() && name.layer >= hyper_.layers) {
      return Fail(Code::kModelExtraLayer, Where(info.name), fmt::format("layer {}", name.layer),
                  fmt::format("layers 0 to {}, by block_count", hyper_.layers - 1));
    }
    BOLTBEAM_TRY(CheckShape(info, rule));
    Tensor tensor;
    tensor.info = &info;
    tensor.format = formats::FindType(info.type);
    if (tensor.format == nullptr) {
      return Fail(Code::kModelUnsupportedType, Where(info.name), fmt::format("type {}", info.type), "a known type");
    }
    tensor.role = rule.role;
    tensor.layer = rule.per_layer() ? static_cast<std::int32_t>(name.layer) : -1;
    return tensor;
  }

  std::string Where(const std::string& name) const { return fmt::format("{}: tensor {}", file_.path(), name); }

 private:
  std::unexpected<Error> Unknown(const gguf::TensorInfo& info) const {
    for (const RefusedTensor& refused : registry_.refused_tensors) {
      if (info.name.find(refused.part) == std::string::npos) continue;
      return Fail(Code::kModelUnsupportedTensor, Where(info.name), refused.reason, "a model without it");
    }
    return Fail(Code::kModelUnknownTensor, Where(info.name), "this name has no role",
                fmt::format("the tensors of {}", row_.architecture.name));
  }

  Result<void> CheckShape(const gguf::TensorInfo& info, const TensorRule& rule) const {
    std::vector<std::uint64_t> expected;
    for (const std::string& symbol : rule.shape) expected.push_back(DimensionOf(symbol, hyper_));
    bool same = true;
    for (std::size_t i = 0; i < info.shape.size(); ++i) {
      same &= info.shape[i] == (i < expected.size() ? expected[i] : 1);
    }
    if (same) return {};
    return Fail(Code::kModelTensorShape, Where(info.name),
                "shape " + ShapeText(std::span(info.shape).first(info.dimensions)),
                fmt::format("{} from [{}]", ShapeText(expected), fmt::join(rule.shape, ", ")));
  }

  const gguf::File& file_;
  const ArchitectureRegistry& registry_;
  const ArchitectureRow& row_;
  const HyperParameters& hyper_;
  std::unordered_map<std::string, const TensorRule*> rules_;
};

using Index = std::map<std::pair<Role, std::int32_t>, std::size_t>;

Result<void> CheckComplete(const std::string& path, const ArchitectureRow& row, const HyperParameters& hyper,
                           const Index& index) {
  for (const TensorRule& rule : row.tensors) {
    if (rule.optional) continue;
    const std::int32_t last = rule.per_layer() ? static_cast<std::int32_t>(hyper.layers) - 1 : 0;
    for (std::int32_t layer = 0; layer <= last; ++layer) {
      if (index.contains({rule.role, rule.per_layer() ? layer : -1})) continue;
      std::string name = rule.name;
      if (rule.per_layer()) name.replace(name.find('*'), 1, std::to_string(layer));
      return Fail(Code::kModelMissingTensor, fmt::format("{}: tensor {}", path, name), "it is missing",
                  fmt::format("every tensor of {} layers of {}", hyper.layers, row.architecture.name));
    }
  }
  return {};
}

Result<std::uint64_t> VocabularyRows(const gguf::File& file, const ArchitectureRow& row) {
  for (const TensorRule& rule : row.tensors) {
    if (rule.role != Role::kEmbedding) continue;
    const gguf::TensorInfo* info = file.FindTensor(rule.name);
    if (info != nullptr) return info->shape[1];
    return Fail(Code::kModelMissingTensor, fmt::format("{}: tensor {}", file.path(), rule.name), "it is missing",
                "an embedding: its rows are the vocabulary");
  }
  return Fail(Code::kInternal, row.architecture.name, "no embedding in its row", "a tensor with that role");
}

}  // namespace

Result<Model> Model::Load(const std::string& path, const gguf::OpenOptions& options) {
  Model model;
  BOLTBEAM_ASSIGN(gguf::File file, gguf::File::Open(path, options));
  model.file_ = std::make_shared<const gguf::File>(std::move(file));
  BOLTBEAM_ASSIGN(const std::string name, model.file_->GetString("general.architecture"));
  BOLTBEAM_ASSIGN(const ArchitectureRegistry registry, LoadArchitectures());
  Result<const ArchitectureRow*> row = registry.Find(name);
  if (!row) {
    row.error().where = path + ": " + row.error().where;
    return std::unexpected(std::move(row).error());
  }
  model.architecture_ = (*row)->architecture;
  BOLTBEAM_ASSIGN(const std::uint64_t vocab, VocabularyRows(*model.file_, **row));
  BOLTBEAM_ASSIGN(model.hyper_, ReadHyperParameters(*model.file_, registry, **row, vocab, model.warnings_));
  const Classifier classifier(*model.file_, registry, **row, model.hyper_);
  model.tensors_.reserve(model.file_->tensors().size());
  for (const gguf::TensorInfo& info : model.file_->tensors()) {
    BOLTBEAM_ASSIGN(const Tensor tensor, classifier.Classify(info));
    model.index_[{tensor.role, tensor.layer}] = model.tensors_.size();
    model.tensors_.push_back(tensor);
  }
  BOLTBEAM_TRY(CheckComplete(path, **row, model.hyper_, model.index_));
  return model;
}

const Tensor* Model::Find(Role role, std::int32_t layer) const {
  const auto found = index_.find({role, layer});
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const Tensor& Model::head() const {
  const Tensor* own = Find(Role::kHead);
  return own != nullptr ? *own : tensors_[index_.at({Role::kEmbedding, -1})];
}

bool Model::tied() const { return Find(Role::kHead) == nullptr; }

Result<void> CheckRunnable(const Model& model) {
  const std::string& path = model.file().path();
  if (!model.architecture().runnable) {
    return Fail(Code::kModelNotRunnable, path, model.architecture().not_runnable_reason,
                "a model of an architecture that runs");
  }
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.format->IsKnown()) continue;
    return Fail(Code::kModelUnsupportedType, fmt::format("{}: tensor {}", path, tensor.info->name), tensor.format->name,
                "a type whose bit layout is known, so that a kernel can be generated for it");
  }
  return {};
}

}  // namespace boltbeam::model
