// Reads hyper-parameters from a file's metadata, by the rules of its architecture's row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf/file.h"
#include "model/architecture.h"
#include "model/model.h"

namespace boltbeam::model {

/// vocab is the embedding's number of rows: the table decides, a vocab_size that disagrees is a warning.
Result<HyperParameters> ReadHyperParameters(const gguf::File& file, const ArchitectureRegistry& registry,
                                            const ArchitectureRow& row, std::uint64_t vocab,
                                            std::vector<std::string>& warnings);

}  // namespace boltbeam::model
