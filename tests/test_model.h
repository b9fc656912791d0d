// Test support: GGUF files with the shapes of a model and holes for weights, to be changed before they are written.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "formats/format.h"
#include "gguf/writer.h"

namespace boltbeam::model {

struct TestSizes {
  std::uint32_t layers = 2, hidden = 256, ffn = 512, heads = 4, kv_heads = 2, head_dim = 64, vocab = 320;
};

class TestModel {
 public:
  using Value = std::variant<std::uint32_t, float, std::string, std::vector<std::int32_t>, std::vector<std::string>>;
  /// The format of a layer's table: its name without the layer and ".weight", such as "attn_v".
  using FormatOf = std::function<std::string(const std::string& name, std::uint32_t layer)>;

  explicit TestModel(
      std::string architecture, const TestSizes& sizes = {}, const std::string& head_format = "Q8_0",
      const FormatOf& format_of = [](const auto&, auto) { return "Q8_0"; })
      : architecture_(std::move(architecture)), sizes_(sizes) {
    AddKeys();
    AddTable("output.weight", head_format, {sizes.hidden, sizes.vocab});
    AddTable("output_norm.weight", "F32", {sizes.hidden});
    AddTable("token_embd.weight", format_of("token_embd", 0), {sizes.hidden, sizes.vocab});
    for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) AddLayer(layer, format_of);
  }
  ~TestModel() { std::filesystem::remove(path_); }
  TestModel(const TestModel&) = delete;
  TestModel& operator=(const TestModel&) = delete;

  void Set(const std::string& key, Value value) { keys[architecture_ + "." + key] = std::move(value); }
  void Erase(const std::string& key) { keys.erase(architecture_ + "." + key); }
  void AddTable(const std::string& name, const std::string& format, std::vector<std::uint64_t> shape) {
    tensors.push_back({name, formats::FindFormat(format)->type, std::move(shape)});
  }
  void Remove(const std::string& name) {
    std::erase_if(tensors, [&](const gguf::Writer::Tensor& tensor) { return tensor.name == name; });
  }
  gguf::Writer::Tensor& Find(const std::string& name) {
    for (gguf::Writer::Tensor& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    ADD_FAILURE() << "no tensor " << name;
    return tensors.front();
  }

  /// Writes the file and gives its path; it is removed with this object.
  std::string Write() {
    path_ = std::filesystem::path(testing::TempDir()) / ("model-" + std::to_string(::getpid()) + ".gguf");
    gguf::Writer writer = gguf::Writer::Create(path_.string()).value();
    writer.Add("general.architecture", std::string_view(architecture_));
    for (const auto& [key, value] : keys) {
      std::visit([&](const auto& v) { writer.Add(key, v); }, value);
    }
    EXPECT_TRUE(writer.Begin(tensors).has_value());
    for (const gguf::Writer::Tensor& tensor : tensors) {
      EXPECT_TRUE((fill ? writer.Write(fill(tensor)) : writer.SkipTensor()).has_value());
    }
    EXPECT_TRUE(writer.Finish().has_value());
    return path_.string();
  }

  /// Writes it as a split model, its tensors shared out over the parts; with_first: the first part has some, too. Gives
  /// the parts' paths; they stay.
  std::vector<std::string> WriteParts(const std::string& folder, std::uint32_t parts, bool with_first = true) {
    const std::vector<gguf::Writer::Tensor> all = tensors;
    const std::map<std::string, Value> own = keys;
    keys["split.count"] = parts;
    keys["split.tensors.count"] = static_cast<std::uint32_t>(all.size());
    std::vector<std::string> paths;
    const std::size_t sharers = parts - (with_first ? 0 : 1);
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::size_t share = part - (with_first ? 0 : std::min(part, 1U));
      const std::size_t begin = all.size() * share / sharers;
      const std::size_t end = part == 0 && !with_first ? begin : all.size() * (share + 1) / sharers;
      keys["split.no"] = part;
      tensors.assign(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
      paths.push_back(folder + "/m-0000" + std::to_string(part + 1) + "-of-0000" + std::to_string(parts) + ".gguf");
      std::filesystem::rename(Write(), paths.back());
    }
    tensors = all;
    keys = own;
    return paths;
  }

  std::map<std::string, Value> keys;
  std::vector<gguf::Writer::Tensor> tensors;
  std::function<std::vector<std::byte>(const gguf::Writer::Tensor&)> fill;  // its data; none: holes

 private:
  void AddKeys() {
    Set("block_count", sizes_.layers);
    Set("context_length", std::uint32_t{40960});
    Set("embedding_length", sizes_.hidden);
    Set("feed_forward_length", sizes_.ffn);
    Set("attention.head_count", sizes_.heads);
    Set("attention.head_count_kv", sizes_.kv_heads);
    Set("attention.key_length", sizes_.head_dim);
    Set("attention.value_length", sizes_.head_dim);
    Set("attention.layer_norm_rms_epsilon", 1e-6f);
    Set("rope.freq_base", 1e6f);
  }

  void AddLayer(std::uint32_t layer, const FormatOf& format_of) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const std::uint64_t q = std::uint64_t{sizes_.heads} * sizes_.head_dim;
    const std::uint64_t kv = std::uint64_t{sizes_.kv_heads} * sizes_.head_dim;
    const auto table = [&](const std::string& name, std::vector<std::uint64_t> shape) {
      AddTable(prefix + name + ".weight", format_of(name, layer), std::move(shape));
    };
    const auto vector = [&](const std::string& name, std::uint64_t length) {
      AddTable(prefix + name, "F32", {length});
    };
    table("attn_q", {sizes_.hidden, q});
    table("attn_k", {sizes_.hidden, kv});
    table("attn_v", {sizes_.hidden, kv});
    table("attn_output", {q, sizes_.hidden});
    table("ffn_gate", {sizes_.hidden, sizes_.ffn});
    table("ffn_up", {sizes_.hidden, sizes_.ffn});
    table("ffn_down", {sizes_.ffn, sizes_.hidden});
    vector("attn_norm.weight", sizes_.hidden);
    vector("ffn_norm.weight", sizes_.hidden);
    const bool post_norms = architecture_ == "gemma2" || architecture_ == "gemma3";
    if (architecture_ == "qwen3" || architecture_ == "gemma3") {
      vector("attn_q_norm.weight", sizes_.head_dim);
      vector("attn_k_norm.weight", sizes_.head_dim);
    }
    if (architecture_ == "qwen2") {
      vector("attn_q.bias", q);
      vector("attn_k.bias", kv);
      vector("attn_v.bias", kv);
    }
    if (post_norms) {
      vector("post_attention_norm.weight", sizes_.hidden);
      vector("post_ffw_norm.weight", sizes_.hidden);
    }
  }

  std::string architecture_;
  TestSizes sizes_;
  std::filesystem::path path_;
};

/// Which tables a Q4_K_M file of n layers stores in Q6_K (llama.cpp's rule): the first and the last eighth, and every
/// third layer between.
inline bool MoreBits(std::uint32_t layer, std::uint32_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

/// Qwen3-8B as a Q4_K_M file: the tables of the golden census.
inline TestModel& Qwen3EightB() {
  static TestModel model({"qwen3"}, {36, 4096, 12288, 32, 8, 128, 151936}, "Q6_K",
                         [](const std::string& name, std::uint32_t layer) -> std::string {
                           const bool mixed = name == "attn_v" || name == "ffn_down";
                           return mixed && MoreBits(layer, 36) ? "Q6_K" : "Q4_K";
                         });
  return model;
}

}  // namespace boltbeam::model
