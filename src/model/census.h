// Where every byte of a file's tensors goes in one token: read in full, or excluded with the reason.
//
// Counted plus excluded is the file's tensor bytes, to the byte. A tied table is counted once, as the head; the row of
// the embedding that a token reads is traffic, outside the census.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace boltbeam::model {

enum class Exclusion : std::uint8_t {
  kNone,         // counted
  kRowGather,    // one row is read
  kSmallVector,  // read by every token, but small enough to stay in a cache
};

/// One line in words, for tables and JSON.
std::string_view ExclusionReason(Exclusion exclusion);

struct CensusEntry {
  const Tensor* tensor = nullptr;
  Exclusion exclusion = Exclusion::kNone;
};

/// Tensors of one part, shape and format.
struct CensusGroup {
  std::string role;  // the account's part
  std::string format;
  std::uint64_t rows = 0, cols = 0;
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  Exclusion exclusion = Exclusion::kNone;
};

struct Census {
  std::vector<CensusEntry> entries;  // every tensor of the file, in its order
  std::vector<CensusGroup> groups;   // counted ones first, in the order in which a token reads them
  std::uint64_t counted_bytes = 0, counted_tensors = 0, counted_elements = 0;
  std::uint64_t excluded_bytes = 0, excluded_tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t row_bytes = 0;  // of the embedding, read by one token

  [[nodiscard]] double BitsPerWeight() const;  // of the counted tensors
};

Census TakeCensus(const Model& model);

}  // namespace boltbeam::model
