#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "model/random_weights.h"
#include "model/synth.h"

namespace boltbeam::model {
namespace {

namespace fs = std::filesystem;

Result<void> CheckSpace(const fs::path& path, std::uint64_t needed) {
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= needed) return {};  // a folder that can't be used fails where it is written to
  return Fail(Code::kDiskSpace, folder.string(),
              fmt::format("{:.2f} GB free", static_cast<double>(space.available) / 1e9),
              fmt::format("{:.2f} GB for this file; choose another folder or fewer --layers",
                          static_cast<double>(needed) / 1e9));
}

Result<void> AddMetadata(gguf::Writer& writer, const SynthPlan& plan, const SynthOptions& options) {
  const HyperParameters& hyper = plan.shape.hyper;
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", plan.shape.architecture, name); };
  writer.Add("general.architecture", std::string_view(plan.shape.architecture));
  writer.Add("general.type", std::string_view("model"));
  writer.Add("general.name", std::string_view(plan.shape.title + ", random weights"));
  writer.Add("general.file_type", plan.mixture.file_type);
  writer.Add("general.quantization_version", std::uint32_t{2});
  writer.Add(key("block_count"), hyper.layers);
  writer.Add(key("context_length"), hyper.context);
  writer.Add(key("embedding_length"), hyper.hidden);
  writer.Add(key("feed_forward_length"), hyper.ffn);
  writer.Add(key("attention.head_count"), hyper.heads);
  writer.Add(key("attention.head_count_kv"), hyper.kv_heads);
  writer.Add(key("attention.key_length"), hyper.head_dim);
  writer.Add(key("attention.value_length"), hyper.head_dim);
  writer.Add(key("attention.layer_norm_rms_epsilon"), static_cast<float>(hyper.rms_epsilon));
  writer.Add(key("rope.dimension_count"), hyper.rope_dims);
  writer.Add(key("rope.freq_base"), static_cast<float>(hyper.rope_base));
  if (hyper.sliding_window != 0) {
    writer.Add(key("attention.sliding_window"), hyper.sliding_window);
    writer.Add(key("attention.sliding_window_pattern"), hyper.sliding_window_pattern);
    writer.Add(key("rope.freq_base_swa"), static_cast<float>(hyper.local_rope_base));
  }
  writer.Add(key("vocab_size"), hyper.vocab);
  if (options.tokenizer) return AddSmallVocabulary(writer, hyper.vocab, plan.shape.pre);
  writer.Add("tokenizer.ggml.model", std::string_view("no_vocab"));
  return {};
}

std::vector<float> DrawVector(const SynthTensor& tensor, const WeightRule& rule, std::uint64_t seed) {
  RandomBits bits(seed);
  std::vector<float> values(tensor.elements());
  for (float& value : values) value = static_cast<float>(rule.mean) + static_cast<float>(rule.spread) * bits.Uniform();
  return values;
}

// Writes tensors one after the other and tells how far it is.
class DataWriter {
 public:
  DataWriter(const SynthPlan& plan, const SynthOptions& options, gguf::Writer& writer, std::uint64_t total)
      : plan_(plan), options_(options), writer_(writer), total_(total), weights_(options.seed) {}

  Result<void> Write(std::size_t index) {
    const SynthTensor& tensor = plan_.tensors[index];
    if (options_.sparse) return writer_.SkipTensor();
    const WeightRule& rule = plan_.weights.at(tensor.role);
    if (tensor.shape.size() == 1) {
      const std::vector<float> values = DrawVector(tensor, rule, options_.seed * 0x9E3779B97F4A7C15ULL + index);
      return Append(std::as_bytes(std::span(values)));
    }
    const double deviation = rule.gain / std::sqrt(static_cast<double>(tensor.shape[0]));
    BOLTBEAM_TRY(weights_.Start(index, *tensor.format, tensor.shape[0], tensor.elements(), deviation));
    while (true) {
      BOLTBEAM_ASSIGN(const std::span<const std::byte> bytes, weights_.Next());
      if (bytes.empty()) return {};
      BOLTBEAM_TRY(Append(bytes));
    }
  }

 private:
  Result<void> Append(std::span<const std::byte> bytes) {
    if (options_.cancelled && options_.cancelled()) {
      return Fail(Code::kInterrupted, "synth", "stopped; nothing was kept", "the command again to write it");
    }
    BOLTBEAM_TRY(writer_.Write(bytes));
    done_ += bytes.size();
    if (options_.progress) options_.progress(done_, total_);
    return {};
  }

  const SynthPlan& plan_;
  const SynthOptions& options_;
  gguf::Writer& writer_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  RandomWeights weights_;
};

}  // namespace

Result<void> WriteSynth(const SynthPlan& plan, const std::string& path, const SynthOptions& options) {
  if (!options.sparse) BOLTBEAM_TRY(CheckSpace(path, plan.data_bytes()));
  BOLTBEAM_ASSIGN(gguf::Writer writer, gguf::Writer::Create(path));
  BOLTBEAM_TRY(AddMetadata(writer, plan, options));
  std::vector<gguf::Writer::Tensor> infos;
  for (const SynthTensor& tensor : plan.tensors) infos.push_back({tensor.name, tensor.format->type, tensor.shape});
  BOLTBEAM_ASSIGN(const std::uint64_t total, writer.Begin(infos));
  DataWriter data(plan, options, writer, total);
  for (std::size_t index = 0; index < plan.tensors.size(); ++index) BOLTBEAM_TRY(data.Write(index));
  return writer.Finish();
}

}  // namespace boltbeam::model
