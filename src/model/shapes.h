// The registries that synth reads: data/models/shapes.json (hyper-parameters of known models) and
// data/formats/mixtures.json (which tensor gets which format).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/format.h"
#include "model/model.h"

namespace boltbeam::model {

struct Shape {
  std::string name;   // "qwen3-0.6b"
  std::string title;  // "Qwen3 0.6B"
  std::string architecture;
  HyperParameters hyper;
  bool tied = false;  // the embedding is also the head
  std::string pre;    // pre-tokenizer that belongs to it
};

/// How the weights of a role are drawn: a table has a gain, a vector a mean and a spread.
struct WeightRule {
  double gain = 0;
  double mean = 0;
  double spread = 0;
};

struct ShapeRegistry {
  std::vector<Shape> shapes;
  std::map<Role, WeightRule> weights;

  /// kSynthName when there is no such shape; the error lists those that there are.
  [[nodiscard]] Result<const Shape*> Find(std::string_view name) const;
};

/// Another format for some tables of a mixture.
struct MixtureRule {
  std::vector<Role> roles;
  enum class Layers : std::uint8_t { kAll, kSensitive, kFirstEighth } layers = Layers::kAll;
  std::uint32_t min_heads_per_kv = 0;
  const formats::Format* format = nullptr;
};

struct Mixture {
  std::string name;  // "Q4_K_M"
  std::uint32_t file_type = 0;
  const formats::Format* format = nullptr;
  const formats::Format* head = nullptr;
  std::vector<MixtureRule> rules;  // the first that fits a table decides
};

struct MixtureRegistry {
  const formats::Format* vectors = nullptr;
  std::vector<Mixture> mixtures;
  std::map<const formats::Format*, const formats::Format*> fallback;

  /// kSynthType when there is no such mixture; the error lists those that there are. Case does not matter.
  [[nodiscard]] Result<const Mixture*> Find(std::string_view name) const;
  /// The one that general.file_type names; nullptr when there is none.
  [[nodiscard]] const Mixture* FindFileType(std::uint64_t file_type) const;
  /// The format of one table: is_head when it is what the vocabulary head multiplies by.
  [[nodiscard]] const formats::Format* Choose(const Mixture& mixture, Role role, bool is_head, std::uint32_t layer,
                                              const HyperParameters& hyper, std::uint64_t columns) const;
};

Result<ShapeRegistry> LoadShapes();
Result<MixtureRegistry> LoadMixtures();

}  // namespace boltbeam::model
