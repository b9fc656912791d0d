// Split models with something wrong, for every code that several files together can provoke.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace boltbeam::gguf::testing {

using Files = std::map<std::string, std::string>;  // bytes by name

struct SplitRefusal {
  Code code;
  std::string variant;
  Files files;
  std::string opened;  // which of them
  std::string blamed;  // the file that the error names
};

/// "m-00001-of-00003.gguf" and so on; tensors a to f, two in each part.
Files SplitModel();
/// The same model in one file.
std::string WholeModel();

std::vector<SplitRefusal> SplitRefusals();

}  // namespace boltbeam::gguf::testing
