// What the line needs of a model: the bytes that one token reads. From a file's header alone, or from a known shape.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/cache_format.h"
#include "model/model.h"
#include "model/synth.h"

namespace boltbeam::lab {

struct ModelFacts {
  std::string name;  // of the file, without folders
  std::string path;  // empty for a shape
  std::string architecture;
  std::string quantization;  // the format of most of what a token reads
  std::string header_sha256;
  std::string bytes_from;  // in words: the census, or the tensors' names
  std::uint64_t experts = 0;
  std::uint64_t layers = 0;
  double weight_bytes = 0;  // that a token reads
  /// Of them in parts of a split model that are not there; how far off they may be; and what they rest on, in words.
  double unseen_bytes = 0, unseen_half_bytes = 0;
  std::string unseen;
  /// KV cache that a token reads at a depth; nullopt where the file's architecture is not known.
  std::function<std::optional<double>(std::uint64_t depth, const model::CacheFormats& cache)> kv_bytes;
};

/// Of a GGUF file that is to be run: whole, split (any part) or sparse. An architecture that this build does not know
/// is counted by the names of its tensors: of experts the share that a token uses, of an embedding nothing when there
/// is a head beside it. kGgufSplitMissing names the parts that are missing.
Result<ModelFacts> ReadModelFacts(const std::string& path);

/// Of a GGUF file that is only to be foretold: its data may be missing, as behind the beginning of a download. Of a
/// split one the first part is enough where its metadata say what the others hold: see FactsOfFirstPart.
Result<ModelFacts> ReadHeaderFacts(const std::string& path);

/// Of a shape that `synth` knows, "qwen3-8b:Q4_K_M", without writing its weights.
Result<ModelFacts> ShapeFacts(std::string_view spec, std::uint32_t layers = 0);

/// Of a number of bytes somebody states.
ModelFacts StatedFacts(double bytes);

/// Of a file with the bytes that somebody states in the place of what its tensors say. Of a split one whose parts are
/// neither there nor follow from the first only the name is taken from it.
Result<ModelFacts> ReadHeaderFacts(const std::string& path, double stated_bytes);

/// Of the file that synth would write.
Result<ModelFacts> FactsOfPlan(const model::SynthPlan& plan);

/// A name that ShapeFacts may know rather than a file's: it has a colon and no such file exists.
bool IsShapeName(const std::string& text);

}  // namespace boltbeam::lab
