// A split model of which not all parts are there.
#pragma once

#include <string>

#include "base/error.h"
#include "gguf/file.h"
#include "lab/model_facts.h"

namespace boltbeam::lab {

/// Of its first part alone. Which tables there are and their shapes follow from the architecture's row and the first
/// part's metadata, and have to be as many as split.tensors.count says; those that are in it are counted as they are,
/// the others in the formats that the mixture named by general.file_type gives them. Where the tables that are there
/// differ from that mixture, the others are taken to differ by as much, either way. `missing` otherwise, with the
/// parts' names and why nothing follows.
Result<ModelFacts> FactsOfFirstPart(const std::string& path, Error missing);

/// `missing` with the names of the parts that are not there, and what to do.
std::unexpected<Error> NameMissingParts(const std::string& path, Error missing);

/// Of what stands before the data; empty where that can't be read.
std::string HeaderSha256(const gguf::File& file);

std::string FileName(const std::string& path);

}  // namespace boltbeam::lab
