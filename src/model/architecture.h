// The registry of architectures, data/models/architectures.json: which tensors and keys each one has.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/model.h"

namespace boltbeam::model {

/// One tensor that an architecture has: its name (`*` stands for the layer), role and shape in symbols.
struct TensorRule {
  std::string name;
  Role role = Role::kEmbedding;
  std::vector<std::string> shape;
  bool optional = false;

  [[nodiscard]] bool per_layer() const { return name.starts_with("blk.*."); }
};

struct Range {
  std::uint64_t least = 0, most = 0;
};

struct ArchitectureRow {
  Architecture architecture;
  std::vector<TensorRule> tensors;
  std::vector<std::string> required;       // keys, without the architecture's prefix
  std::vector<std::string> refused_keys;   // keys that ask for something this build does not do
  std::map<std::string, double> defaults;  // values of keys that may be absent
  bool sliding_window = false;
  std::vector<std::uint32_t> scale_by_hidden_at;  // numbers of layers where scores are scaled by hidden / heads

  [[nodiscard]] bool Requires(std::string_view key) const;
};

/// A tensor of a kind that is known but not supported.
struct RefusedTensor {
  std::string part;  // of its name
  std::string reason;
};

struct ArchitectureRegistry {
  std::vector<ArchitectureRow> rows;
  std::map<std::string, Range, std::less<>> ranges;  // legal values of integer keys
  std::vector<std::string> rope_scaling;             // types that are supported
  std::vector<RefusedTensor> refused_tensors;

  /// kModelArchitecture when there is no such row.
  [[nodiscard]] Result<const ArchitectureRow*> Find(std::string_view name) const;
};

Result<ArchitectureRegistry> ParseArchitectures(std::string_view text);
/// What a symbol of a shape stands for, such as q for heads * head_dim; 0 for an unknown one, which no tensor has.
std::uint64_t DimensionOf(std::string_view symbol, const HyperParameters& hyper);
/// The embedded registry.
Result<ArchitectureRegistry> LoadArchitectures();

}  // namespace boltbeam::model
