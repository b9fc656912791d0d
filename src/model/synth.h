// Files of random weights with the exact tensors and formats of a known model, so that speed can be measured before
// anything is downloaded.
//
// The weights are random but sane: activations keep their size through the layers and the logits are spread as a
// trained model's. A file depends on its name, type, options and seed alone, never on the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/format.h"
#include "gguf/writer.h"
#include "model/shapes.h"

namespace boltbeam::model {

struct SynthOptions {
  std::uint32_t layers = 0;  // 0: as many as the model has
  std::uint64_t seed = 1;
  bool sparse = false;     // holes instead of weights: for reading shapes only
  bool tokenizer = false;  // a small vocabulary that reads and writes any text
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // bytes
  std::function<bool()> cancelled;
};

struct SynthTensor {
  std::string name;
  Role role = Role::kEmbedding;
  const formats::Format* format = nullptr;
  std::vector<std::uint64_t> shape;  // the contracted dimension first

  [[nodiscard]] std::uint64_t elements() const;
  [[nodiscard]] std::uint64_t bytes() const { return elements() / format->elements * format->bytes; }
};

/// What a file will hold, in its order.
struct SynthPlan {
  Shape shape;
  Mixture mixture;
  std::vector<SynthTensor> tensors;
  std::map<Role, WeightRule> weights;

  [[nodiscard]] std::uint64_t data_bytes() const;
};

/// spec is NAME:TYPE, such as "qwen3-0.6b:Q4_K_M". kSynthName, kSynthType, or kUsage for a number of layers that can't
/// be.
Result<SynthPlan> PlanSynth(std::string_view spec, const SynthOptions& options);

/// The tensors of a model of that shape, each in the format that the mixture gives it.
Result<SynthPlan> PlanShape(const Shape& shape, const Mixture& mixture);

/// Writes the file, or nothing: kDiskSpace when it can't fit, kInterrupted when cancelled.
Result<void> WriteSynth(const SynthPlan& plan, const std::string& path, const SynthOptions& options);

/// Adds the small vocabulary's keys, padded to `size` tokens.
Result<void> AddSmallVocabulary(gguf::Writer& writer, std::uint32_t size, const std::string& pre);

}  // namespace boltbeam::model
